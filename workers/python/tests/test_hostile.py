"""Input that no well-behaved host sends. After each case the worker still answers."""

import json
import unittest

from .host import FIXTURES, META, Host

CALLS = str(FIXTURES / "calls.py")
MIB = 1024 * 1024


def call(request_id: object, **members: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call"}
    return json.dumps({**message, **members}).encode()


# A line, then the id and the code of the error response; `None` if there is no response.
CASES: list[tuple[str, bytes, tuple[object, int] | None]] = [
    ("empty", b"", None),
    ("blank", b"  \t\r", None),
    ("garbage", b"hello", (None, -32700)),
    ("not UTF-8", b"\xff\xfe{}", (None, -32700)),
    ("null bytes", b"\0\0\0", (None, -32700)),
    ("cut off", b'{"jsonrpc":"2.0","id":1', (None, -32700)),
    ("two values", b"{} {}", (None, -32700)),
    ("NaN", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', (None, -32700)),
    ("deep arrays", b"[" * 100_000, (None, -32700)),
    ("deep objects", b'{"a":' * 100_000, (None, -32700)),
    ("long number", b'{"id":' + b"9" * 10_000 + b"}", (None, -32700)),
    ("number", b"1", (None, -32600)),
    ("string", b'"x"', (None, -32600)),
    ("null", b"null", (None, -32600)),
    ("empty batch", b"[]", (None, -32600)),
    ("batch", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', (None, -32600)),
    ("empty object", b"{}", (None, -32600)),
    ("no version", b'{"id":1,"method":"ping"}', (1, -32600)),
    ("other version", b'{"jsonrpc":"1.0","id":1,"method":"ping"}', (1, -32600)),
    ("method is a number", b'{"jsonrpc":"2.0","id":1,"method":1}', (1, -32600)),
    ("id is null", b'{"jsonrpc":"2.0","id":null,"method":"ping"}', (None, -32600)),
    ("id is a fraction", b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', (None, -32600)),
    ("id is true", b'{"jsonrpc":"2.0","id":true,"method":"ping"}', (None, -32600)),
    ("id is an object", b'{"jsonrpc":"2.0","id":{},"method":"ping"}', (None, -32600)),
    ("params are an array", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', (1, -32602)),
    ("params are null", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', (1, -32602)),
    ("no params", call(1), (1, -32602)),
    ("meta is a list", call(1, params={"name": "add", "_meta": []}), (1, -32602)),
    ("long tool name", call(1, params={"name": "x" * MIB, "_meta": META}), (1, -32602)),
    ("name is an object", call(1, params={"name": {}, "_meta": META}), (1, -32602)),
    ("long method", b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * MIB + b'"}', (1, -32602)),
    (
        "negative deadline",
        call(1, params={"name": "add", "_meta": {**META, "dev.toolgate/deadlineMs": -1}}),
        (1, -32602),
    ),
    (
        "long session id",
        call(1, params={"name": "add", "_meta": {**META, "dev.toolgate/session": "x" * 1000}}),
        (1, -32602),
    ),
    ("a response", b'{"jsonrpc":"2.0","id":1,"result":{}}', None),
    ("an error response", b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}', None),
    ("unknown notification", b'{"jsonrpc":"2.0","method":"notifications/other"}', None),
    ("cancel nothing", b'{"jsonrpc":"2.0","method":"notifications/cancelled"}', None),
    (
        "cancel an unknown request",
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
        None,
    ),
    (
        "oversized, id first",
        b'{"jsonrpc":"2.0","id":7,"method":"' + b"x" * (17 * MIB) + b'"}',
        (7, -32600),
    ),
    (
        "oversized, id last",
        b'{"method":"' + b"x" * (33 * MIB) + b'","jsonrpc":"2.0","id":"a\\"b"}',
        ('a"b', -32600),
    ),
    ("oversized garbage", b"x" * (17 * MIB), (None, -32600)),
]


class Hostile(unittest.TestCase):
    def test_worker_survives(self) -> None:
        with Host(CALLS) as host:
            for name, line, expected in CASES:
                with self.subTest(name):
                    host.write(line)
                    if expected is not None:
                        response = host.receive()
                        self.assertEqual(
                            (response.get("id"), response["error"]["code"]), expected, response
                        )
                        self.assertLess(len(json.dumps(response)), 1000)
                    self.assertEqual(host.text("add", {"a": 1, "b": 2}), "3")
            self.assertEqual(host.close(), 0)

    def test_duplicate_id_is_refused(self) -> None:
        with Host(CALLS) as host:
            waiting = host.start_call("wait_for_gate")
            params = {"name": "add", "arguments": {"a": 1, "b": 1}, "_meta": META}
            host.write(call(waiting, params=params))
            self.assertEqual(host.wait(waiting)["error"]["code"], -32600)
            host.call("open_gate")
            self.assertIn("result", host.wait(waiting))

    def test_many_calls_at_once(self) -> None:
        with Host(CALLS, "--threads", "2") as host:
            for number in range(500):
                host.start_call("add" if number % 2 else "thread_name", {"a": 1, "b": 1})
            answered = {host.receive()["id"] for _ in range(500)}
            self.assertEqual(answered, set(range(1, 501)))

    def test_last_line_without_end(self) -> None:
        with Host(CALLS, "--drain-seconds", "60") as host:
            host.process.stdin.write(call(1, params={"name": "words", "_meta": META}))
            host.process.stdin.close()
            self.assertEqual(host.receive()["result"]["structuredContent"], ["a", "b"])


if __name__ == "__main__":
    unittest.main()
