"""agno: its own loop in each of the four dialects."""

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from toolbox import KEY, MODEL, OPTIONS, TOOLS, URL, main, turns


def model():
    match OPTIONS["api"]:
        case "anthropic":
            from agno.models.anthropic import Claude

            return Claude(id=MODEL, api_key=KEY, client_params={"base_url": URL})
        case "google":
            from agno.models.google import Gemini

            return Gemini(id=MODEL, api_key=KEY, client_params={"http_options": {"base_url": URL}})
        case "responses":
            from agno.models.openai import OpenAIResponses

            return OpenAIResponses(id=MODEL, api_key=KEY, base_url=f"{URL}/v1")
        case _:
            from agno.models.openai import OpenAIChat

            return OpenAIChat(id=MODEL, api_key=KEY, base_url=f"{URL}/v1")


def program():
    agent = Agent(
        model=model(), tools=TOOLS, db=InMemoryDb(), session_id="lab", add_history_to_context=True, telemetry=False
    )
    text = ""
    for prompt in turns():
        if OPTIONS.get("stream") == "no":
            text = agent.run(prompt).content
        else:
            text = "".join(
                event.content or "" for event in agent.run(prompt, stream=True) if event.event == "RunContent"
            )
    return text


main(program)
