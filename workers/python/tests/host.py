"""A small MCP host for tests: one worker process, lines in and out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
SOURCE = TESTS.parent / "src"
FIXTURES = TESTS / "fixtures"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
# Long enough for a loaded machine; a test that passes never waits for it.
TIMEOUT_SECONDS = 60


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE)}


def run(*arguments: str, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Runs a worker to its end."""
    return subprocess.run(
        [sys.executable, "-m", "toolgate_worker", *arguments],
        input=text,
        capture_output=True,
        env=environment(),
        timeout=TIMEOUT_SECONDS,
    )


class Host:
    """A worker process that is killed if it does not answer in time."""

    def __init__(self, *arguments: str, era: str = "2026-07-28", command: Any = None) -> None:
        self.process = subprocess.Popen(
            command or [sys.executable, "-m", "toolgate_worker", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        self.era = era
        self.last_id = 0
        self.notifications: list[Any] = []
        self.stderr = b""
        self._errors = threading.Thread(target=self._drain, daemon=True)
        self._errors.start()
        self._watchdog = threading.Timer(TIMEOUT_SECONDS, self.process.kill)
        self._watchdog.start()
        if era != "2026-07-28":
            client = {"name": "test", "version": "1"}
            params = {"protocolVersion": era, "capabilities": {}, "clientInfo": client}
            self.initialized = self.request("initialize", params)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def _drain(self) -> None:
        for line in self.process.stderr:
            self.stderr += line

    def write(self, line: bytes) -> None:
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        self.write(json.dumps(message).encode())

    def receive(self) -> Any:
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"the worker ended; stderr: {self.stderr.decode()}")
        return json.loads(line)

    def start(self, method: str, params: Any = None, meta: Any = None) -> int:
        """Sends a request and returns its id."""
        self.last_id += 1
        params = dict(params or {})
        meta = {**(META if self.era == "2026-07-28" else {}), **(meta or {})}
        if meta and method != "initialize":
            params["_meta"] = meta
        message = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}
        self.send(message)
        return self.last_id

    def wait(self, request_id: int | None) -> Any:
        """Returns the response with an id; keeps notifications."""
        while True:
            message = self.receive()
            if "method" in message:
                self.notifications.append(message)
            elif message.get("id") == request_id:
                return message
            else:
                raise AssertionError(f"unexpected response {message}")

    def request(self, method: str, params: Any = None, meta: Any = None) -> Any:
        return self.wait(self.start(method, params, meta))

    def start_call(self, name: str, arguments: Any = None, meta: Any = None) -> int:
        return self.start("tools/call", {"name": name, "arguments": arguments or {}}, meta)

    def call(self, name: str, arguments: Any = None, meta: Any = None) -> Any:
        response = self.wait(self.start_call(name, arguments, meta))
        return response.get("result", response)

    def text(self, name: str, arguments: Any = None, meta: Any = None) -> str:
        """Returns the text of a result with one text block."""
        result = self.call(name, arguments, meta)
        (block,) = result["content"]
        return block["text"]

    def close(self) -> int:
        """Closes stdin and returns the exit code."""
        if not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        code = self.process.wait(TIMEOUT_SECONDS)
        self._watchdog.cancel()
        self._errors.join(TIMEOUT_SECONDS)
        self.process.stdout.close()
        self.process.stderr.close()
        return code
