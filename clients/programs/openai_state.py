"""openai: all stored state of the Responses API."""

import json
import time

import openai
from toolbox import KEY, MODEL, URL, main

TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "Get weather",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


def equal(found, wanted):
    assert found == wanted, f"{found!r} is not {wanted!r}"


def gone(ask):
    """Asserts that a resource is not found."""
    try:
        ask()
    except openai.NotFoundError:
        return
    raise AssertionError("it is still there")


def result(response, text):
    call = next(item for item in response.output if item.type == "function_call")
    equal((call.name, json.loads(call.arguments)), ("get_weather", {"city": "Oslo"}))
    return {"type": "function_call_output", "call_id": call.call_id, "output": text}


def program():
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0)

    def ask(text, **more):
        return client.responses.create(model=MODEL, input=text, **more)

    # Create, continue by id, branch.
    first = ask("My name is Ada.", metadata={"lab": "state"})
    second = ask("What is my name?", previous_response_id=first.id)
    equal(second.output_text, "Ada.")
    equal(second.previous_response_id, first.id)
    equal(ask("Say it backwards.", previous_response_id=first.id).output_text, "adA.")

    # A chain of tools by id.
    asked = ask("Weather in Oslo?", tools=[TOOL])
    told = ask([result(asked, "-3")], previous_response_id=asked.id, tools=[TOOL])
    equal(told.output_text, "It is -3.")

    # A conversation, its tools, its items.
    note = {"type": "message", "role": "user", "content": "I live in Oslo."}
    talk = client.conversations.create(metadata={"a": "b"}, items=[note])
    asked = ask("Weather at home?", conversation=talk.id, tools=[TOOL])
    told = ask([result(asked, "4")], conversation={"id": talk.id})
    equal(told.output_text, "It is 4 at home.")
    equal(client.conversations.retrieve(talk.id).metadata, {"a": "b"})
    equal(client.conversations.update(talk.id, metadata={"a": "c"}).metadata, {"a": "c"})
    items = list(client.conversations.items.list(talk.id, order="asc", limit=2))
    kinds = [item.type for item in items if item.type != "reasoning"]
    equal(kinds, ["message", "message", "function_call", "function_call_output", "message"])
    added = client.conversations.items.create(talk.id, items=[{**note, "content": "Bye."}])
    item = added.data[0]
    equal(client.conversations.items.retrieve(item.id, conversation_id=talk.id).content[0].text, "Bye.")
    client.conversations.items.delete(item.id, conversation_id=talk.id)
    gone(lambda: client.conversations.items.retrieve(item.id, conversation_id=talk.id))
    equal(client.conversations.delete(talk.id).deleted, True)
    gone(lambda: client.conversations.retrieve(talk.id))
    gone(lambda: ask("Hello?", conversation=talk.id))

    # Retrieve, list the input.
    again = client.responses.retrieve(first.id)
    equal((again.id, again.output_text, again.metadata), (first.id, "Hello Ada.", {"lab": "state"}))
    listed = list(client.responses.input_items.list(second.id, order="asc"))
    equal([item.content[0].text for item in listed], ["What is my name?"])

    # Resume a stream.
    events = list(ask("Tell a story.", stream=True))
    story = events[-1].response
    equal(story.output_text, "Once upon a time.")
    for after in (0, 3, len(events) - 2):
        rest = list(client.responses.retrieve(story.id, stream=True, starting_after=after))
        equal(rest, events[after + 1 :])

    # In the background: polled, streamed and resumed, cancelled.
    later = ask("Take your time.", background=True)
    assert later.status in ("queued", "in_progress", "completed"), later.status
    while later.status in ("queued", "in_progress"):
        time.sleep(0.05)
        later = client.responses.retrieve(later.id)
    equal((later.status, later.output_text), ("completed", "Later."))
    stream = ask("Take your time again.", background=True, stream=True)
    seen = [next(stream), next(stream)]
    stream.close()
    rest = client.responses.retrieve(seen[0].response.id, stream=True, starting_after=seen[-1].sequence_number)
    seen += rest
    equal([event.sequence_number for event in seen], list(range(len(seen))))
    equal(seen[-1].response.output_text, "Later again.")
    never = ask("Take for ever.", background=True)
    equal(client.responses.cancel(never.id).status, "cancelled")
    equal(client.responses.retrieve(never.id).status, "cancelled")

    # Delete; and another key sees nothing.
    stranger = openai.OpenAI(base_url=f"{URL}/v1", api_key="another", max_retries=0)
    gone(lambda: stranger.responses.retrieve(second.id))
    gone(lambda: stranger.responses.delete(second.id))
    client.responses.delete(first.id)
    gone(lambda: client.responses.retrieve(first.id))
    gone(lambda: client.responses.input_items.list(first.id))
    gone(lambda: ask("Are you there?", previous_response_id=first.id))
    return "done"


main(program)
