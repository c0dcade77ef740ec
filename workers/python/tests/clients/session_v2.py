"""A session of the official `mcp` 2.x client, in the given mode. Prints what it saw as JSON."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main(python: str, source: str, module: str, mode: str) -> None:
    seen = {}
    parameters = StdioServerParameters(
        command=python, args=["-m", "toolgate_worker", module], env={"PYTHONPATH": source}
    )
    async with Client(parameters, mode=mode) as client:
        seen["version"] = client.protocol_version
        listing = await client.list_tools()
        seen["tools"] = {tool.name: tool.input_schema for tool in listing.tools}
        reports = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            reports.append([done, total, message])

        meta = {"dev.toolgate/session": "s1"}
        result = await client.call_tool("get_current_weather", {"location": "Paris"})
        seen["weather"] = result.structured_content
        seen["server"] = client.server_info.name
        seen["sum"] = (await client.call_tool("add", {"a": 1, "b": 2})).structured_content
        result = await client.call_tool("count", {"to": 2}, progress_callback=progress)
        seen["counted"] = result.structured_content
        seen["progress"] = reports
        result = await client.call_tool("fail", {"kind": "deliberate"})
        seen["error"] = [result.is_error, result.content[0].text]
        result = await client.call_tool("picture")
        seen["picture"] = [block.type for block in result.content]
        seen["noise"] = (await client.call_tool("noise")).content[0].text
        both = await asyncio.gather(
            client.call_tool("wait_for_gate"), client.call_tool("open_gate")
        )
        seen["parallel"] = both[0].content[0].text
        await client.call_tool("remember", {"value": "x"}, meta=meta)
        result = await client.call_tool("remember", {"value": "y"}, meta=meta)
        seen["session"] = result.structured_content["seen"]
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:5]))
