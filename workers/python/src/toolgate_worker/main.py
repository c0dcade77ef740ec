"""Command line, and the life of the worker process."""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from . import load, stdio
from .definition import Tool
from .errors import LoadError
from .protocol import STATELESS_REVISIONS
from .results import tool_definition
from .run import MAX_THREADS, Runner
from .server import Server
from .state import MAX_SESSIONS, SESSION_TTL_SECONDS, Sessions
from .version import VERSION

EXIT_LOAD_ERROR = 3
# Calls in progress when the host closes stdin may end within this time.
DRAIN_SECONDS = 1.0
# Cancelled calls may clean up within this time.
CLEANUP_SECONDS = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `toolgate-worker` and `python -m toolgate_worker`."""
    options = _parser().parse_args(arguments)
    try:
        source, sink = stdio.take_over()
    except OSError as error:
        print(f"toolgate-worker: stdin and stdout must be open: {error}", file=sys.stderr)
        return 1
    tools: list[Tool] = []
    failure: LoadError | None = None
    try:
        tools = load.load(options.module)
    except LoadError as error:
        failure = error
    if options.check:
        return _check(sink, tools, failure)
    _report(tools, failure)
    if failure is not None and os.isatty(source):
        return EXIT_LOAD_ERROR
    name = options.name or _name(options.module[0])
    return _serve(source, sink, tools, failure, name, options)


def serve(module: ModuleType | None = None) -> None:
    """Serves the tools of a module, by default of the running script, and ends the process."""
    source, sink = stdio.take_over()
    module = module or sys.modules["__main__"]
    tools: list[Tool] = []
    failure: LoadError | None = None
    try:
        tools = load.collect(module)
    except LoadError as error:
        failure = error
    _report(tools, failure)
    file = getattr(module, "__file__", None)
    options = _parser().parse_args([file or module.__name__])
    name = _name(file or module.__name__)
    sys.exit(_serve(source, sink, tools, failure, name, options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="toolgate-worker",
        description="Serves Python functions as MCP tools over stdio.",
    )
    parser.add_argument("module", nargs="+", help="a file (my_tools.py) or module (my.tools)")
    parser.add_argument(
        "--check", action="store_true", help="print the tools, or what is wrong, as JSON and exit"
    )
    parser.add_argument("--name", help="name of the server for hosts; default: that of the module")
    parser.add_argument(
        "--threads", type=_positive, default=MAX_THREADS, help="synchronous calls at a time"
    )
    parser.add_argument(
        "--sessions", type=_positive, default=MAX_SESSIONS, help="sessions kept in memory"
    )
    parser.add_argument(
        "--session-seconds",
        type=float,
        default=SESSION_TTL_SECONDS,
        help="time after which an unused session is forgotten",
    )
    parser.add_argument(
        "--drain-seconds",
        type=float,
        default=DRAIN_SECONDS,
        help="time for running calls to end after stdin has closed",
    )
    parser.add_argument(
        "--debug", action="store_true", help="send tracebacks of failed tools to the model"
    )
    parser.add_argument("--version", action="version", version=f"toolgate-worker {VERSION}")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _name(target: str) -> str:
    return os.path.basename(target).removesuffix(".py")


def _report(tools: list[Tool], failure: LoadError | None) -> None:
    """Writes problems of the user's module to stderr."""
    for tool in tools:
        for warning in tool.warnings:
            print(f"toolgate-worker: warning: tool `{tool.name}`: {warning}", file=sys.stderr)
    if failure is not None:
        print(failure.details, f"toolgate-worker: {failure.message}", file=sys.stderr, sep="")


