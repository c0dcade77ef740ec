"""Strands Agents: its own loop, always streamed."""

import asyncio

from strands import Agent, tool
from toolbox import KEY, MODEL, OPTIONS, TOOLS, URL, main, turns


def model():
    match OPTIONS["api"]:
        case "anthropic":
            from strands.models.anthropic import AnthropicModel

            return AnthropicModel(client_args={"api_key": KEY, "base_url": URL}, model_id=MODEL, max_tokens=8192)
        case "google":
            from strands.models.gemini import GeminiModel

            return GeminiModel(client_args={"api_key": KEY, "http_options": {"base_url": URL}}, model_id=MODEL)
        case _:
            from strands.models.openai import OpenAIModel

            return OpenAIModel(client_args={"api_key": KEY, "base_url": f"{URL}/v1"}, model_id=MODEL)


async def session():
    # One event loop: the SDKs' connections belong to it.
    agent = Agent(model=model(), tools=[tool(it) for it in TOOLS], callback_handler=None)
    text = ""
    for prompt in turns():
        text = str(await agent.invoke_async(prompt))
    return text


main(lambda: asyncio.run(session()))
