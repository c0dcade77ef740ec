"""Lines on the process's own stdin and stdout, out of reach of tools and their children."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_QUEUED_BYTES = 64 * 1024 * 1024
# Above this, progress and log messages are dropped: the host does not read.
MAX_QUEUED_BYTES_OF_NEWS = 1024 * 1024
EDGE_BYTES = 512
CHUNK_BYTES = 64 * 1024
PARENT_CHECK_SECONDS = 1.0
# Read before the user's module is imported, which may take longer than the parent lives.
PARENT = os.getppid()


def take_over() -> tuple[int, int]:
    """Moves stdin and stdout to descriptors that children do not inherit, and returns them.

    Afterwards descriptor 0 reads nothing and descriptor 1 is stderr, so that `print`, C extensions
    and child processes cannot disturb the protocol.
    """
    if sys.stdout is not None:
        sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True, errors="backslashreplace")

    def disconnect() -> None:
        """Keeps a forked child from writing to the host, and from holding its pipes open."""
        silent = os.open(os.devnull, os.O_RDWR)
        os.dup2(silent, source, inheritable=False)
        os.dup2(silent, sink, inheritable=False)
        os.close(silent)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=disconnect)
    return source, sink


@dataclass(frozen=True)
class Oversized:
    """A line over the limit: its first and last bytes and its length."""

    head: bytes
    tail: bytes
    length: int


class LineReader:
    """Reads lines of bounded length until the end of the input or the death of the parent."""

    def __init__(self, source: int, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._source = source
        self._max_line_bytes = max_line_bytes

    def __iter__(self) -> Iterator[bytes | Oversized]:
        pending = bytearray()
        head, dropped = b"", 0
        searched = 0
        while chunk := self._read():
            pending += chunk
            while (end := pending.find(b"\n", searched)) >= 0:
                line = bytes(pending[:end])
                del pending[: end + 1]
                searched = 0
                if dropped or len(line) > self._max_line_bytes:
                    edge = (head or line)[:EDGE_BYTES]
                    yield Oversized(edge, line[-EDGE_BYTES:], dropped + len(line))
                    head, dropped = b"", 0
                else:
                    yield line
            searched = len(pending)
            if searched > self._max_line_bytes:
                head = head or bytes(pending[:EDGE_BYTES])
                # The end of the line may hold the id of the request.
                dropped += searched - EDGE_BYTES
                del pending[:-EDGE_BYTES]
                searched = len(pending)
        if pending and not dropped:
            yield bytes(pending)

    def _read(self) -> bytes:
        while not self._is_readable():
            if os.getppid() != PARENT:
                return b""
        try:
            return os.read(self._source, CHUNK_BYTES)
        except OSError:
            return b""

    def _is_readable(self) -> bool:
        if os.name != "posix":
            return True
        return bool(select.select([self._source], [], [], PARENT_CHECK_SECONDS)[0])


class LineWriter:
    """Writes lines on a thread of its own, so that no tool waits for a slow host."""

    def __init__(self, sink: int, on_failure: Callable[[], None]) -> None:
        self._sink = sink
        self._on_failure = on_failure
        self._lines: deque[bytes] = deque()
        self._queued_bytes = 0
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="toolgate-writer", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Queues a line. Blocks while the queue is full."""
        with self._changed:
            while self._queued_bytes > MAX_QUEUED_BYTES and not self._is_closed:
                self._changed.wait()
            self._append(line)

    def write_news(self, line: bytes) -> None:
        """Queues a line that may be lost, such as progress. Never blocks."""
        with self._changed:
            if self._queued_bytes <= MAX_QUEUED_BYTES_OF_NEWS:
                self._append(line)

    def close(self, timeout_seconds: float) -> None:
        """Writes the queued lines, then stops."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(timeout_seconds)

    def _append(self, line: bytes) -> None:
        if not self._is_closed:
            self._lines.append(line + b"\n")
            self._queued_bytes += len(line) + 1
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._lines and not self._is_closed:
                    self._changed.wait()
                if not self._lines:
                    return
                data = b"".join(self._lines)
                self._lines.clear()
            try:
                _write_all(self._sink, data)
            except OSError:
                self._fail()
                return
            with self._changed:
                self._queued_bytes -= len(data)
                self._changed.notify_all()

    def _fail(self) -> None:
        with self._changed:
            self._is_closed = True
            self._lines.clear()
            self._changed.notify_all()
        self._on_failure()


def _write_all(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]
