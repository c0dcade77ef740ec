"""openai-agents: its own loop, on Responses or Chat Completions."""

import asyncio
from contextlib import AsyncExitStack

from agents import Agent, AgentOutputSchemaBase, ModelSettings, OpenAIChatCompletionsModel
from agents import OpenAIResponsesModel, Runner, ToolOutputFileContent, ToolOutputImage, WebSearchTool
from agents import function_tool, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI
from toolbox import COMMAND, FORCED, FORMAT, KEY, MEDIA, MODEL, MOST, OPTIONS, PROMPT, TOOLS, URL, main


class Report(AgentOutputSchemaBase):
    """Output schema without a Python class."""

    def is_plain_text(self):
        return False

    def name(self):
        return "report"

    def json_schema(self):
        return FORMAT

    def is_strict_json_schema(self):
        return True

    def validate_json(self, json_str):
        return json_str


@function_tool
def take_photo() -> ToolOutputImage:
    """Take a photo."""
    mime, data = MEDIA["take_photo"]
    return ToolOutputImage(image_url=f"data:{mime};base64,{data}")


@function_tool
def get_paper() -> ToolOutputFileContent:
    """Get a paper."""
    mime, data = MEDIA["get_paper"]
    return ToolOutputFileContent(file_data=f"data:{mime};base64,{data}", filename="paper.pdf")


def program():
    return asyncio.run(session())


async def session():
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY)
    if OPTIONS["api"] == "chat":
        model, settings = OpenAIChatCompletionsModel, {}
    else:
        include = ["reasoning.encrypted_content"]
        model, settings = OpenAIResponsesModel, {"store": False, "response_include": include}
    if FORCED:
        # The SDK stops forcing after the first call.
        settings["tool_choice"] = FORCED
    tools = [function_tool(it) for it in TOOLS if it.__name__ not in MEDIA]
    if "media" in OPTIONS:
        tools += [take_photo, get_paper]
    if "search" in OPTIONS:
        tools.append(WebSearchTool())
    async with AsyncExitStack() as stack:
        servers = []
        if COMMAND:
            parameters = {"command": COMMAND[0], "args": COMMAND[1:]}
            servers.append(await stack.enter_async_context(MCPServerStdio(params=parameters)))
        agent = Agent(
            name="lab",
            model=model(model=MODEL, openai_client=client),
            model_settings=ModelSettings(**settings),
            tools=[] if OPTIONS.get("tools") == "no" or COMMAND else tools,
            mcp_servers=servers,
            output_type=Report() if "format" in OPTIONS else None,
        )
        if OPTIONS.get("stream") == "no":
            return (await Runner.run(agent, PROMPT, max_turns=MOST)).final_output
        running = Runner.run_streamed(agent, PROMPT, max_turns=MOST)
        async for _ in running.stream_events():
            pass
        return running.final_output


main(program)
