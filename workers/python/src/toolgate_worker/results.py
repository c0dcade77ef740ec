"""Definitions and results as the negotiated protocol revision spells them."""

from __future__ import annotations

import traceback
from typing import Any

from . import content
from .definition import Tool
from .errors import ToolError
from .protocol import Message, is_stateless

STRUCTURED_SINCE = "2025-06-18"
AUDIO_SINCE = "2025-03-26"


def tool_definition(tool: Tool, revision: str) -> Message:
    """Returns an entry of `tools/list`."""
    definition: Message = {"name": tool.name}
    if tool.options.title:
        definition["title"] = tool.options.title
    if tool.description:
        definition["description"] = tool.description
    definition["inputSchema"] = tool.input_schema
    if tool.output_schema is not None and revision >= STRUCTURED_SINCE:
        definition["outputSchema"] = _output_schema(tool.output_schema, revision)
    annotations, meta = tool.annotations(), tool.meta()
    if annotations:
        definition["annotations"] = annotations
    if meta:
        definition["_meta"] = meta
    return definition


def call_result(tool: Tool, value: Any, revision: str) -> Message:
    """Returns the result of a call that succeeded."""
    result: Message = {"content": [_supported(block, revision) for block in content.blocks(value)]}
    if revision < STRUCTURED_SINCE or content.has_media(value):
        return result
    schema = tool.output_schema
    if schema is None and (value is None or isinstance(value, str)):
        return result
    encoded = content.to_json(value).value
    if is_stateless(revision):
        result["structuredContent"] = encoded
    elif schema is not None:
        result["structuredContent"] = encoded if _is_object(schema) else {"result": encoded}
    elif isinstance(encoded, dict):
        result["structuredContent"] = encoded
    if not result["content"]:
        result["content"] = [{"type": "text", "text": content.dumps(encoded)}]
    return result


def error_result(text: str) -> Message:
    """Returns the result of a call that failed."""
    return {"content": [{"type": "text", "text": content.clean(text)}], "isError": True}


def describe_error(error: BaseException, with_traceback: bool) -> str:
    """Returns the text of an exception for the model."""
    if isinstance(error, ToolError):
        text = str(error) or "the tool failed"
    elif isinstance(error, SystemExit):
        text = f"the tool tried to end the process: SystemExit({error.code!r})"
    else:
        text = _text(error)
    if with_traceback:
        text += "\n\n" + "".join(
            traceback.format_exception(type(error), error, error.__traceback__)
        )
    return text


def _text(error: BaseException) -> str:
    """Returns the type and the text of an exception whose `str` may fail, too."""
    name = type(error).__name__
    try:
        return f"{name}: {error}" if str(error) else name
    except Exception:
        return name


def _is_object(schema: Message) -> bool:
    return schema.get("type") == "object"


def _output_schema(schema: Message, revision: str) -> Message:
    """Wraps schemas of other types for revisions whose structured content is an object."""
    if is_stateless(revision) or _is_object(schema):
        return schema
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    wrapped: Message = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return {**wrapped, "$defs": schema["$defs"]} if "$defs" in schema else wrapped


def _supported(block: content.Block, revision: str) -> content.Block:
    """Replaces blocks that the revision does not have."""
    if block["type"] == "audio" and revision < AUDIO_SINCE:
        resource = {"uri": "file:///audio", "mimeType": block["mimeType"], "blob": block["data"]}
        return {"type": "resource", "resource": resource}
    if block["type"] == "resource_link" and revision < STRUCTURED_SINCE:
        return {"type": "text", "text": f"{block['name']}: {block['uri']}"}
    return block
