"""Context of a running call: session, progress, log and cancellation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import Cancelled
from .state import Session

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


@dataclass(frozen=True)
class Progress:
    """Progress of a call. A generator yields it; `done` must grow."""

    done: float
    total: float | None = None
    message: str | None = None
    is_sent: bool = field(default=False, repr=False, compare=False)


@dataclass(frozen=True)
class Result:
    """The result of a generator, where a plain value would be ambiguous."""

    value: Any


class Context:
    """What a tool knows about its call. A parameter with this type is not shown to the model."""

    def __init__(
        self,
        *,
        tool: str = "",
        session: Session | None = None,
        session_id: str | None = None,
        call_id: str | None = None,
        owner: str | None = None,
        meta: Mapping[str, Any] | None = None,
        deadline: float | None = None,
        send_progress: Callable[[Progress], None] = lambda progress: None,
        send_log: Callable[[str, Any], None] = lambda level, data: None,
    ) -> None:
        self.tool = tool
        self.session = Session() if session is None else session
        self.session_id = session_id
        self.call_id = call_id
        self.owner = owner
        self.meta: Mapping[str, Any] = meta or {}
        self._deadline = deadline
        self._send_progress = send_progress
        self._send_log = send_log
        self._cancelled = threading.Event()
        self._last_done = float("-inf")
        self._lock = threading.Lock()

    @property
    def cancelled(self) -> bool:
        """Whether the host cancelled the call or its deadline passed."""
        return self._cancelled.is_set()

    @property
    def remaining_seconds(self) -> float | None:
        """Time until the deadline, or `None` if there is no deadline."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def raise_if_cancelled(self) -> None:
        """Raises `Cancelled` in a cancelled call."""
        if self.cancelled:
            raise Cancelled("the call was cancelled")

    def wait(self, seconds: float) -> bool:
        """Blocks a synchronous tool. Returns early, with `True`, when the call is cancelled."""
        return self._cancelled.wait(seconds)

    def progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> Progress:
        """Reports progress. Values that do not grow are ignored, as the protocol requires."""
        report = Progress(done, total, message, is_sent=True)
        with self._lock:
            if done <= self._last_done or self.cancelled:
                return report
            self._last_done = done
        self._send_progress(report)
        return report

    def result(self, value: Any) -> Result:
        """Marks the result of a generator: `yield ctx.result(value)`."""
        return Result(value)

    def log(self, message: Any, level: str = "info") -> None:
        """Writes a log message to stderr and, if the host asked for messages, to the host."""
        if level not in LOG_LEVELS:
            raise ValueError(f"unknown log level `{level}`; known are: {', '.join(LOG_LEVELS)}")
        self._send_log(level, message)

    def _cancel(self) -> None:
        self._cancelled.set()
