"""openai: Chat Completions, with the strict stream helper or without, tools run by hand."""

import json

import openai
from toolbox import FORCED, FORMAT, IS_STRICT, KEY, MOST, OPTIONS, PROMPT, URL
from toolbox import keep, load, main, model, run, specs


def ask(client, **question):
    if OPTIONS.get("stream") == "no":
        return client.chat.completions.create(**question)
    counted = {"stream_options": {"include_usage": True}}
    with client.chat.completions.stream(**question, **counted) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


def program():
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY)
    tools = [
        {"type": "function", "function": {"name": name, "description": about, "parameters": it}}
        for name, about, it in specs()
    ]
    for tool in tools:
        tool["function"]["strict"] = IS_STRICT
    messages = load("messages", [])
    messages.append({"role": "user", "content": PROMPT})
    more = {"tools": tools} if tools else {}
    if "format" in OPTIONS:
        schema = {"name": "report", "schema": FORMAT, "strict": True}
        more["response_format"] = {"type": "json_schema", "json_schema": schema}
    for at in range(MOST):
        now = {}
        if FORCED and at == 0:
            now["tool_choice"] = {"type": "function", "function": {"name": FORCED}}
        completion = ask(client, model=model(at), messages=messages, **more, **now)
        assert completion.usage.total_tokens > 0, completion
        choice = completion.choices[0]
        message = choice.message
        messages.append(message.model_dump(mode="json", exclude_none=True))
        if not message.tool_calls:
            assert choice.finish_reason != "tool_calls", choice
            keep("messages", messages)
            if choice.finish_reason == "content_filter":
                raise RuntimeError("filtered")
            return message.content
        assert choice.finish_reason == "tool_calls", choice
        for call in reversed(message.tool_calls):
            text, _ = run(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    raise RuntimeError("it does not end")


main(program)
