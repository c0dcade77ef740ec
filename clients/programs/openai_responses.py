"""openai: Responses, with the strict stream helper or without; with history echoed by hand or stored by the server."""

import json

import openai
from toolbox import FORCED, FORMAT, IS_STRICT, KEY, MEDIA, MOST, OPTIONS, PROMPT, URL
from toolbox import keep, load, main, model, run, specs


def ask(client, **question):
    if OPTIONS.get("stream") == "no":
        return client.responses.create(**question)
    with client.responses.stream(**question) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def answered(call):
    output, _ = run(call.name, json.loads(call.arguments))
    if call.name in MEDIA:
        mime, data = MEDIA[call.name]
        url = f"data:{mime};base64,{data}"
        part = {"type": "input_file", "filename": "paper.pdf", "file_data": url}
        if mime.startswith("image/"):
            part = {"type": "input_image", "image_url": url}
        output = [{"type": "input_text", "text": output}, part]
    return {"type": "function_call_output", "call_id": call.call_id, "output": output}


def program():
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY)
    tools = [
        {"type": "function", "strict": IS_STRICT, "name": name, "description": about, "parameters": it}
        for name, about, it in specs()
    ]
    if "search" in OPTIONS:
        tools.append({"type": "web_search"})
    stored = OPTIONS.get("state") == "server"
    more = {} if stored else {"store": False, "include": ["reasoning.encrypted_content"]}
    more["reasoning"] = {"summary": "auto"}
    if tools:
        more["tools"] = tools
    if "format" in OPTIONS:
        more["text"] = {"format": {"type": "json_schema", "name": "report", "schema": FORMAT, "strict": True}}
    items = load("items", [])
    items.append({"role": "user", "content": PROMPT})
    for at in range(MOST):
        now = {"tool_choice": {"type": "function", "name": FORCED}} if FORCED and at == 0 else {}
        response = ask(client, model=model(at), input=items, **more, **now)
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
            said = [it for item in response.output if item.type == "message" for it in item.content]
            if any(it.type == "refusal" for it in said):
                raise RuntimeError("refused")
            cited = sum(len(it.annotations) for it in said)
            return response.output_text + (f" [{cited} cited]" if cited else "")
        items += [answered(call) for call in calls]
    raise RuntimeError("it does not end")


main(program)
