"""claude-agent-sdk: Claude Code as a library, with tools that run in this process."""

import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool
from toolbox import COMMAND, MODEL, MOST, OPTIONS, PROMPT, main, run, specs


def made(name, about, schema):
    async def runs(arguments):
        text, failed = await asyncio.to_thread(run, name, arguments)
        return {"content": [{"type": "text", "text": text}], "is_error": failed}

    return tool(name, about, schema)(runs)


async def session():
    # The server of odd tools is a separate process, which the SDK starts.
    if COMMAND:
        servers = {"odd": {"type": "stdio", "command": COMMAND[0], "args": COMMAND[1:]}}
    else:
        servers = {"lab": create_sdk_mcp_server("lab", tools=[made(*it) for it in specs()])}
    options = ClaudeAgentOptions(
        model=MODEL,
        tools=[],
        mcp_servers={} if OPTIONS.get("tools") == "no" else servers,
        allowed_tools=[f"mcp__{name}" for name in servers],
        strict_mcp_config=True,
        max_turns=MOST,
        setting_sources=[],
        include_partial_messages=OPTIONS.get("stream") != "no",
        continue_conversation=OPTIONS.get("again") == "yes",
    )
    async for message in query(prompt=PROMPT, options=options):
        if isinstance(message, ResultMessage):
            if message.is_error:
                raise RuntimeError(message.result)
            return message.result
    raise RuntimeError("it does not end")


def program():
    return asyncio.run(session())


main(program)
