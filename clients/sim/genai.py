"""google-genai on the simulator: one check for each documented feature."""

import sys
import traceback

from google import genai
from google.genai import errors, types

URL, MODEL = sys.argv[1:]
CLIENT = genai.Client(api_key="test-key", http_options=types.HttpOptions(base_url=URL))
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
DECLARED = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(name=name, description=about, parameters_json_schema=CITY)
        for name, about in (
            ("get_weather", "Current weather in a city"),
            ("get_time", "Current time in a city"),
        )
    ]
)
RAN = []


def get_weather(city: str) -> dict:
    """Current weather in a city"""
    RAN.append(("get_weather", city))
    return {"celsius": 21}


def get_time(city: str) -> str:
    """Current time in a city"""
    RAN.append(("get_time", city))
    return "half past nine"


def check(seen, wanted):
    assert seen == wanted, f"{seen!r} is not {wanted!r}"


def holds(text, *words):
    for word in words:
        assert word in (text or ""), f"{word!r} is not in {text!r}"


def plain_chat():
    chat = CLIENT.chats.create(model=MODEL)
    first = chat.send_message("My name is Ada.")
    holds(first.text, "Ada")
    check(first.candidates[0].finish_reason, types.FinishReason.STOP)
    assert first.usage_metadata.total_token_count > first.usage_metadata.prompt_token_count > 0
    second = chat.send_message("What is 12 + 30?")
    holds(second.text, "42")
    check([content.role for content in chat.get_history()], ["user", "model"] * 2)


def stream():
    chunks = list(CLIENT.models.generate_content_stream(model=MODEL, contents="Tell me about Oslo and Rome."))
    assert len(chunks) > 1, "one chunk is no stream"
    holds("".join(chunk.text or "" for chunk in chunks), "Oslo and Rome")
    check(chunks[-1].candidates[0].finish_reason, types.FinishReason.STOP)
    check(len({chunk.response_id for chunk in chunks}), 1)
    assert all(chunk.usage_metadata.prompt_token_count for chunk in chunks)


def manual_calling(ask):
    contents = [types.Content(role="user", parts=[types.Part(text="What is the weather in Tokyo?")])]
    config = types.GenerateContentConfig(tools=[DECLARED])
    parts = ask(contents, config)
    calls = [part.function_call for part in parts if part.function_call]
    check([(call.name, call.args) for call in calls], [("get_weather", {"city": "Tokyo"})])
    contents.append(types.Content(role="model", parts=parts))
    answer = types.FunctionResponse(id=calls[0].id, name=calls[0].name, response={"output": "21 degrees"})
    contents.append(types.Content(role="user", parts=[types.Part(function_response=answer)]))
    holds("".join(part.text or "" for part in ask(contents, config)), "21 degrees")


def manual_calling_whole():
    def ask(contents, config):
        response = CLIENT.models.generate_content(model=MODEL, contents=contents, config=config)
        return response.candidates[0].content.parts

    manual_calling(ask)


def manual_calling_streamed():
    def ask(contents, config):
        parts = []
        for chunk in CLIENT.models.generate_content_stream(model=MODEL, contents=contents, config=config):
            content = chunk.candidates[0].content
            parts += (content and content.parts) or []
        return parts

    manual_calling(ask)


def automatic_calling():
    RAN.clear()
    config = types.GenerateContentConfig(tools=[get_weather, get_time])
    chat = CLIENT.chats.create(model=MODEL, config=config)
    response = chat.send_message("Weather and time in Lisbon?")
    check(RAN, [("get_weather", "Lisbon"), ("get_time", "Lisbon")])
    holds(response.text, "21", "half past nine")
    said = [len([it for it in content.parts if it.function_call]) for content in chat.get_history()]
    check(sum(said), 2)
    check(max(said), 2)
    # Its stored history, with signatures, is accepted again.
    holds(chat.send_message("What is 1 + 1?").text, "2")


def automatic_calling_streamed():
    RAN.clear()
    config = types.GenerateContentConfig(tools=[get_weather, get_time])
    chat = CLIENT.chats.create(model=MODEL, config=config)
    text = "".join(chunk.text or "" for chunk in chat.send_message_stream("Weather and time in Lisbon?"))
    check(RAN, [("get_weather", "Lisbon"), ("get_time", "Lisbon")])
    holds(text, "21", "half past nine")


def modes():
    def calls(mode, prompt, allowed=None):
        calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=allowed)
        config = types.GenerateContentConfig(
            tools=[DECLARED], tool_config=types.ToolConfig(function_calling_config=calling)
        )
        response = CLIENT.models.generate_content(model=MODEL, contents=prompt, config=config)
        return [call.name for call in response.function_calls or []]

    check(calls("ANY", "Good morning!", ["get_time"]), ["get_time"])
    check(calls("ANY", "What is the weather in Tokyo?"), ["get_weather"])
    check(calls("AUTO", "Good morning!"), [])
    check(calls("NONE", "What is the weather in Tokyo?"), [])


def count_tokens():
    few = CLIENT.models.count_tokens(model=MODEL, contents="Hi").total_tokens
    many = CLIENT.models.count_tokens(model=MODEL, contents="word " * 100).total_tokens
    assert 0 < few < many, (few, many)


def list_models():
    names = [model.name for model in CLIENT.models.list(config={"page_size": 5})]
    assert f"models/{MODEL}" in names and len(names) > 5, names
    check(len(names), len(set(names)))
    check(CLIENT.models.get(model=MODEL).name, f"models/{MODEL}")


def an_error():
    question = {"model": "gemini-none", "contents": "Hi"}
    for ask in (CLIENT.models.generate_content, lambda **it: list(CLIENT.models.generate_content_stream(**it))):
        try:
            ask(**question)
        except errors.ClientError as error:
            check((error.code, error.status), (404, "NOT_FOUND"))
            holds(error.message, "models/gemini-none is not found")
        else:
            raise AssertionError("no error")


CHECKS = [
    plain_chat,
    stream,
    manual_calling_whole,
    manual_calling_streamed,
    automatic_calling,
    automatic_calling_streamed,
    modes,
    count_tokens,
    list_models,
    an_error,
]


def main():
    failed = 0
    for it in CHECKS:
        try:
            it()
            print(f"   {it.__name__}", flush=True)
        except Exception:
            failed += 1
            print(f"   {it.__name__} FAILED\n{traceback.format_exc()}", flush=True)
    return 1 if failed else 0


sys.exit(main())
