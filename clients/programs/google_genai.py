"""google-genai: functions called by hand or automatically."""

from google import genai
from google.genai import types
from toolbox import KEY, MODEL, MOST, OPTIONS, PROMPT, TOOLS, URL, keep, load, main, run, schema


def ask(client, contents, config):
    if OPTIONS.get("stream") == "no":
        response = client.models.generate_content(model=MODEL, contents=contents, config=config)
        candidate = response.candidates[0]
        return candidate.content.parts or [], candidate.finish_reason
    parts, finish = [], None
    question = {"model": MODEL, "contents": contents, "config": config}
    for chunk in client.models.generate_content_stream(**question):
        for candidate in chunk.candidates or []:
            if candidate.content and candidate.content.parts:
                parts += candidate.content.parts
            finish = candidate.finish_reason or finish
    return parts, finish


def by_hand(client):
    declared = [
        types.FunctionDeclaration(
            name=tool.__name__, description=tool.__doc__, parameters_json_schema=schema(tool)
        )
        for tool in TOOLS
    ]
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=declared)],
        thinking_config=types.ThinkingConfig(include_thoughts=True),
    )
    contents = [types.Content.model_validate(it) for it in load("contents", [])]
    contents.append(types.Content(role="user", parts=[types.Part(text=PROMPT)]))
    for _ in range(MOST):
        parts, finish = ask(client, contents, config)
        contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            if not parts or str(finish).rsplit(".", 1)[-1] not in ("STOP", "MAX_TOKENS"):
                raise RuntimeError(f"finished with {finish}")
            keep("contents", [it.model_dump(mode="json", exclude_none=True) for it in contents])
            counted = client.models.count_tokens(model=MODEL, contents=contents)
            assert counted.total_tokens > 0, counted
            return "".join(part.text or "" for part in parts if not part.thought)
        answers = []
        for call in calls:
            text, failed = run(call.name, call.args or {})
            response = types.FunctionResponse(
                id=call.id, name=call.name, response={"error" if failed else "output": text}
            )
            answers.append(types.Part(function_response=response))
        contents.append(types.Content(role="user", parts=answers))
    raise RuntimeError("it does not end")


def automatic(client):
    calling = types.AutomaticFunctionCallingConfig(maximum_remote_calls=MOST)
    config = types.GenerateContentConfig(tools=TOOLS, automatic_function_calling=calling)
    chat = client.chats.create(model=MODEL, config=config)
    if OPTIONS.get("stream") == "no":
        return chat.send_message(PROMPT).text
    return "".join(chunk.text or "" for chunk in chat.send_message_stream(PROMPT))


def program():
    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=URL))
    assert any(MODEL in model.name for model in client.models.list()), "the model is not listed"
    return automatic(client) if OPTIONS.get("calls") == "automatic" else by_hand(client)


main(program)
