"""pydantic-ai: its own loop in each of the four dialects."""

import asyncio
import functools

from pydantic_ai import Agent, ModelRetry
from toolbox import KEY, MODEL, OPTIONS, TOOLS, URL, main, turns


def model():
    match OPTIONS["api"]:
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(MODEL, provider=AnthropicProvider(base_url=URL, api_key=KEY))
        case "google":
            from google.genai import Client
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            client = Client(api_key=KEY, http_options={"base_url": URL})
            return GoogleModel(MODEL, provider=GoogleProvider(client=client))
        case api:
            from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            kind = OpenAIResponsesModel if api == "responses" else OpenAIChatModel
            return kind(MODEL, provider=OpenAIProvider(base_url=f"{URL}/v1", api_key=KEY))


def told(tool):
    """The tool with its exceptions as messages for the model."""

    @functools.wraps(tool)
    def run(*args, **kwargs):
        try:
            return tool(*args, **kwargs)
        except Exception as error:
            raise ModelRetry(f"{type(error).__name__}: {error}") from error

    return run


async def events(_, stream):
    async for _ in stream:
        pass


async def session():
    agent = Agent(model(), tools=[told(tool) for tool in TOOLS], retries=3)
    handler = {} if OPTIONS.get("stream") == "no" else {"event_stream_handler": events}
    history, text = None, ""
    for prompt in turns():
        result = await agent.run(prompt, message_history=history, **handler)
        history, text = result.all_messages(), result.output
    return text


main(lambda: asyncio.run(session()))
