"""Runs one scenario through google-genai and prints the outcome as JSON.

The scenario comes on the standard input. The tools do what those of `main.rs` do.
"""

import asyncio
import json
import logging
import sys
import warnings

from google import genai
from google.genai import types

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

running = 0
most_at_once = 0


async def lookup(city: str) -> str:
    """Looks a city's weather up."""
    global running, most_at_once
    running += 1
    most_at_once = max(most_at_once, running)
    await asyncio.sleep(0.05)
    running -= 1
    return f"20 degrees in {city}"


async def clock() -> str:
    """Tells the time."""
    return "noon"


async def flaky(reason: str) -> str:
    """Fails."""
    raise RuntimeError(reason)


ASK = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="ask",
            description="Asks the user.",
            parameters_json_schema={
                "type": "object",
                "properties": {"question": {"type": "string"}},
                "required": ["question"],
            },
        )
    ]
)

TOOLS = {"lookup": lookup, "clock": clock, "flaky": flaky, "ask": ASK}


async def run(scenario):
    client = genai.Client(
        api_key="a key",
        http_options=types.HttpOptions(base_url=scenario["base_url"], api_version="v1beta"),
    )
    config = types.GenerateContentConfig(tools=[TOOLS[name] for name in scenario["tools"]])
    if scenario["any"]:
        config.tool_config = types.ToolConfig(
            function_calling_config=types.FunctionCallingConfig(mode="ANY")
        )
    arguments = {"model": scenario["model"], "contents": scenario["prompt"], "config": config}
    if scenario["stream"]:
        text, calls = "", []
        async for chunk in await client.aio.models.generate_content_stream(**arguments):
            for part in (chunk.candidates or [types.Candidate()])[0].content.parts or []:
                if part.text:
                    text += part.text
                if part.function_call:
                    calls.append(part.function_call.name)
                    text = ""
        return {"text": text, "open": []}
    response = await client.aio.models.generate_content(**arguments)
    candidate = (response.candidates or [types.Candidate()])[0]
    parts = (candidate.content.parts if candidate.content else None) or []
    return {
        "text": "".join(part.text for part in parts if part.text and not part.thought),
        "open": [part.function_call.name for part in parts if part.function_call],
    }


def main():
    scenario = json.load(sys.stdin)
    try:
        outcome = asyncio.run(run(scenario))
    except Exception as error:  # What the program would see.
        outcome = {"error": f"{type(error).__name__}: {error}"}
    outcome["most_at_once"] = most_at_once
    outcome["version"] = genai.__version__
    print(json.dumps(outcome))


main()
