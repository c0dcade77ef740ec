"""anthropic: the tool runner, which creates a thread first."""

import anthropic
from anthropic import beta_tool
from toolbox import KEY, MODEL, OPTIONS, PROMPT, TOOLS, URL, main


def program():
    client = anthropic.Anthropic(base_url=URL, api_key=KEY)
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=8192,
        messages=[{"role": "user", "content": PROMPT}],
        tools=[beta_tool(tool) for tool in TOOLS],
        stream=OPTIONS.get("stream") != "no",
    )
    last = None
    for message in runner:
        if hasattr(message, "get_final_message"):
            for _ in message:
                pass
            message = message.get_final_message()
        last = message
    if last.stop_reason == "refusal":
        raise RuntimeError("refused")
    return last.content[-1].text


main(program)
