"""anthropic: Messages, with the stream helper or without, tools run by hand."""

import anthropic
from toolbox import KEY, MODEL, MOST, OPTIONS, PROMPT, TOOLS, URL, keep, load, main, run, schema


def ask(client, **question):
    if OPTIONS.get("stream") == "no":
        return client.messages.create(**question)
    with client.messages.stream(**question) as stream:
        for _ in stream:
            pass
        return stream.get_final_message()


def program():
    client = anthropic.Anthropic(base_url=URL, api_key=KEY)
    tools = [
        {"name": tool.__name__, "description": tool.__doc__, "input_schema": schema(tool)}
        for tool in TOOLS
    ]
    messages = load("messages", [])
    messages.append({"role": "user", "content": PROMPT})
    more = {}
    if OPTIONS.get("thinking") == "yes":
        more["thinking"] = {"type": "enabled", "budget_tokens": 2048}
    for _ in range(MOST):
        message = ask(client, model=MODEL, max_tokens=8192, messages=messages, tools=tools, **more)
        content = [block.model_dump(mode="json", exclude_none=True) for block in message.content]
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in message.content if block.type == "tool_use"]
        if message.stop_reason != "tool_use":
            assert not calls, message
            keep("messages", messages)
            counted = client.messages.count_tokens(model=MODEL, messages=messages, tools=tools)
            assert counted.input_tokens > 0, counted
            if message.stop_reason == "refusal":
                raise RuntimeError("refused")
            return message.content[-1].text
        results = []
        # Backwards: results may come in any order.
        for call in reversed(calls):
            text, failed = run(call.name, call.input)
            result = {"type": "tool_result", "tool_use_id": call.id, "content": text}
            results.append({**result, "is_error": True} if failed else result)
        messages.append({"role": "user", "content": results})
    raise RuntimeError("it does not end")


main(program)
