"""What every dialect's streams must be like, whatever a client forgives."""

import json


def faults(exchange):
    """Yields what is wrong with an answer of the gateway."""
    if not exchange.is_stream() or exchange.status != 200:
        return
    path = exchange.path.partition("?")[0]
    checker = next((it for end, it in CHECKERS.items() if path.endswith(end)), None)
    # A client may leave before the end: what came until then is all there is to check.
    if checker and exchange.answer["whole"]:
        try:
            yield from checker(frames(exchange.text()), exchange)
        except (ValueError, KeyError, TypeError) as error:
            yield f"{type(error).__name__}: {error}"


def frames(text):
    """The events of a stream as (name, data); comments are ('', None)."""
    found = []
    for frame in text.replace("\r\n", "\n").split("\n\n"):
        name, data = None, []
        for line in frame.split("\n"):
            if line.startswith(":"):
                found.append(("", None))
            elif line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif line:
                found.append(("?", line))
        if data:
            found.append((name, "\n".join(data)))
    return found


def anthropic(frames, exchange):
    is_open, index, started, ended, stopped = None, 0, False, False, False
    for name, data in frames:
        if data is None:
            continue
        event = json.loads(data)
        kind = event.get("type")
        if kind != name:
            yield f"event {name} holds {kind}"
        if kind == "ping":
            continue
        if kind == "error":
            return
        if stopped:
            yield f"{kind} after message_stop"
        if not started and kind != "message_start":
            yield f"{kind} before message_start"
        if kind == "message_start":
            if started:
                yield "two message_start"
            started = True
            wanted, given = (exchange.body() or {}).get("model"), event["message"].get("model")
            if wanted != given:
                yield f"asked for {wanted}, answered as {given}"
        elif kind == "content_block_start":
            if is_open is not None or event["index"] != index or ended:
                yield f"block {event['index']} starts out of place"
            is_open, index = event["index"], event["index"] + 1
        elif kind == "content_block_delta":
            if event["index"] != is_open:
                yield f"delta for block {event['index']}, which is not open"
        elif kind == "content_block_stop":
            if event["index"] != is_open:
                yield f"stop of block {event['index']}, which is not open"
            is_open = None
        elif kind == "message_delta":
            if "output_tokens" not in event.get("usage", {}):
                yield "message_delta without output_tokens"
            ended = bool(event["delta"].get("stop_reason"))
        elif kind == "message_stop":
            stopped = True
        else:
            yield f"unknown event {kind}"
    if not stopped:
        yield "no message_stop"
    if not ended:
        yield "no stop_reason"
    if is_open is not None:
        yield f"block {is_open} stays open"


RESPONSES_END = {"response.completed", "response.incomplete", "response.failed"}


def responses(frames, exchange):
    number, identity, items, ended = -1, None, {}, False
    for name, data in frames:
        if data is None:
            yield "a comment, which is no sign of life here"
            continue
        event = json.loads(data)
        kind = event.get("type")
        if name not in (None, kind):
            yield f"event {name} holds {kind}"
        if event.get("sequence_number") != number + 1:
            yield f"{kind} has number {event.get('sequence_number')} after {number}"
        number = event.get("sequence_number", number + 1)
        if kind == "error":
            return
        if ended:
            yield f"{kind} after the end"
        if identity is None and kind != "response.created":
            yield f"{kind} before response.created"
        if "response" in event:
            if identity not in (None, event["response"]["id"]):
                yield "the response changes its id"
            identity = event["response"]["id"]
        if kind == "response.output_item.added":
            if event["output_index"] != len(items):
                yield f"item {event['output_index']} is added out of order"
            items[event["output_index"]] = False
        elif kind == "response.output_item.done":
            if items.get(event["output_index"]) is not False:
                yield f"item {event['output_index']} is done without having been added"
            items[event["output_index"]] = True
        elif "output_index" in event and items.get(event["output_index"]) is not False:
            yield f"{kind} for item {event['output_index']}, which is not open"
        if kind in RESPONSES_END:
            ended = True
            usage = event["response"].get("usage")
            if usage and {"input_tokens", "output_tokens", "total_tokens"} - set(usage):
                yield "usage lacks a total"
            if kind == "response.completed" and not all(items.values()):
                yield "an item is not done at the end"
    if not ended:
        yield "no end"


def chat(frames, exchange):
    roles, calls, finish, done, is_error = 0, {}, None, False, False
    for name, data in frames:
        if data is None:
            continue
        if name:
            yield f"an event line: {name}"
        if done:
            yield "data after [DONE]"
        if data == "[DONE]":
            done = True
            continue
        chunk = json.loads(data)
        if "error" in chunk:
            is_error = True
            continue
        if missing := {"id", "created", "model", "object", "choices"} - set(chunk):
            yield f"a chunk without {sorted(missing)}"
        for choice in chunk["choices"]:
            delta = choice["delta"]
            roles += "role" in delta
            if not roles:
                yield "a delta before the role"
            for call in delta.get("tool_calls", []):
                at = call["index"]
                if at not in calls and (at != len(calls) or not call.get("id")):
                    yield f"call {at} begins wrongly"
                calls.setdefault(at, call.get("id"))
            finish = choice.get("finish_reason") or finish
    if is_error:
        return
    if not done:
        yield "no [DONE]"
    if roles != 1:
        yield f"{roles} roles"
    if finish is None:
        yield "no finish_reason"
    if calls and finish == "stop":
        yield "calls, but finish_reason is stop"
    if len(set(calls.values())) != len(calls):
        yield "two calls have one id"


def gemini(frames, exchange):
    # Google gives an error in the middle of a stream as bare JSON, and its SDKs expect that.
    bare = "".join(data for name, data in frames if name == "?")
    if bare and "error" not in json.loads(bare):
        yield f"something that is neither data nor an error: {bare[:80]}"
    for name, data in frames:
        if name == "?":
            continue
        if name is not None or data is None:
            yield f"something that is no data: {name or 'a comment'}"
            continue
        chunk = json.loads(data)
        if not {"candidates", "usageMetadata", "promptFeedback", "error"} & set(chunk):
            yield f"a chunk of {sorted(chunk)}"


CHECKERS = {
    "/messages": anthropic,
    "/responses": responses,
    "/chat/completions": chat,
    ":streamGenerateContent": gemini,
}
