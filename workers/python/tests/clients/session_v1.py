"""A session of the official `mcp` 1.x client. Prints one JSON object of what it saw."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(python: str, source: str, module: str) -> None:
    seen = {}
    parameters = StdioServerParameters(
        command=python, args=["-m", "toolgate_worker", module], env={"PYTHONPATH": source}
    )
    async with stdio_client(parameters) as (reading, writing):
        async with ClientSession(reading, writing) as session:
            greeting = await session.initialize()
            seen["version"] = greeting.protocolVersion
            seen["server"] = greeting.serverInfo.name
            listing = await session.list_tools()
            seen["tools"] = {tool.name: tool.inputSchema for tool in listing.tools}
            reports = []

            async def progress(done: float, total: float | None, message: str | None) -> None:
                reports.append([done, total, message])

            result = await session.call_tool("get_current_weather", {"location": "Paris"})
            seen["weather"] = result.structuredContent
            seen["sum"] = (await session.call_tool("add", {"a": 1, "b": 2})).structuredContent
            result = await session.call_tool("count", {"to": 2}, progress_callback=progress)
            seen["counted"] = result.structuredContent
            seen["progress"] = reports
            result = await session.call_tool("fail", {"kind": "deliberate"})
            seen["error"] = [result.isError, result.content[0].text]
            result = await session.call_tool("picture")
            seen["picture"] = [block.type for block in result.content]
            seen["noise"] = (await session.call_tool("noise")).content[0].text
            both = await asyncio.gather(
                session.call_tool("wait_for_gate"), session.call_tool("open_gate")
            )
            seen["parallel"] = both[0].content[0].text
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:4]))
