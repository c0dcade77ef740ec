"""anthropic: the tool runner in a thread, ten steps, streamed or not."""

import anthropic
from anthropic import beta_tool
from toolbox import KEY, MODEL, OPTIONS, PROMPT, URL, main

taken = []


@beta_tool
def step(n: int) -> str:
    """Take a step."""
    taken.append(n)
    return f"step {n} is taken"


def program():
    client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0)
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=8192,
        system="Take the steps in order.",
        messages=[{"role": "user", "content": PROMPT}],
        tools=[step],
        stream=OPTIONS["stream"] == "yes",
    )
    last = None
    for message in runner:
        last = message.get_final_message() if hasattr(message, "get_final_message") else message
    assert taken == list(range(10)), taken
    return last.content[-1].text


main(program)
