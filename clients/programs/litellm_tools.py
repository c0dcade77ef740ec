"""litellm as a client, on each of its providers."""

import gc
import json

import litellm
from toolbox import FORCED, FORMAT, KEY, MOST, OPTIONS, PROMPT, URL, main, model, run, specs

PROVIDERS = {"anthropic": URL, "openai": f"{URL}/v1", "gemini": f"{URL}/v1beta"}


# litellm leaves partly read streams to the garbage collector. Inside httpcore's pool, closing one
# deadlocks on a lock of the same thread, so the collector runs between requests only.
gc.disable()


def ask(**question):
    if OPTIONS.get("stream") == "no":
        return litellm.completion(**question)
    chunks = list(litellm.completion(**question, stream=True))
    return litellm.stream_chunk_builder(chunks, messages=question["messages"])


def program():
    provider = OPTIONS["api"]
    functions = [{"name": name, "description": about, "parameters": it} for name, about, it in specs()]
    more = {"tools": [{"type": "function", "function": it} for it in functions]} if functions else {}
    if "format" in OPTIONS:
        schema = {"name": "report", "schema": FORMAT, "strict": True}
        more["response_format"] = {"type": "json_schema", "json_schema": schema}
    messages = [{"role": "user", "content": PROMPT}]
    where = {"api_base": PROVIDERS[provider], "api_key": KEY}
    for at in range(MOST):
        now = {}
        if FORCED and at == 0:
            now["tool_choice"] = {"type": "function", "function": {"name": FORCED}}
        name = f"{provider}/{model(at)}"
        completion = ask(model=name, messages=messages, **where, **more, **now)
        gc.collect()
        message = completion.choices[0].message
        messages.append(message.model_dump())
        if not message.tool_calls:
            if not message.content:
                raise RuntimeError(f"nothing was said: {completion.choices[0].finish_reason}")
            return message.content
        for call in message.tool_calls:
            text, _ = run(call.function.name, json.loads(call.function.arguments))
            answer = {"role": "tool", "tool_call_id": call.id, "content": text}
            messages.append({**answer, "name": call.function.name})
    raise RuntimeError("it does not end")


main(program)
