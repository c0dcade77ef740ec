"""google-genai: functions called by hand or automatically."""

import asyncio
import base64

from google import genai
from google.genai import types
from toolbox import COMMAND, FORCED, FORMAT, KEY, MEDIA, MODEL, MOST, OPTIONS, PROMPT, TOOLS, URL
from toolbox import keep, load, main, model, run, specs


def ask(client, at, contents, config):
    if OPTIONS.get("stream") == "no":
        response = client.models.generate_content(model=model(at), contents=contents, config=config)
        candidate = response.candidates[0]
        return candidate.content.parts or [], candidate.finish_reason
    parts, finish = [], None
    question = {"model": model(at), "contents": contents, "config": config}
    for chunk in client.models.generate_content_stream(**question):
        for candidate in chunk.candidates or []:
            if candidate.content and candidate.content.parts:
                parts += candidate.content.parts
            finish = candidate.finish_reason or finish
    return parts, finish


def answered(call):
    text, failed = run(call.name, call.args or {})
    parts = None
    if call.name in MEDIA:
        mime, data = MEDIA[call.name]
        blob = types.FunctionResponseBlob(mime_type=mime, data=base64.b64decode(data))
        parts = [types.FunctionResponsePart(inline_data=blob)]
    response = {"error" if failed else "output": text}
    answer = types.FunctionResponse(id=call.id, name=call.name, response=response, parts=parts)
    return types.Part(function_response=answer)


def by_hand(client):
    declared = [
        types.FunctionDeclaration(name=name, description=about, parameters_json_schema=it)
        for name, about, it in specs()
    ]
    config = types.GenerateContentConfig(
        thinking_config=types.ThinkingConfig(include_thoughts=True),
    )
    if declared:
        config.tools = [types.Tool(function_declarations=declared)]
    if "search" in OPTIONS:
        config.tools.append(types.Tool(google_search=types.GoogleSearch()))
        config.tool_config = types.ToolConfig(include_server_side_tool_invocations=True)
    if "format" in OPTIONS:
        config.response_mime_type, config.response_json_schema = "application/json", FORMAT
    contents = [types.Content.model_validate(it) for it in load("contents", [])]
    contents.append(types.Content(role="user", parts=[types.Part(text=PROMPT)]))
    for at in range(MOST):
        now = config
        if FORCED and at == 0:
            calling = types.FunctionCallingConfig(mode="ANY", allowed_function_names=[FORCED])
            choice = types.ToolConfig(function_calling_config=calling)
            now = config.model_copy(update={"tool_config": choice})
        parts, finish = ask(client, at, contents, now)
        contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            if not parts or str(finish).rsplit(".", 1)[-1] not in ("STOP", "MAX_TOKENS"):
                raise RuntimeError(f"finished with {finish}")
            keep("contents", [it.model_dump(mode="json", exclude_none=True) for it in contents])
            counted = client.models.count_tokens(model=MODEL, contents=contents)
            assert counted.total_tokens > 0, counted
            text = "".join(part.text or "" for part in parts if not part.thought)
            assert text, "nothing was said"
            return text
        contents.append(types.Content(role="user", parts=[answered(call) for call in calls]))
    raise RuntimeError("it does not end")


async def by_session(client):
    """The SDK's MCP client: it lists the tools and calls them."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        calling = types.AutomaticFunctionCallingConfig(maximum_remote_calls=MOST)
        config = types.GenerateContentConfig(tools=[session], automatic_function_calling=calling)
        question = {"model": MODEL, "contents": PROMPT, "config": config}
        return (await client.aio.models.generate_content(**question)).text


def automatic(client):
    calling = types.AutomaticFunctionCallingConfig(maximum_remote_calls=MOST)
    config = types.GenerateContentConfig(tools=TOOLS, automatic_function_calling=calling)
    chat = client.chats.create(model=MODEL, config=config)
    whole = OPTIONS.get("stream") == "no"
    chunks = [chat.send_message(PROMPT)] if whole else list(chat.send_message_stream(PROMPT))
    ends = [it.finish_reason for chunk in chunks for it in chunk.candidates or []]
    if not ends or str(ends[-1]).rsplit(".", 1)[-1] not in ("STOP", "MAX_TOKENS"):
        raise RuntimeError(f"finished with {ends[-1:]}")
    return "".join(chunk.text or "" for chunk in chunks)


def program():
    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=URL))
    assert any(MODEL in model.name for model in client.models.list()), "the model is not listed"
    if COMMAND and OPTIONS.get("own") == "yes":
        return asyncio.run(by_session(client))
    return automatic(client) if OPTIONS.get("calls") == "automatic" else by_hand(client)


main(program)
