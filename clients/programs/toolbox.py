"""Tools and options of the Python programs."""

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path

URL, MODEL, PROMPT = sys.argv[1:4]
# force=TOOL    the first request must call this tool
# format=json   the last answer follows FORMAT
# mcp=COMMAND   tools of an MCP server; the command as JSON
# media=yes     two more tools, which return an image and a PDF
# search=yes    the vendor's web search together with the tools
# then=TEXT     a second prompt in the same conversation
# switch=MODEL  another model from the third request on
# tools=no      text only
OPTIONS = dict(it.split("=", 1) for it in sys.argv[4:])
KEY = "test-key"
MOST = 25
FORCED = OPTIONS.get("force")
FORMAT = {
    "type": "object",
    "properties": {"files": {"type": "integer"}, "done": {"type": "string"}},
    "required": ["files", "done"],
    "additionalProperties": False,
}
IS_STRICT = "mcp" not in OPTIONS
# The smallest PNG and PDF.
PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
        "0000000a49444154789c6360000000020001e221bc330000000049454e44ae426082"
    )
).decode()
PDF = base64.b64encode(b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n").decode()
MEDIA = {"take_photo": ("image/png", PNG), "get_paper": ("application/pdf", PDF)}


def turns():
    """The user's prompts, in order."""
    return [PROMPT] + ([OPTIONS["then"]] if "then" in OPTIONS else [])


def model(at):
    """Model of the request with this number, from 0."""
    return OPTIONS["switch"] if "switch" in OPTIONS and at >= 2 else MODEL


def write_file(path: str, content: str) -> str:
    """Write a text file, with its folders."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(content)
    return "written"


def read_file(path: str) -> str:
    """Read a text file."""
    return Path(path).read_text()


def edit_file(path: str, old: str, new: str) -> str:
    """Replace a text in a file."""
    place = Path(path)
    place.write_text(place.read_text().replace(old, new))
    return "edited"


def search(pattern: str, folder: str) -> str:
    """Find the lines of the files in a folder that hold a text."""
    found = []
    for place in sorted(Path(folder).rglob("*")):
        if place.is_file():
            lines = place.read_text().split("\n")
            found += [f"{place.name}: {line}" for line in lines if pattern in line]
    return "\n".join(found)


def list_files() -> str:
    """List the files of the working folder."""
    return "\n".join(sorted(str(it) for it in Path.cwd().rglob("*")))


def pause(seconds: float, path: str, content: str) -> str:
    """Wait, then write a text file."""
    time.sleep(seconds)
    return write_file(path, content)


def take_photo() -> str:
    """Take a photo."""
    return "A photo."


def get_paper() -> str:
    """Get a paper."""
    return "A paper."


TOOLS = [write_file, read_file, edit_file, search, list_files, pause]
if "media" in OPTIONS:
    TOOLS += [take_photo, get_paper]
STRING = {"type": "string"}
SCHEMAS = {
    "write_file": {"path": STRING, "content": STRING},
    "read_file": {"path": STRING},
    "edit_file": {"path": STRING, "old": STRING, "new": STRING},
    "search": {"pattern": STRING, "folder": STRING},
    "list_files": {},
    "take_photo": {},
    "get_paper": {},
    "pause": {"seconds": {"type": "number"}, "path": STRING, "content": STRING},
}


def schema(tool):
    properties = SCHEMAS[tool.__name__]
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


class Server:
    """An MCP server on standard input and output."""

    def __init__(self, command):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "lab", "version": "1"}}
        self.ask("initialize", about)
        self.tools = self.ask("tools/list", {})["tools"]

    def ask(self, method, params):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]


COMMAND = json.loads(OPTIONS.get("mcp", "null"))
# Some SDKs have an MCP client of their own.
SERVER = Server(COMMAND) if COMMAND and OPTIONS.get("own") != "yes" else None


def specs():
    """Name, description and schema of each tool."""
    if OPTIONS.get("tools") == "no":
        return []
    if SERVER:
        return [(it["name"], it["description"], it["inputSchema"]) for it in SERVER.tools]
    return [(tool.__name__, tool.__doc__, schema(tool)) for tool in TOOLS]


def run(name, arguments):
    """Runs a tool; returns its text, and whether it failed."""
    try:
        if SERVER:
            result = SERVER.ask("tools/call", {"name": name, "arguments": arguments})
            return result["content"][0]["text"], False
        tool = next(it for it in TOOLS if it.__name__ == name)
        return str(tool(**arguments)), False
    except Exception as error:  # The model is told, whatever it is.
        return f"{type(error).__name__}: {error}", True


def load(what, default):
    """Conversation stored by the last process."""
    place = Path(os.environ["HOME"]) / f"{what}.json"
    return json.loads(place.read_text()) if place.exists() else default


def keep(what, value):
    place = Path(os.environ["HOME"]) / f"{what}.json"
    place.write_text(json.dumps(value))


def say(**members):
    print(json.dumps(members), flush=True)


def main(program):
    """Runs a program; prints errors as a user would see them."""
    try:
        say(text=program())
    except Exception as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        say(error=f"{type(error).__name__}: {error}"[:600])
        sys.exit(1)
