"""langchain: messages with tools, echoed as its users do."""

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool as made_tool
from toolbox import KEY, MODEL, MOST, OPTIONS, PROMPT, TOOLS, URL, main, run


def model():
    match OPTIONS["api"]:
        case "anthropic":
            from langchain_anthropic import ChatAnthropic

            thinking = {"type": "enabled", "budget_tokens": 2048}
            return ChatAnthropic(
                model=MODEL, base_url=URL, api_key=KEY, max_tokens=8192, thinking=thinking
            )
        case "google":
            from langchain_google_genai import ChatGoogleGenerativeAI

            return ChatGoogleGenerativeAI(model=MODEL, base_url=URL, google_api_key=KEY)
        case api:
            from langchain_openai import ChatOpenAI

            return ChatOpenAI(
                model=MODEL, base_url=f"{URL}/v1", api_key=KEY, use_responses_api=api == "responses"
            )


def program():
    bound = model().bind_tools([made_tool(tool) for tool in TOOLS])
    messages = [HumanMessage(PROMPT)]
    for _ in range(MOST):
        if OPTIONS.get("stream") == "no":
            answer = bound.invoke(messages)
        else:
            answer = None
            for chunk in bound.stream(messages):
                answer = chunk if answer is None else answer + chunk
        messages.append(answer)
        if not answer.tool_calls:
            return str(answer.text)
        for call in answer.tool_calls:
            text, failed = run(call["name"], call["args"])
            status = "error" if failed else "success"
            result = {"tool_call_id": call["id"], "name": call["name"], "status": status}
            messages.append(ToolMessage(text, **result))
    raise RuntimeError("it does not end")


main(program)
