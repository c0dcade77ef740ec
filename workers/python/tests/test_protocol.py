"""The protocol, line by line, in every revision."""

import json
import unittest

from .host import FIXTURES, META, Host, run

CALLS = str(FIXTURES / "calls.py")
HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
ERAS = [*HANDSHAKES, "2026-07-28"]


class Eras(unittest.TestCase):
    def test_r076_r077_every_revision_lists_and_calls(self) -> None:
        for era in ERAS:
            with self.subTest(era), Host(CALLS, era=era) as host:
                if era in HANDSHAKES:
                    self.assertEqual(host.initialized["result"]["protocolVersion"], era)
                result = host.request("tools/list")["result"]
                tools = {tool["name"]: tool for tool in result["tools"]}
                weather = tools["get_current_weather"]
                self.assertEqual(weather["inputSchema"]["required"], ["location"])
                self.assertEqual(weather["annotations"], {"readOnlyHint": True})
                self.assertEqual(weather["_meta"], {"dev.toolgate/deterministic": True})
                self.assertEqual("outputSchema" in weather, era >= "2025-06-18")
                called = host.call("get_current_weather", {"location": "Paris"})
                value = {"location": "Paris", "temperature": 22.5, "unit": "celsius"}
                self.assertEqual(json.loads(called["content"][0]["text"]), value)
                if era >= "2025-06-18":
                    self.assertEqual(called["structuredContent"], value)
                is_stateless = era == "2026-07-28"
                self.assertEqual(result.get("resultType"), "complete" if is_stateless else None)
                self.assertEqual("ttlMs" in result, is_stateless)
                self.assertEqual("cacheScope" in result, is_stateless)
                self.assertEqual(called.get("resultType"), "complete" if is_stateless else None)
                self.assertEqual(host.close(), 0)

    def test_discover(self) -> None:
        with Host(CALLS) as host:
            result = host.request("server/discover")["result"]
            self.assertEqual(result["supportedVersions"], ERAS[::-1])
            self.assertEqual(result["capabilities"], {"tools": {}, "logging": {}})
            info = result["_meta"]["io.modelcontextprotocol/serverInfo"]
            self.assertEqual(info["name"], "calls")

    def test_both_eras_on_one_connection(self) -> None:
        with Host(CALLS, era="2025-11-25") as host:
            self.assertEqual(host.call("add", {"a": 1, "b": 2})["structuredContent"], {"result": 3})
            self.assertEqual(host.call("add", {"a": 1, "b": 2}, META)["structuredContent"], 3)

    def test_requests_that_are_refused(self) -> None:
        version = "io.modelcontextprotocol/protocolVersion"
        capabilities = "io.modelcontextprotocol/clientCapabilities"
        old = {**META, version: "1900-01-01"}
        cases = [
            ("tools/list", {}, {}, -32602),
            ("tools/list", {}, {version: "2026-07-28"}, -32602),
            ("tools/list", {}, {capabilities: {}}, -32602),
            ("tools/list", {}, old, -32022),
            ("tools/list", {}, {**META, version: 7}, -32022),
            ("tools/list", {"cursor": "next"}, META, -32602),
            ("tools/call", {"name": "missing"}, META, -32602),
            ("tools/call", {"name": 3}, META, -32602),
            ("tools/call", {"name": "only_for_some"}, META, -32602),
            ("tools/call", {"name": "add"}, {**META, "dev.toolgate/session": 1}, -32602),
            ("tools/call", {"name": "add"}, {**META, "dev.toolgate/deadlineMs": "1"}, -32602),
            ("ping", {}, META, -32601),
            ("resources/list", {}, META, -32601),
            ("subscriptions/listen", {}, META, -32601),
            ("logging/setLevel", {"level": "info"}, META, -32601),
        ]
        with Host(CALLS) as host:
            for number, (method, params, meta, code) in enumerate(cases):
                with self.subTest(method, meta=meta, params=params):
                    params = {**params, "_meta": meta}
                    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                    host.send(message)
                    error = host.wait(number)["error"]
                    self.assertEqual(error["code"], code, error)
                    if code == -32022:
                        self.assertEqual(error["data"]["supported"], ERAS[::-1])

    def test_unknown_handshake_revision_gets_the_newest(self) -> None:
        with Host(CALLS, era="2031-01-01") as host:
            self.assertEqual(host.initialized["result"]["protocolVersion"], "2025-11-25")
            self.assertEqual(host.request("ping")["result"], {})
            self.assertEqual(host.request("server/discover")["error"]["code"], -32601)

    def test_batches_of_old_revisions(self) -> None:
        with Host(CALLS, era="2025-03-26") as host:
            call = {"name": "add", "arguments": {"a": 1, "b": 2}}
            host.send(
                [
                    {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": call},
                    {"jsonrpc": "2.0", "method": "notifications/initialized"},
                    {"jsonrpc": "2.0", "id": "b", "method": "ping"},
                    7,
                ]
            )
            responses = host.receive()
            self.assertEqual({response.get("id") for response in responses}, {"a", "b", None})
        with Host(CALLS, era="2025-11-25") as host:
            host.send([{"jsonrpc": "2.0", "id": "b", "method": "ping"}])
            self.assertEqual(host.receive()["error"]["code"], -32600)


class Calls(unittest.TestCase):
    host: Host

    @classmethod
    def setUpClass(cls) -> None:
        cls.host = Host(CALLS)
        cls.addClassCleanup(cls.host.close)

    def setUp(self) -> None:
        self.host.notifications.clear()

    def test_arguments_that_do_not_fit(self) -> None:
        cases = [
            ("add", {"a": 1}, "argument `b`: missing"),
            ("add", {"a": 1, "b": "2"}, "argument `b`: expected an integer, got a string"),
            ("add", {"a": 1, "b": 2, "c": 3}, "argument `c`: unexpected; known are: a, b"),
            ("add", [1, 2], "the arguments are not a JSON object"),
            (
                "get_current_weather",
                {"location": "x", "unit": "kelvin"},
                'argument `unit`: expected one of "celsius", "fahrenheit"',
            ),
        ]
        for name, arguments, expected in cases:
            with self.subTest(arguments):
                result = self.host.call(name, arguments)
                self.assertTrue(result["isError"])
                self.assertEqual(result["content"], [{"type": "text", "text": expected}])

    def test_wrapped_async_functions(self) -> None:
        for name in ("add", "add_by_wrapper", "add_by_run"):
            with self.subTest(name):
                result = self.host.call(name, {"a": 1, "b": 2})
                self.assertEqual(result["structuredContent"], 3)

    def test_parameter_kinds(self) -> None:
        result = self.host.call("extra", {"first": 1, "other": 3})
        self.assertEqual(result["structuredContent"], {"first": 1, "second": 2, "other": 3.0})

    def test_f27_stdout_cannot_break_the_protocol(self) -> None:
        with Host(CALLS) as host:
            self.assertEqual(host.text("noise"), "stdin is empty: ''")
            self.assertEqual(host.text("fork"), "parent")
            self.assertEqual(host.close(), 0)
            for line in (b"print", b"write", b"descriptor", b"child"):
                self.assertIn(line + b"\n", host.stderr)

    def test_process_pools_work(self) -> None:
        self.assertEqual(self.host.call("spawn")["structuredContent"], [4, 9])

    def test_failures(self) -> None:
        cases = [
            ("deliberate", "no such city"),
            ("other", "ValueError: bad luck"),
            ("unprintable", "Unprintable"),
            ("exit", "the tool tried to end the process: SystemExit(4)"),
        ]
        for name in ("fail", "fail_async"):
            for kind, expected in cases:
                with self.subTest(name, kind=kind):
                    result = self.host.call(name, {"kind": kind})
                    self.assertTrue(result["isError"])
                    self.assertEqual(result["content"][0]["text"], expected)

    def test_traceback_on_request(self) -> None:
        with Host(CALLS, "--debug") as host:
            self.assertIn("Traceback", host.text("fail", {"kind": "other"}))
            self.assertEqual(host.call("fail", {"kind": "deliberate"})["isError"], True)
            host.close()
            self.assertIn(b"ValueError: bad luck", host.stderr)
            self.assertNotIn(b"no such city", host.stderr)

    def test_progress(self) -> None:
        for name in ("count", "count_async"):
            with self.subTest(name):
                self.host.notifications.clear()
                result = self.host.call(name, {"to": 2}, {"progressToken": "t"})
                self.assertEqual(result["structuredContent"], {"counted": 2})
                reports = [item["params"] for item in self.host.notifications]
                self.assertEqual([report["progress"] for report in reports], [1, 2])
                self.assertEqual({report["progressToken"] for report in reports}, {"t"})
                self.assertEqual({report["total"] for report in reports}, {2})
                self.host.notifications.clear()
                self.host.call(name, {"to": 2})
                self.assertEqual(self.host.notifications, [])

    def test_generator_values(self) -> None:
        self.assertEqual(self.host.call("words")["structuredContent"], ["a", "b"])

    def test_cancellation(self) -> None:
        for name, trace in (
            ("wait_for_cancel", b"saw cancellation: True"),
            ("sleep_for_ever", b"task was cancelled"),
        ):
            with self.subTest(name), Host(CALLS) as host:
                request_id = host.start_call(name, meta={"progressToken": 1})
                self.assertEqual(host.receive()["method"], "notifications/progress")
                params = {"requestId": request_id, "reason": "test"}
                host.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
                # A cancelled call has no answer: the next response is that of the next call.
                self.assertEqual(host.text("add", {"a": 1, "b": 1}), "2")
                self.assertEqual(host.close(), 0)
                self.assertIn(trace, host.stderr)
                self.assertNotIn(b"Traceback", host.stderr)

    def test_calls_run_in_parallel_and_probes_are_answered(self) -> None:
        waiting = self.host.start_call("wait_for_gate")
        self.assertIn("result", self.host.request("server/discover"))
        self.assertEqual(self.host.call("open_gate")["content"], [])
        self.assertEqual(self.host.wait(waiting)["result"]["content"][0]["text"], "True")

    def test_sequential_tools_keep_their_order(self) -> None:
        ids = [self.host.start_call("one_at_a_time", {"number": n}) for n in range(5)]
        for number, request_id in enumerate(ids):
            result = self.host.wait(request_id)["result"]
            self.assertEqual(result["structuredContent"], [number, 1])

    def test_timeouts(self) -> None:
        for name, meta in (
            ("too_slow", {}),
            ("wait_for_cancel", {"dev.toolgate/deadlineMs": 10}),
            ("sleep_for_ever", {"dev.toolgate/deadlineMs": 10}),
        ):
            with self.subTest(name):
                result = self.host.call(name, meta=meta)
                self.assertTrue(result["isError"])
                text = "the call took longer than its deadline allows"
                self.assertEqual(result["content"][0]["text"], text)

    def test_r083_sessions(self) -> None:
        def remember(value: str, session: str | None) -> object:
            meta = {"dev.toolgate/call": "c1", "dev.toolgate/owner": "o1"}
            if session is not None:
                meta["dev.toolgate/session"] = session
            return self.host.call("remember", {"value": value}, meta)["structuredContent"]

        self.assertEqual(
            remember("x", "a"), {"session": "a", "call": "c1", "owner": "o1", "seen": ["x"]}
        )
        self.assertEqual(remember("y", "a")["seen"], ["x", "y"])
        self.assertEqual(remember("z", "b")["seen"], ["z"])
        self.assertEqual(remember("u", None)["seen"], ["u"])
        self.assertEqual(remember("v", None)["seen"], ["v"])
        text = self.host.text("only_for_some", meta={"dev.toolgate/session": "vip"})
        self.assertEqual(text, "welcome")
        with Host(CALLS, era="2025-11-25") as host:
            host.call("remember", {"value": "x"})
            seen = host.call("remember", {"value": "y"})["structuredContent"]["seen"]
            self.assertEqual(seen, ["x", "y"])

    def test_inline_tools_run_on_the_main_thread(self) -> None:
        self.assertEqual(self.host.text("thread_name"), "MainThread")

    def test_log_messages(self) -> None:
        self.host.call("log", meta={"io.modelcontextprotocol/logLevel": "info"})
        (message,) = self.host.notifications
        params = {"level": "warning", "logger": "log", "data": {"state": "shown"}}
        self.assertEqual(message["params"], params)
        self.host.notifications.clear()
        self.host.call("log")
        self.assertEqual(self.host.notifications, [])
        with Host(CALLS, era="2025-11-25") as host:
            self.assertEqual(host.request("logging/setLevel", {"level": "debug"})["result"], {})
            host.call("log")
            self.assertEqual(len(host.notifications), 2)

    def test_media(self) -> None:
        kinds = [block["type"] for block in self.host.call("picture")["content"]]
        self.assertEqual(kinds, ["text", "image", "text"])
        (block,) = self.host.call("report")["content"]
        self.assertEqual(block["resource"]["mimeType"], "text/csv")
        (block,) = self.host.call("raw")["content"]
        self.assertEqual(block["mimeType"], "image/png")

    def test_results_that_are_no_json(self) -> None:
        result = self.host.call("odd")["structuredContent"]
        expected = {"object": "<class 'object'>", "nan": None, "1": [2], "surrogate": "\ufffd"}
        self.assertEqual(result, expected)
        self.assertTrue(self.host.call("cycle")["isError"])
        result = self.host.call("huge")
        self.assertTrue(result["isError"])
        self.assertIn("the limit is 16777216", result["content"][0]["text"])


class Check(unittest.TestCase):
    def test_check_prints_definitions(self) -> None:
        done = run("--check", CALLS)
        self.assertEqual(done.returncode, 0)
        names = [tool["name"] for tool in json.loads(done.stdout)["tools"]]
        self.assertIn("get_current_weather", names)

    def test_check_prints_errors(self) -> None:
        done = run("--check", str(FIXTURES / "broken_tools.py"))
        self.assertEqual(done.returncode, 3)
        (error,) = json.loads(done.stdout)["errors"]
        self.assertIn(
            "parameter `connection`: the type `socket` has no JSON form", error["message"]
        )
        self.assertIn("`*names` has no JSON form", error["message"])
        self.assertEqual(error["line"], 4)


if __name__ == "__main__":
    unittest.main()
