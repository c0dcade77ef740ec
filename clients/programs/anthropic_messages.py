"""anthropic: Messages, with the stream helper or without, tools run by hand."""

import anthropic
from toolbox import FORCED, FORMAT, KEY, MEDIA, MOST, OPTIONS, PROMPT, URL
from toolbox import keep, load, main, model, run, specs


def ask(client, **question):
    if OPTIONS.get("stream") == "no":
        return client.messages.create(**question)
    with client.messages.stream(**question) as stream:
        for _ in stream:
            pass
        return stream.get_final_message()


def answered(call):
    text, failed = run(call.name, call.input)
    content = text
    if call.name in MEDIA:
        mime, data = MEDIA[call.name]
        source = {"type": "base64", "media_type": mime, "data": data}
        kind = "image" if mime.startswith("image/") else "document"
        content = [{"type": "text", "text": text}, {"type": kind, "source": source}]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": content}
    return {**result, "is_error": True} if failed else result


def program():
    client = anthropic.Anthropic(base_url=URL, api_key=KEY)
    tools = [{"name": name, "description": about, "input_schema": it} for name, about, it in specs()]
    if "search" in OPTIONS:
        tools.append({"type": "web_search_20250305", "name": "web_search", "max_uses": 3})
    messages = load("messages", [])
    messages.append({"role": "user", "content": PROMPT})
    more = {"tools": tools} if tools else {}
    if "format" in OPTIONS:
        more["output_config"] = {"format": {"type": "json_schema", "schema": FORMAT}}
    for at in range(MOST):
        now = {}
        if FORCED and at == 0:
            # Vendors refuse thinking together with a forced call.
            now["tool_choice"] = {"type": "tool", "name": FORCED}
        elif OPTIONS.get("thinking") == "yes":
            now["thinking"] = {"type": "enabled", "budget_tokens": 2048}
        message = ask(client, model=model(at), max_tokens=8192, messages=messages, **more, **now)
        content = [block.model_dump(mode="json", exclude_none=True) for block in message.content]
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in message.content if block.type == "tool_use"]
        if message.stop_reason != "tool_use":
            assert not calls, message
            keep("messages", messages)
            counted = client.messages.count_tokens(model=model(at), messages=messages, **more)
            assert counted.input_tokens > 0, counted
            if message.stop_reason == "refusal":
                raise RuntimeError("refused")
            texts = [block for block in message.content if block.type == "text"]
            found = [block.content for block in message.content if block.type == "web_search_tool_result"]
            cited = sum(len(it) for it in found)
            return "".join(block.text for block in texts) + (f" [{cited} cited]" if cited else "")
        # Reversed: results may be in any order.
        messages.append({"role": "user", "content": [answered(call) for call in reversed(calls)]})
    raise RuntimeError("it does not end")


main(program)
