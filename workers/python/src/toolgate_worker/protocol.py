"""Messages of the Model Context Protocol: revisions, envelopes and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .content import clean, dumps
from .errors import LoadError

# Revisions that start with `initialize`, oldest first, and revisions with metadata in each request.
HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_REVISIONS = ("2026-07-28",)
REVISIONS = (*reversed(STATELESS_REVISIONS), *reversed(HANDSHAKE_REVISIONS))
# Revisions that allow arrays of messages.
BATCH_REVISIONS = ("2024-11-05", "2025-03-26")

MCP_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = MCP_PREFIX + "protocolVersion"
CAPABILITIES_KEY = MCP_PREFIX + "clientCapabilities"
LOG_LEVEL_KEY = MCP_PREFIX + "logLevel"
SERVER_INFO_KEY = MCP_PREFIX + "serverInfo"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_PROTOCOL_VERSION = -32022

Message = dict[str, Any]
RequestId = str | int

ID_PATTERN = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\\x00-\x1f]|\\.){0,200}")\s*'
VERSION_PATTERN = rb'"jsonrpc"\s*:\s*"2\.0"\s*'
ID_AT_START = re.compile(rb"\s*\{\s*(?:" + VERSION_PATTERN + rb",\s*)?" + ID_PATTERN + rb",")
ID_AT_END = re.compile(rb",\s*" + ID_PATTERN + rb"(?:,\s*" + VERSION_PATTERN + rb")?\}\s*$")


class ProtocolError(Exception):
    """An error response."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True)
class Request:
    """A request, or a notification if `id` is `None`."""

    id: RequestId | None
    method: str
    params: Mapping[str, Any]

    @property
    def meta(self) -> Mapping[str, Any]:
        """Returns `_meta` of the parameters."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


def is_stateless(revision: str) -> bool:
    """Whether a revision carries its metadata in each request."""
    return revision in STATELESS_REVISIONS


def decode(line: bytes) -> Any:
    """Returns the JSON value of a line."""
    try:
        return json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ProtocolError(PARSE_ERROR, f"the line is not JSON: {reason}") from error


def read_request(message: Any) -> Request | None:
    """Returns the request or notification of a message, or `None` for a response."""
    if not isinstance(message, dict):
        raise ProtocolError(INVALID_REQUEST, "a message is a JSON object")
    method = message.get("method")
    if "method" not in message and ("result" in message or "error" in message):
        return None
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise ProtocolError(INVALID_REQUEST, 'a request has `"jsonrpc": "2.0"` and a method')
    if "id" in message and type(message["id"]) not in (str, int):
        raise ProtocolError(INVALID_REQUEST, "the id of a request is a string or an integer")
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise ProtocolError(INVALID_PARAMS, "the parameters are not a JSON object")
    return Request(message.get("id"), method, params)


def readable_id(message: Any) -> RequestId | None:
    """Returns the id of a message that may be malformed otherwise."""
    request_id = message.get("id") if isinstance(message, dict) else None
    return request_id if type(request_id) in (str, int) else None


def id_of_oversized(head: bytes, tail: bytes) -> RequestId | None:
    """Finds the id at the start or at the end of a line that is too long to parse."""
    match = ID_AT_START.match(head) or ID_AT_END.search(tail)
    if match is None:
        return None
    try:
        return readable_id({"id": json.loads(match.group(1))})
    except ValueError:
        return None


def response(request_id: RequestId, result: Message) -> Message:
    """Returns a result response."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_response(request_id: RequestId | None, error: ProtocolError) -> Message:
    """Returns an error response; an unknown id is left out, as MCP requires."""
    message: Message = {"jsonrpc": "2.0"}
    if request_id is not None:
        message["id"] = request_id
    message["error"] = {"code": error.code, "message": clean(error.message)}
    if error.data is not None:
        message["error"]["data"] = error.data
    return message


def notification(method: str, params: Message) -> Message:
    """Returns a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def encode(message: Any) -> bytes:
    """Returns a message as one line, without its end."""
    return dumps(message).encode("utf-8", "replace")


def unsupported_version(requested: Any) -> ProtocolError:
    """Returns the error for a revision that this package does not speak."""
    shown = requested if isinstance(requested, str) else str(type(requested).__name__)
    data = {"supported": list(REVISIONS), "requested": shown}
    return ProtocolError(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)


def load_failure(error: LoadError) -> ProtocolError:
    """Returns the answer to every request when the user's module cannot be loaded."""
    return ProtocolError(INTERNAL_ERROR, error.message, error.to_json())


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
