"""The tools of the Python programs, and what they are started with."""

import json
import os
import sys
import time
from pathlib import Path

URL, MODEL, PROMPT = sys.argv[1:4]
OPTIONS = dict(it.split("=", 1) for it in sys.argv[4:])
KEY = "test-key"
MOST = 25


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


TOOLS = [write_file, read_file, edit_file, search, list_files, pause]
STRING = {"type": "string"}
SCHEMAS = {
    "write_file": {"path": STRING, "content": STRING},
    "read_file": {"path": STRING},
    "edit_file": {"path": STRING, "old": STRING, "new": STRING},
    "search": {"pattern": STRING, "folder": STRING},
    "list_files": {},
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


def run(name, arguments):
    """Runs a tool: what it says, and whether it failed."""
    try:
        tool = next(it for it in TOOLS if it.__name__ == name)
        return str(tool(**arguments)), False
    except Exception as error:  # The model is told, whatever it is.
        return f"{type(error).__name__}: {error}", True


def load(what, default):
    """What the last process kept of the conversation."""
    place = Path(os.environ["HOME"]) / f"{what}.json"
    return json.loads(place.read_text()) if place.exists() else default


def keep(what, value):
    place = Path(os.environ["HOME"]) / f"{what}.json"
    place.write_text(json.dumps(value))


def say(**members):
    print(json.dumps(members), flush=True)


def main(program):
    """Runs a program; what it raises is shown, as its user would see it."""
    try:
        say(text=program())
    except Exception as error:
        say(error=f"{type(error).__name__}: {error}"[:600])
        sys.exit(1)
