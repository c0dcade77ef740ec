"""litellm as a client, on each of its providers."""

import json

import litellm
from toolbox import KEY, MODEL, MOST, OPTIONS, PROMPT, TOOLS, URL, main, run, schema

PROVIDERS = {"anthropic": URL, "openai": f"{URL}/v1", "gemini": f"{URL}/v1beta"}


def ask(**question):
    if OPTIONS.get("stream") == "no":
        return litellm.completion(**question)
    chunks = list(litellm.completion(**question, stream=True))
    return litellm.stream_chunk_builder(chunks, messages=question["messages"])


def program():
    provider = OPTIONS["api"]
    tools = []
    for tool in TOOLS:
        function = {"name": tool.__name__, "description": tool.__doc__, "parameters": schema(tool)}
        tools.append({"type": "function", "function": function})
    messages = [{"role": "user", "content": PROMPT}]
    where = {"model": f"{provider}/{MODEL}", "api_base": PROVIDERS[provider], "api_key": KEY}
    for _ in range(MOST):
        completion = ask(**where, messages=messages, tools=tools)
        message = completion.choices[0].message
        messages.append(message.model_dump())
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            text, _ = run(call.function.name, json.loads(call.function.arguments))
            answer = {"role": "tool", "tool_call_id": call.id, "content": text}
            messages.append({**answer, "name": call.function.name})
    raise RuntimeError("it does not end")


main(program)
