"""The MCP server: answers requests of both protocol eras and starts calls."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from . import protocol
from .content import to_json
from .context import LOG_LEVELS, Context, Progress
from .definition import META_PREFIX, Tool
from .errors import LoadError
from .protocol import Message, ProtocolError, Request, RequestId
from .results import error_result, tool_definition
from .run import Call, Runner, deadline_after
from .state import Session, Sessions
from .stdio import MAX_LINE_BYTES, LineWriter, Oversized

MAX_SESSION_ID_CHARS = 256
# A session id that no host can send.
CONNECTION_SESSION = "\0connection"

Send = Callable[[Message], None]
Handler = Callable[[Request, str], Message]


class Server:
    """State of one connection."""

    def __init__(
        self,
        writer: LineWriter,
        runner: Runner,
        sessions: Sessions,
        tools: list[Tool],
        info: Message,
        failure: LoadError | None = None,
    ) -> None:
        self._writer = writer
        self._runner = runner
        self._sessions = sessions
        self._tools = {tool.name: tool for tool in tools}
        self._info = info
        self._failure = failure
        self._revision: str | None = None
        self._log_level: str | None = None
        self._calls: dict[RequestId, Call] = {}
        self._lock = threading.Lock()
        self._handlers: dict[str, Handler] = {
            "server/discover": self._discover,
            "tools/list": self._list,
            "logging/setLevel": self._set_log_level,
            "ping": lambda request, revision: {},
        }

    def feed(self, line: bytes | Oversized) -> None:
        """Handles one line. Never raises for bad input."""
        if isinstance(line, Oversized):
            text = f"the line has {line.length} bytes; the limit is {MAX_LINE_BYTES}"
            error = ProtocolError(protocol.INVALID_REQUEST, text)
            request_id = protocol.id_of_oversized(line.head, line.tail)
            self._send(protocol.error_response(request_id, error))
            return
        if not line.strip():
            return
        try:
            message = protocol.decode(line)
        except ProtocolError as error:
            self._send(protocol.error_response(None, error))
            return
        if isinstance(message, list) and message and self._revision in protocol.BATCH_REVISIONS:
            self._feed_batch(message)
        else:
            self._feed_message(message, self._send)

    def _feed_batch(self, messages: list[Any]) -> None:
        """Handles an array of messages. The responses form an array, too."""
        expected = sum(1 for message in messages if _wants_response(message))
        responses: list[bytes] = []
        lock = threading.Lock()

        def collect(response: Message) -> None:
            line = _bounded_line(response)
            with lock:
                responses.append(line)
                is_complete = len(responses) == expected
            if is_complete:
                self._writer.write(b"[" + b",".join(responses) + b"]")

        for message in messages:
            self._feed_message(message, collect)

    def _feed_message(self, message: Any, send: Send) -> None:
        try:
            request = protocol.read_request(message)
            if request is None:
                return
            if request.id is None:
                self._notified(request)
                return
            result = self._requested(request, request.id, send)
            if result is not None:
                send(protocol.response(request.id, result))
        except ProtocolError as error:
            send(protocol.error_response(protocol.readable_id(message), error))

    def _notified(self, request: Request) -> None:
        if request.method != "notifications/cancelled":
            return
        request_id = request.params.get("requestId")
        if type(request_id) in (str, int):
            with self._lock:
                call = self._calls.get(request_id)  # type: ignore[arg-type]
            if call is not None:
                self._runner.cancel(call)

    def _requested(self, request: Request, request_id: RequestId, send: Send) -> Message | None:
        """Returns the result, or `None` if a call was started that will answer."""
        if self._failure is not None:
            raise protocol.load_failure(self._failure)
        if request.method == "initialize":
            return self._initialize(request)
        revision = self._revision_of(request)
        if request.method == "tools/call":
            self._call(request, request_id, revision, send)
            return None
        handler = self._handlers.get(request.method)
        is_stateless = protocol.is_stateless(revision)
        is_removed = request.method in ("ping", "logging/setLevel") and is_stateless
        is_new = request.method == "server/discover" and not is_stateless
        if handler is None or is_removed or is_new:
            text = f"Method not found: {request.method[:100]}"
            raise ProtocolError(protocol.METHOD_NOT_FOUND, text)
        return self._completed(handler(request, revision), revision)

    def _revision_of(self, request: Request) -> str:
        """Returns the revision that a request is to be answered in."""
        if protocol.VERSION_KEY in request.meta:
            version = request.meta[protocol.VERSION_KEY]
            if version not in protocol.STATELESS_REVISIONS:
                raise protocol.unsupported_version(version)
            if not isinstance(request.meta.get(protocol.CAPABILITIES_KEY), dict):
                text = f"`_meta` lacks `{protocol.CAPABILITIES_KEY}`"
                raise ProtocolError(protocol.INVALID_PARAMS, text)
            return str(version)
        if self._revision is not None:
            return self._revision
        if request.method == "ping":
            return protocol.HANDSHAKE_REVISIONS[-1]
        text = f"`_meta` lacks `{protocol.VERSION_KEY}`, and there was no `initialize`"
        raise ProtocolError(protocol.INVALID_PARAMS, text)

    def _completed(self, result: Message, revision: str) -> Message:
        """Adds the members that stateless revisions require of every result."""
        if not protocol.is_stateless(revision):
            return result
        meta = {**result.get("_meta", {}), protocol.SERVER_INFO_KEY: self._info}
        return {"resultType": "complete", **result, "_meta": meta}

    def _initialize(self, request: Request) -> Message:
        wanted = request.params.get("protocolVersion")
        known = wanted in protocol.HANDSHAKE_REVISIONS
        self._revision = str(wanted) if known else protocol.HANDSHAKE_REVISIONS[-1]
        return {
            "protocolVersion": self._revision,
            "capabilities": {"tools": {}, "logging": {}},
            "serverInfo": self._info,
        }

    def _discover(self, request: Request, revision: str) -> Message:
        return {
            "supportedVersions": list(protocol.REVISIONS),
            "capabilities": {"tools": {}, "logging": {}},
            "ttlMs": 0,
            "cacheScope": "public",
        }

    def _list(self, request: Request, revision: str) -> Message:
        if request.params.get("cursor"):
            raise ProtocolError(protocol.INVALID_PARAMS, "unknown cursor: there is one page")
        tools = [tool_definition(tool, revision) for tool in self._tools.values()]
        is_stateless = protocol.is_stateless(revision)
        return {"tools": tools, **({"ttlMs": 0, "cacheScope": "public"} if is_stateless else {})}

    def _set_log_level(self, request: Request, revision: str) -> Message:
        level = request.params.get("level")
        if level not in LOG_LEVELS:
            raise ProtocolError(protocol.INVALID_PARAMS, "unknown log level")
        self._log_level = str(level)
        return {}

    def _call(self, request: Request, request_id: RequestId, revision: str, send: Send) -> None:
        name = request.params.get("name")
        session_id = _text(request, "session")
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None or not tool.is_for(session_id):
            raise ProtocolError(protocol.INVALID_PARAMS, f"Unknown tool: {str(name)[:200]}")
        with self._lock:
            if request_id in self._calls:
                text = "the id belongs to a request that is still in progress"
                raise ProtocolError(protocol.INVALID_REQUEST, text)
        session, key = self._session(session_id, revision)

        def forget() -> None:
            with self._lock:
                if self._calls.get(request_id) is call:
                    del self._calls[request_id]

        def reply(result: Message) -> None:
            forget()
            send(protocol.response(request_id, self._completed(result, revision)))

        def on_end() -> None:
            forget()
            if key is not None:
                self._sessions.release(key)

        deadline = deadline_after(tool.options.timeout, _deadline_seconds(request))
        context = Context(
            tool=tool.name,
            session=session,
            session_id=session_id,
            call_id=_text(request, "call"),
            owner=_text(request, "owner"),
            meta=request.meta,
            deadline=deadline,
            send_progress=self._progress_sender(request),
            send_log=self._log_sender(request, revision, tool),
        )
        arguments = request.params.get("arguments")
        arguments = {} if arguments is None else arguments
        call = Call(tool, arguments, context, revision, reply, on_end)
        with self._lock:
            self._calls[request_id] = call
        self._runner.start(call)

    def _session(self, session_id: str | None, revision: str) -> tuple[Session, str | None]:
        """Returns the state for a call and the key to release it with."""
        if session_id is None and protocol.is_stateless(revision):
            # Without an id, calls of several users may share the connection.
            return Session(), None
        key = CONNECTION_SESSION if session_id is None else session_id
        return self._sessions.acquire(key), key

    def _progress_sender(self, request: Request) -> Callable[[Progress], None]:
        token = request.meta.get("progressToken")
        if type(token) not in (str, int):
            return lambda progress: None

        def send(progress: Progress) -> None:
            params: Message = {"progressToken": token, "progress": progress.done}
            if progress.total is not None:
                params["total"] = progress.total
            if progress.message is not None:
                params["message"] = str(progress.message)
            self._send_news("notifications/progress", params)

        return send

    def _log_sender(
        self, request: Request, revision: str, tool: Tool
    ) -> Callable[[str, Any], None]:
        def send(level: str, data: Any) -> None:
            encoded = to_json(data).value
            print(f"toolgate-worker: {tool.name}: {level}: {encoded}", file=sys.stderr)
            is_stateless = protocol.is_stateless(revision)
            least = request.meta.get(protocol.LOG_LEVEL_KEY) if is_stateless else self._log_level
            if least in LOG_LEVELS and LOG_LEVELS.index(level) >= LOG_LEVELS.index(str(least)):
                params = {"level": level, "logger": tool.name, "data": encoded}
                self._send_news("notifications/message", params)

        return send

    def _send_news(self, method: str, params: Message) -> None:
        message = protocol.notification(method, to_json(params).value)
        self._writer.write_news(protocol.encode(message))

    def _send(self, message: Message) -> None:
        self._writer.write(_bounded_line(message))


def _bounded_line(message: Message) -> bytes:
    """Encodes a response. A result over the limit of a line becomes an error result."""
    line = protocol.encode(message)
    if len(line) <= MAX_LINE_BYTES or "result" not in message:
        return line
    text = f"the result has {len(line)} bytes; the limit is {MAX_LINE_BYTES}"
    result = {**message["result"], **error_result(text)}
    result.pop("structuredContent", None)
    return protocol.encode({**message, "result": result})


def _wants_response(message: Any) -> bool:
    """Whether a message of a batch is answered: a request, or not a valid message."""
    try:
        request = protocol.read_request(message)
    except ProtocolError:
        return True
    return request is not None and request.id is not None


def _text(request: Request, name: str) -> str | None:
    value = request.meta.get(META_PREFIX + name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= MAX_SESSION_ID_CHARS:
        text = f"`{META_PREFIX}{name}` is a string of 1 to {MAX_SESSION_ID_CHARS} characters"
        raise ProtocolError(protocol.INVALID_PARAMS, text)
    return value


def _deadline_seconds(request: Request) -> float | None:
    value = request.meta.get(META_PREFIX + "deadlineMs")
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value <= 1e10:
        text = f"`{META_PREFIX}deadlineMs` is a number of milliseconds"
        raise ProtocolError(protocol.INVALID_PARAMS, text)
    return float(value) / 1000
