"""Vendors' schemas of their answers: `check(dialect, kind, answer)` returns the faults of an answer.

The schemas are generated from the types of the vendors' SDKs, which are installed as `versions.toml` pins them.
"""

import functools
import json
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "lab"))

import install
import validate
from validate import MISSING, UNKNOWN

# Schema of each dialect and kind of answer: vendor, name in `types/VENDOR.ts`.
KINDS = {
    ("anthropic", "body"): ("anthropic", "body"),
    ("anthropic", "event"): ("anthropic", "event"),
    ("anthropic", "error"): ("anthropic", "error"),
    ("anthropic", "count"): ("anthropic", "count"),
    ("anthropic", "model"): ("anthropic", "model"),
    ("responses", "body"): ("openai", "responses_body"),
    ("responses", "event"): ("openai", "responses_event"),
    ("responses", "error"): ("openai", "responses_error"),
    ("chat", "body"): ("openai", "chat_body"),
    ("chat", "event"): ("openai", "chat_event"),
    ("chat", "error"): ("openai", "chat_error"),
    ("chat", "model"): ("openai", "model"),
    ("gemini", "body"): ("google", "body"),
    ("gemini", "event"): ("google", "event"),
    ("gemini", "error"): ("google", "error"),
    ("gemini", "count"): ("google", "count"),
}

COMPUTED = "computed by the SDK from the body, not sent by the API"
SENT = "sent by OpenAI's API and required by the Open Responses schema; the SDK's type leaves it out"
CARRIER = "Google's own field for signatures in Chat (docs/signatures.md); clients echo it"
THOUGHTS = "the name that Chat clients read thoughts from; OpenAI's API has none"

# Faults that are accepted. Every row must be needed by some golden answer.
EXCEPTIONS = [
    # (dialect, end of the path, fault, reason)
    ("responses", ".output_text", MISSING, COMPUTED),
    ("responses", ".frequency_penalty", UNKNOWN, SENT),
    ("responses", ".presence_penalty", UNKNOWN, SENT),
    ("responses", ".store", UNKNOWN, SENT),
    ("responses", "responses_event.name", UNKNOWN, "required by earlier versions of the SDK (arguments.done)"),
    ("responses", ".user", "expected string, found None", "OpenAI sends null for a request without it"),
    ("responses", ".usage", "expected object, found None", "OpenAI sends null until the response ends"),
    ("responses", ".error.code", "'server_is_overloaded'", "sent by OpenAI's API; Codex retries on it"),
    ("chat", ".extra_content", UNKNOWN, CARRIER),
    ("chat", ".reasoning_content", UNKNOWN, THOUGHTS),
    ("chat", ".delta.annotations", UNKNOWN, "OpenAI's search models stream the annotations of a message so"),
]


# Members that the SDK's types call optional and the vendor always sends: (dialect, path of the object, member).
ALWAYS = [
    ("responses", "responses_body", "completed_at"),
    ("responses", "responses_body", "frequency_penalty"),
    ("responses", "responses_body", "presence_penalty"),
    ("responses", "responses_body", "store"),
    ("responses", "responses_body", "usage"),
    ("responses", "responses_body.tools[]", "description"),
    ("responses", "responses_event.response", "completed_at"),
    ("responses", "responses_event.response.tools[]", "description"),
    ("chat", "chat_body", "usage"),
    ("chat", "chat_body.choices[].message", "annotations"),
]


def check(dialect, kind, answer):
    """Faults of an answer, as text. `kind` is body, event, error, count or model; `events` is a list of events."""
    if kind == "events":
        return [fault for event in answer for fault in check(dialect, "event", event)]
    vendor, name = KINDS[dialect, kind]
    faults = schemas()[vendor].faults(name, answer)
    for row, path, member in ALWAYS:
        if row == dialect and path.partition(".")[0] == name:
            faults += [(f"{path}.{member}", MISSING) for it in found(answer, path) if member not in it]
    return [f"{path}: {fault}" for path, fault in faults if not is_excepted(dialect, path, fault)]


def found(answer, path):
    """Objects of an answer at a path; `tools[]` are the function tools."""
    objects = [answer]
    for name in path.split(".")[1:]:
        key = name.removesuffix("[]")
        values = [it[key] for it in objects if key in it]
        objects = [it for value in values for it in value] if name != key else values
    return [it for it in objects if not path.endswith("tools[]") or it.get("type") == "function"]


def check_stream(dialect, text):
    """Faults of a stream of server-sent events."""
    return check(dialect, "events", list(events(text)))


def events(text):
    """JSON of the events of a stream; Chat's end mark is none."""
    for frame in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line[5:].removeprefix(" ") for line in frame.split("\n") if line.startswith("data:")]
        data = "\n".join(lines) if lines else frame.strip() if frame.lstrip().startswith("{") else ""
        if data and data != "[DONE]":
            yield json.loads(data)


def is_excepted(dialect, path, fault):
    for row in EXCEPTIONS:
        if row[0] == dialect and path.endswith(row[1]) and fault.endswith(row[2]):
            USED.add(row)
            return True
    return False


USED = set()


def unused():
    """Exceptions that no answer needed."""
    return [row for row in EXCEPTIONS if row not in USED]


LOCK = threading.Lock()


def schemas():
    with LOCK:
        return generated()


@functools.cache
def generated():
    place = install.ensure("schemas")
    sources = [HERE / "generate.mjs", *sorted((HERE / "types").glob("*.ts")), place / install.STAMP]
    out = place / "schemas.json"
    if not out.exists() or out.stat().st_mtime <= max(source.stat().st_mtime for source in sources):
        command = ["node", str(HERE / "generate.mjs"), str(place), str(HERE / "types"), str(out)]
        subprocess.run(command, check=True)
    return {vendor: validate.Schemas(root) for vendor, root in json.loads(out.read_text()).items()}
