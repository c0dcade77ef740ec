"""Grammar checks of the gateway's answers, stricter than the clients."""

import json
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "schemas"))

import schemas
from relay import websocket_texts

DOORS = {
    "/messages": "anthropic",
    "/responses": "responses",
    "/chat/completions": "chat",
    ":streamGenerateContent": "gemini",
    ":generateContent": "gemini",
}
RESPONSE_ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


def faults(exchanges, checker):
    """Faults in the answers of the gateway. `checker` is the program with the tests' grammar checkers."""
    answers = [(exchange, answer) for exchange in exchanges for answer in answers_of(exchange)]
    if not answers:
        # A session that only counts tokens has none.
        if not any("count" in exchange.path for exchange in exchanges):
            yield "grammar: not one answer of the gateway was there to be checked"
        return
    told = json.dumps([answer for _, answer in answers])
    done = subprocess.run([checker], input=told, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the grammar checker fails: {done.stderr.strip()}")
    for (exchange, _), fault in zip(answers, json.loads(done.stdout), strict=True):
        if fault:
            yield f"grammar: {exchange.method} {exchange.path}: {fault[:300]}"
    for exchange, answer in answers:
        for fault in dict.fromkeys(schema_faults(answer)):
            yield f"schema: {exchange.method} {exchange.path}: {fault[:300]}"
    for exchange in exchanges:
        yield from other_model(exchange)


def schema_faults(answer):
    """Faults of an answer by its vendor's published schema."""
    dialect, form, text = answer["dialect"], answer["form"], answer["text"]
    if form == "stream":
        faults = schemas.check_stream(dialect, text)
    else:
        faults = schemas.check(dialect, form, json.loads(text))
    return [fault for fault in faults if not is_foreign(dialect, fault)]


# OpenAI's API sends the status of a custom tool's call; the SDK's type of it leaves the member out.
SENT_BY_OPENAI = (".item.status", ".output[].status")


def is_foreign(dialect, fault):
    """Whether a fault is an unknown member that vendors send, too, or that toolgate passes on: Google's own, or one of a
    client's tool."""
    path, _, what = fault.partition(": ")
    is_sent = dialect == "responses" and path.endswith(SENT_BY_OPENAI)
    return what == schemas.UNKNOWN and (dialect == "gemini" or is_sent or ".tools[]." in path)


def is_checked(exchange):
    return any(True for _ in answers_of(exchange))


def answers_of(exchange):
    """Answers of an exchange: one, or all of a WebSocket."""
    path = exchange.path.partition("?")[0]
    dialect = next((it for end, it in DOORS.items() if path.endswith(end)), None)
    # A client may disconnect early: a truncated answer has no end to check.
    if not dialect or not exchange.answer or not exchange.answer["whole"]:
        return
    if exchange.status == 101:
        yield from websocket_answers(exchange.answer["body"])
        return
    text = exchange.text()
    if exchange.status == 426 or exchange.method == "HEAD":
        return
    options = (exchange.body() or {}).get("stream_options") or {}
    form = "error" if exchange.status >= 400 else "stream" if exchange.is_stream() else "body"
    if form == "stream" and dialect == "gemini":
        text, bare = without_bare_error(text)
        if bare:
            yield {"dialect": dialect, "form": "error", "text": bare}
    yield {"dialect": dialect, "form": form, "text": text, "usage": bool(options.get("include_usage"))}


def without_bare_error(text):
    """Google sends an error within a stream as bare JSON, and its SDKs expect that."""
    begin, mark, rest = text.rpartition("\r\n\r\n")
    last = rest if mark else text
    is_bare = last.lstrip().startswith("{")
    # A frame that Google truncated is forwarded unchanged; clients ignore it.
    return begin + mark, last if is_bare else ""


def websocket_answers(data):
    """Events of a WebSocket, one per message; an answer ends with its response."""
    frames = []
    for text in websocket_texts(data):
        kind = json.loads(text).get("type")
        frames.append(f"event: {kind}\ndata: {text}\n\n")
        if kind in RESPONSE_ENDS:
            yield {"dialect": "responses", "form": "stream", "text": "".join(frames)}
            frames = []


def other_model(exchange):
    """Answers that name another model than requested; Claude Code drops the thinking of such messages."""
    asked, said = (exchange.body() or {}) if exchange.status == 200 else {}, exchange.text()
    if "/messages" in exchange.path and '"message_start"' in said:
        wanted = f'"model":{json.dumps(asked.get("model"))}'
        if wanted not in said.partition("\n\n")[0]:
            yield f"asked for {asked.get('model')}, answered as another model"
