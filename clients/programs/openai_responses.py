"""openai: Responses, with the strict stream helper or without; echoed by hand or kept by the server."""

import json

import openai
from toolbox import KEY, MODEL, MOST, OPTIONS, PROMPT, TOOLS, URL, keep, load, main, run, schema


def ask(client, **question):
    if OPTIONS.get("stream") == "no":
        return client.responses.create(**question)
    with client.responses.stream(**question) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def program():
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY)
    tools = []
    for tool in TOOLS:
        function = {"name": tool.__name__, "description": tool.__doc__, "parameters": schema(tool)}
        tools.append({"type": "function", "strict": True, **function})
    stored = OPTIONS.get("state") == "server"
    more = {} if stored else {"store": False, "include": ["reasoning.encrypted_content"]}
    more["reasoning"] = {"summary": "auto"}
    items = load("items", [])
    items.append({"role": "user", "content": PROMPT})
    for _ in range(MOST):
        response = ask(client, model=MODEL, input=items, tools=tools, **more)
        assert response.usage.total_tokens > 0, response
        calls = [item for item in response.output if item.type == "function_call"]
        if stored:
            items, more["previous_response_id"] = [], response.id
        else:
            items += [item.model_dump(mode="json", exclude_none=True) for item in response.output]
        if not calls:
            keep("items", items)
            if response.status != "completed":
                raise RuntimeError(f"{response.status} {response.incomplete_details}")
            return response.output_text
        for call in calls:
            text, _ = run(call.name, json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
    raise RuntimeError("it does not end")


main(program)
