"""langchain: messages with tools, echoed as in its documentation."""

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool as made_tool
from toolbox import FORCED, KEY, MEDIA, MOST, OPTIONS, PROMPT, SERVER, TOOLS, URL
from toolbox import main, model as model_of, run, specs


def model(name):
    match OPTIONS["api"]:
        case "anthropic":
            from langchain_anthropic import ChatAnthropic

            # Thinking excludes a forced call.
            thinking = None if FORCED else {"type": "enabled", "budget_tokens": 2048}
            return ChatAnthropic(
                model=name, base_url=URL, api_key=KEY, max_tokens=8192, thinking=thinking
            )
        case "google":
            from langchain_google_genai import ChatGoogleGenerativeAI

            return ChatGoogleGenerativeAI(model=name, base_url=URL, google_api_key=KEY)
        case api:
            from langchain_openai import ChatOpenAI

            return ChatOpenAI(
                model=name, base_url=f"{URL}/v1", api_key=KEY, use_responses_api=api == "responses"
            )


def declared():
    if SERVER:
        # In the form that all of langchain's models accept.
        functions = [{"name": name, "description": about, "parameters": it} for name, about, it in specs()]
        return [{"type": "function", "function": it} for it in functions]
    return [made_tool(tool) for tool in TOOLS]


def bound(at):
    if OPTIONS.get("tools") == "no":
        return model(model_of(at))
    choice = {"tool_choice": FORCED} if FORCED and at == 0 else {}
    return model(model_of(at)).bind_tools(declared(), **choice)


def answered(call):
    text, failed = run(call["name"], call["args"])
    content = text
    if call["name"] in MEDIA:
        mime, data = MEDIA[call["name"]]
        kind = "image" if mime.startswith("image/") else "file"
        content = [{"type": "text", "text": text}, {"type": kind, "base64": data, "mime_type": mime}]
    status = "error" if failed else "success"
    return ToolMessage(content, tool_call_id=call["id"], name=call["name"], status=status)


def program():
    messages = [HumanMessage(PROMPT)]
    for at in range(MOST):
        if OPTIONS.get("stream") == "no":
            answer = bound(at).invoke(messages)
        else:
            answer = None
            for chunk in bound(at).stream(messages):
                answer = chunk if answer is None else answer + chunk
        messages.append(answer)
        if not answer.tool_calls:
            about = answer.response_metadata
            # Each package has its own name for the finish reason; a truncated answer has none.
            if not answer.text or not any(about.get(it) for it in ("finish_reason", "stop_reason", "status")):
                raise RuntimeError(f"it ended early: {about}")
            return str(answer.text)
        messages += [answered(call) for call in answer.tool_calls]
    raise RuntimeError("it does not end")


main(program)
