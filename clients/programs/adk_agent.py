"""google-adk: an agent in memory, on the Gemini API."""

import asyncio
import functools
import os

from toolbox import KEY, MODEL, OPTIONS, TOOLS, URL, main, turns

os.environ.update(GOOGLE_GEMINI_BASE_URL=URL, GOOGLE_API_KEY=KEY, GOOGLE_GENAI_USE_VERTEXAI="0")

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part


def told(tool):
    """The tool with its exceptions as results, as its documentation advises."""

    @functools.wraps(tool)
    def run(*args, **kwargs):
        try:
            return {"result": tool(*args, **kwargs)}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}

    return run


async def session():
    agent = LlmAgent(name="lab", model=MODEL, tools=[told(tool) for tool in TOOLS])
    runner = InMemoryRunner(agent=agent, app_name="lab")
    place = await runner.session_service.create_session(app_name="lab", user_id="user")
    mode = StreamingMode.NONE if OPTIONS.get("stream") == "no" else StreamingMode.SSE
    text = ""
    for prompt in turns():
        content = Content(role="user", parts=[Part(text=prompt)])
        running = runner.run_async(
            user_id="user", session_id=place.id, new_message=content, run_config=RunConfig(streaming_mode=mode)
        )
        async for event in running:
            if event.is_final_response() and event.content and not event.partial:
                text = "".join(part.text or "" for part in event.content.parts if not part.thought)
            if event.error_code:
                raise RuntimeError(f"{event.error_code}: {event.error_message}")
    return text


main(lambda: asyncio.run(session()))
