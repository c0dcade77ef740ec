"""Execution of calls: threads, the event loop, generators, order, deadlines, cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from .context import Context, Progress, Result
from .definition import Tool
from .errors import Cancelled, ToolError
from .protocol import Message
from .results import call_result, describe_error, error_result

MAX_THREADS = 32
MAX_CALLS = 1024
MAX_YIELDED_VALUES = 100_000


class Call:
    """One call: its context and its single answer."""

    def __init__(
        self,
        tool: Tool,
        arguments: Any,
        context: Context,
        revision: str,
        reply: Callable[[Message], None],
        on_end: Callable[[], None],
    ) -> None:
        self.tool = tool
        self.arguments = arguments
        self.context = context
        self.revision = revision
        self.on_end = on_end
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.has_ended = False
        self.is_abandoned = False
        self._reply: Callable[[Message], None] | None = reply
        self._lock = threading.Lock()

    def answer(self, result: Message) -> None:
        """Sends the answer, unless there was one or the call was cancelled."""
        with self._lock:
            reply, self._reply = self._reply, None
        if reply is not None:
            reply(result)

    def drop(self) -> None:
        """Makes later answers silent."""
        with self._lock:
            self._reply = None


class Runner:
    """Runs calls: synchronous tools on threads of its own, asynchronous ones on the given loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        max_threads: int = MAX_THREADS,
        max_calls: int = MAX_CALLS,
        shows_tracebacks: bool = False,
    ) -> None:
        self._loop = loop
        self._pool = ThreadPool(max_threads)
        self._max_calls = max_calls
        self._shows_tracebacks = shows_tracebacks
        self._calls: set[Call] = set()
        # Calls of a busy group wait here; a group without an entry is idle.
        self._waiting: dict[str, deque[Call]] = {}
        self._changed = threading.Condition()

    def start(self, call: Call) -> None:
        """Starts a call, or queues it after others of its group."""
        with self._changed:
            if len(self._calls) >= self._max_calls:
                call.answer(error_result(f"the worker is busy with {self._max_calls} calls"))
                call.on_end()
                return
            self._calls.add(call)
            if call.context.remaining_seconds is not None:
                self._on_loop(self._arm, call)
            group = call.tool.group()
            if group is not None:
                if group in self._waiting:
                    self._waiting[group].append(call)
                    return
                self._waiting[group] = deque()
        self._dispatch(call)

    def _on_loop(self, function: Callable[..., Any], *arguments: Any) -> None:
        # A closed loop means that the process ends.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def cancel(self, call: Call) -> None:
        """Cancels a call. It gets no answer."""
        call.drop()
        self._interrupt(call)

    def cancel_all(self) -> None:
        """Cancels every call."""
        with self._changed:
            calls = list(self._calls)
        for call in calls:
            self.cancel(call)

    def wait_idle(self, timeout_seconds: float) -> bool:
        """Waits until no call runs. Must not be called on the loop's thread."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._calls, timeout_seconds)

    def _dispatch(self, call: Call) -> None:
        if call.tool.is_async:
            self._on_loop(self._start_task, call, None)
        elif call.tool.options.inline:
            self._on_loop(self._run_function, call)
        else:
            self._pool.submit(lambda: self._run_function(call))

    def _interrupt(self, call: Call) -> None:
        with self._changed:
            if not call.has_ended and not call.is_abandoned:
                # The function may go on for ever; its thread is not missed.
                call.is_abandoned = True
                self._pool.resize(1)
        call.context._cancel()
        self._on_loop(lambda: call.task.cancel() if call.task else None)

    def _arm(self, call: Call) -> None:
        timeout = call.context.remaining_seconds
        if timeout is not None and not call.has_ended:
            call.timer = self._loop.call_later(timeout, self._expire, call)

    def _expire(self, call: Call) -> None:
        call.answer(error_result("the call took longer than its deadline allows"))
        self._interrupt(call)

    def _run_function(self, call: Call) -> None:
        """Runs a function to its end, or hands over to the loop if it returns an awaitable."""
        try:
            call.context.raise_if_cancelled()
            value = self._invoke(call)
            if inspect.isgenerator(value):
                value = _drive(value, call)
            if inspect.isawaitable(value) or inspect.isasyncgen(value):
                self._on_loop(self._start_task, call, value)
                return
            self._succeed(call, value)
        except BaseException as error:
            self._fail(call, error)
        self._end(call)

    def _invoke(self, call: Call) -> Any:
        positional, named = call.tool.bind(call.arguments, call.context)
        return call.tool.function(*positional, **named)

    def _start_task(self, call: Call, value: Any) -> None:
        call.task = self._loop.create_task(self._run_async(call, value))

    async def _run_async(self, call: Call, value: Any) -> None:
        try:
            call.context.raise_if_cancelled()
            if value is None:
                value = self._invoke(call)
            if inspect.isasyncgen(value):
                value = await _drive_async(value, call)
            elif inspect.isawaitable(value):
                value = await value
            self._succeed(call, value)
        except BaseException as error:
            self._fail(call, error)
        self._end(call)

    def _succeed(self, call: Call, value: Any) -> None:
        value = value.value if isinstance(value, Result) else value
        call.answer(call_result(call.tool, value, call.revision))

    def _fail(self, call: Call, error: BaseException) -> None:
        call.answer(error_result(describe_error(error, self._shows_tracebacks)))
        is_stopped = call.context.cancelled and isinstance(
            error, (Cancelled, asyncio.CancelledError, GeneratorExit)
        )
        if isinstance(error, ToolError) or is_stopped:
            return
        # The tool may have closed or replaced stderr.
        with contextlib.suppress(Exception):
            print(f"toolgate-worker: tool `{call.tool.name}` failed:", file=sys.stderr)
            traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)

    def _end(self, call: Call) -> None:
        with self._changed:
            call.has_ended = True
            if call.is_abandoned:
                self._pool.resize(-1)
        if call.context.remaining_seconds is not None:
            self._on_loop(lambda: call.timer.cancel() if call.timer else None)
        call.on_end()
        following: Call | None = None
        with self._changed:
            self._calls.discard(call)
            group = call.tool.group()
            if group is not None:
                waiting = self._waiting[group]
                if waiting:
                    following = waiting.popleft()
                else:
                    del self._waiting[group]
            self._changed.notify_all()
        if following is not None:
            self._dispatch(following)


class ThreadPool:
    """Daemon threads, started on demand: a tool that hangs cannot keep the process alive."""

    def __init__(self, max_threads: int) -> None:
        self._max_threads = max_threads
        self._threads = 0
        self._idle = 0
        self._jobs: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()

    def submit(self, job: Callable[[], None]) -> None:
        """Runs a job on an idle thread, on a new one, or later."""
        with self._changed:
            self._jobs.append(job)
            if self._idle >= len(self._jobs) or self._threads >= self._max_threads:
                self._changed.notify()
                return
            self._threads += 1
        self._start(self._threads)

    def resize(self, by: int) -> None:
        """Allows more or fewer threads. Threads that were started stay."""
        with self._changed:
            self._max_threads += by
            if by < 0 or not self._jobs or self._idle:
                return
            self._threads += 1
        self._start(self._threads)

    def _start(self, number: int) -> None:
        threading.Thread(target=self._work, name=f"toolgate-tool-{number}", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._jobs:
                    self._changed.wait()
                self._idle -= 1
                job = self._jobs.popleft()
            job()


class _Yielded:
    """Values that a generator yields, apart from progress."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._values: list[Any] = []
        self._result: Result | None = None

    def add(self, value: Any) -> None:
        self._call.context.raise_if_cancelled()
        if isinstance(value, Progress):
            if not value.is_sent:
                self._call.context.progress(value.done, value.total, value.message)
        elif isinstance(value, Result):
            self._result = value
        elif len(self._values) < MAX_YIELDED_VALUES:
            self._values.append(value)
        else:
            raise ToolError(f"the tool yielded more than {MAX_YIELDED_VALUES} values")

    def final(self, returned: Any) -> Any:
        """Returns the marked result, the returned value, or the yielded values."""
        if self._result is not None:
            return self._result.value
        if returned is not None:
            return returned
        if self._call.tool.yields_one:
            return self._values[-1] if self._values else None
        return self._values[0] if len(self._values) == 1 else self._values or None


def _drive(generator: Generator[Any, Any, Any], call: Call) -> Any:
    yielded = _Yielded(call)
    try:
        while True:
            yielded.add(next(generator))
    except StopIteration as end:
        return yielded.final(end.value)
    finally:
        generator.close()


async def _drive_async(generator: AsyncGenerator[Any, Any], call: Call) -> Any:
    yielded = _Yielded(call)
    try:
        async for value in generator:
            yielded.add(value)
    finally:
        await generator.aclose()
    return yielded.final(None)


def deadline_after(*seconds: float | None) -> float | None:
    """Returns the earliest deadline, or `None` if there is none."""
    known = [value for value in seconds if value is not None]
    return time.monotonic() + min(known) if known else None
