"""The life of the worker process: import, end of input, signals, death of the host."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from .host import FIXTURES, META, TIMEOUT_SECONDS, Host, environment, run

CALLS = str(FIXTURES / "calls.py")
STUCK = str(FIXTURES / "stuck.py")


class ImportErrors(unittest.TestCase):
    def test_errors_reach_the_host(self) -> None:
        cases = [
            ("broken_syntax.py", "SyntaxError: '(' was never closed", 2),
            ("broken_import.py", "No module named 'a_module_that_does_not_exist'", 4),
            ("broken_tools.py", "parameter `connection`: the type `socket` has no JSON form", 4),
            ("missing.py", "no such file", None),
        ]
        for name, message, line in cases:
            with self.subTest(name), Host(str(FIXTURES / name), era="2025-11-25") as host:
                error = host.initialized["error"]
                self.assertEqual(error["code"], -32603)
                self.assertIn(message, error["message"])
                self.assertTrue(error["data"]["file"].endswith(name))
                self.assertEqual(error["data"].get("line"), line)
                self.assertEqual(host.request("server/discover", meta=META)["error"], error)
                self.assertEqual(host.close(), 3)
                self.assertIn(message.encode(), host.stderr)

    def test_modules_by_name(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "toolgate_worker", "--check", "calls"],
            cwd=FIXTURES,
            env=environment(),
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_unknown_module(self) -> None:
        self.assertEqual(run("--check", "no.such.module").returncode, 3)

    def test_file_with_the_name_of_a_loaded_module(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "json.py"
            path.write_text("def one() -> int:\n    return 1\n")
            with Host(str(path)) as host:
                self.assertEqual(host.text("one"), "1")

    def test_script_with_serve(self) -> None:
        script = str(FIXTURES / "script.py")
        with Host(command=[sys.executable, script]) as host:
            self.assertEqual(host.text("greet", {"name": "Ada"}), "hello Ada")
            self.assertEqual(host.close(), 0)


class Ends(unittest.TestCase):
    def test_calls_end_after_the_input(self) -> None:
        with Host(CALLS, "--drain-seconds", "60") as host:
            request_id = host.start_call("add", {"a": 1, "b": 2})
            host.process.stdin.close()
            self.assertEqual(host.wait(request_id)["result"]["structuredContent"], 3)
            self.assertEqual(host.close(), 0)

    def test_waiting_calls_are_cancelled_at_the_end(self) -> None:
        for name in ("wait_for_cancel", "sleep_for_ever"):
            with self.subTest(name), Host(CALLS) as host:
                host.start_call(name, meta={"progressToken": 1})
                host.receive()
                self.assertEqual(host.close(), 0)

    def test_stuck_tools_do_not_keep_the_process(self) -> None:
        # A sleeping thread, a busy one, the main thread, and a call that holds the GIL.
        names = ("sleep", "spin", "block_loop", "hold_gil")
        hosts = [(name, Host(STUCK)) for name in names]
        for name, host in hosts:
            host.start_call(name, meta={"progressToken": 1})
            host.receive()
            host.process.stdin.close()
        for name, host in hosts:
            with self.subTest(name):
                self.assertIn(host.close(), (0, 1))

    def test_cancelled_calls_that_hang_do_not_use_up_the_threads(self) -> None:
        with Host(STUCK, "--threads", "1") as host:
            for _ in range(3):
                request_id = host.start_call("sleep", meta={"progressToken": 1})
                host.receive()
                params = {"requestId": request_id}
                host.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
            self.assertEqual(host.text("hello"), "hello")

    def test_signals(self) -> None:
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            with self.subTest(number), Host(CALLS) as host:
                host.start_call("sleep_for_ever", meta={"progressToken": 1})
                host.receive()
                host.process.send_signal(number)
                self.assertEqual(host.process.wait(TIMEOUT_SECONDS), code)

    def test_host_that_stops_reading(self) -> None:
        with Host(CALLS) as host:
            host.process.stdout.close()
            host.start_call("add", {"a": 1, "b": 2})
            self.assertEqual(host.process.wait(TIMEOUT_SECONDS), 0)

    def test_f25_no_orphan_after_the_host_dies(self) -> None:
        """The worker ends even if another process keeps its stdin open."""
        reading, writing = os.pipe()
        alive, held = os.pipe()
        # The worker answers, then its launcher is killed; `writing` stays open here.
        launcher = subprocess.Popen(
            [sys.executable, str(FIXTURES / "launcher.py"), CALLS],
            stdin=reading,
            stdout=subprocess.PIPE,
            pass_fds=(held,),
            env={**environment(), "HELD": str(held)},
        )
        os.close(reading)
        os.close(held)
        try:
            os.write(writing, b"not JSON\n")
            self.assertEqual(launcher.stdout.readline(), b"ready\n")
            launcher.kill()
            launcher.wait()
            # Only the worker holds the other end of `alive`.
            ready, _, _ = select.select([alive], [], [], TIMEOUT_SECONDS)
            self.assertTrue(ready, "the worker outlived its host")
            self.assertEqual(os.read(alive, 1), b"")
        finally:
            launcher.stdout.close()
            os.close(writing)
            os.close(alive)


if __name__ == "__main__":
    unittest.main()