def _check(sink: int, tools: list[Tool], failure: LoadError | None) -> int:
    """Prints definitions or errors to the real stdout."""
    if failure is not None:
        report: dict[str, Any] = {"errors": [failure.to_json()]}
    else:
        definitions = [tool_definition(tool, STATELESS_REVISIONS[-1]) for tool in tools]
        warnings = [
            {"tool": tool.name, "message": warning} for tool in tools for warning in tool.warnings
        ]
        report = {"tools": definitions, **({"warnings": warnings} if warnings else {})}
    with os.fdopen(sink, "w", encoding="utf-8") as output:
        print(json.dumps(report, indent=2, ensure_ascii=False), file=output)
    return 0 if failure is None else EXIT_LOAD_ERROR


class Lifetime:
    """Decides when the process ends, and with which code."""

    def __init__(self, loop: asyncio.AbstractEventLoop, drain_seconds: float) -> None:
        self._loop = loop
        self._drain_seconds = drain_seconds
        self._stop = asyncio.Event()
        self.exit_code = 0
        self.drains = True
        self._sockets: tuple[socket.socket, ...] = ()

    def end(self, exit_code: int, drains: bool) -> None:
        """Starts the orderly end. Safe in signal handlers and on any thread."""
        self.exit_code = self.exit_code or exit_code
        self.drains = self.drains and drains
        # A native thread ends the process if a tool never returns, even one that holds the GIL.
        limit = self._drain_seconds + 2 * CLEANUP_SECONDS
        faulthandler.dump_traceback_later(limit, exit=True, file=2)
        self._loop.call_soon_threadsafe(self._stop.set)

    async def wait(self) -> None:
        """Returns when `end` was called."""
        await self._stop.wait()

    def handle_signals(self) -> None:
        """Ends orderly at the first signal, at once at the second."""
        received: list[int] = []

        def handle(number: int, frame: Any) -> None:
            if received:
                os._exit(128 + number)
            received.append(number)
            self.end(128 + number, drains=False)

        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None:
                signal.signal(number, handle)
        self._wake_on_signals()

    def _wake_on_signals(self) -> None:
        """Wakes the loop for signals that the system delivers to another thread.

        Python runs handlers on the main thread, which otherwise sleeps until its next event.
        """
        if os.name != "posix":
            return
        receiving, sending = socket.socketpair()
        receiving.setblocking(False)
        sending.setblocking(False)
        self._sockets = (receiving, sending)
        self._loop.add_reader(receiving, receiving.recv, 64)
        signal.set_wakeup_fd(sending.fileno(), warn_on_full_buffer=False)


def _serve(
    source: int,
    sink: int,
    tools: list[Tool],
    failure: LoadError | None,
    name: str,
    options: argparse.Namespace,
) -> int:
    async def run() -> int:
        loop = asyncio.get_running_loop()
        lifetime = Lifetime(loop, options.drain_seconds)
        lifetime.handle_signals()
        runner = Runner(loop, options.threads, shows_tracebacks=options.debug)
        writer = stdio.LineWriter(sink, on_failure=lambda: lifetime.end(0, drains=False))
        sessions = Sessions(options.sessions, options.session_seconds)
        info = {"name": name, "version": VERSION}
        server = Server(writer, runner, sessions, tools, info, failure)

        def read() -> None:
            try:
                for line in stdio.LineReader(source):
                    try:
                        server.feed(line)
                    except Exception:
                        traceback.print_exc()
            finally:
                lifetime.end(EXIT_LOAD_ERROR if failure else 0, drains=True)

        threading.Thread(target=read, name="toolgate-reader", daemon=True).start()
        await lifetime.wait()
        if lifetime.drains:
            await _in_thread(lambda: runner.wait_idle(options.drain_seconds))
        runner.cancel_all()
        await _in_thread(lambda: runner.wait_idle(CLEANUP_SECONDS))
        await _in_thread(lambda: writer.close(CLEANUP_SECONDS))
        return lifetime.exit_code

    return asyncio.run(run())


async def _in_thread(function: Callable[[], object]) -> None:
    """Runs a blocking function on a daemon thread, which does not keep the process alive."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def work() -> None:
        function()
        loop.call_soon_threadsafe(done.set)

    threading.Thread(target=work, daemon=True).start()
    await done.wait()
