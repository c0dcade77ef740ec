"""openai-agents: its own loop, on Responses or Chat Completions."""

import asyncio

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel
from agents import Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from toolbox import KEY, MODEL, MOST, OPTIONS, PROMPT, TOOLS, URL, main


def program():
    return asyncio.run(session())


async def session():
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY)
    if OPTIONS["api"] == "chat":
        model, settings = OpenAIChatCompletionsModel, ModelSettings()
    else:
        include = ["reasoning.encrypted_content"]
        model, settings = OpenAIResponsesModel, ModelSettings(store=False, response_include=include)
    agent = Agent(
        name="lab",
        model=model(model=MODEL, openai_client=client),
        model_settings=settings,
        tools=[function_tool(tool) for tool in TOOLS],
    )
    running = Runner.run_streamed(agent, PROMPT, max_turns=MOST)
    async for _ in running.stream_events():
        pass
    return running.final_output


main(program)
