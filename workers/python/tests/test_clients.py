"""Sessions with the official `mcp` package as client, and optional packages of tools.

`TOOLGATE_WORKER_MCP1` and `TOOLGATE_WORKER_MCP2` name Python interpreters that have `mcp` 1.x and
2.x; `cargo xtask test --only worker` installs them.
"""

import json
import os
import subprocess
import sys
import unittest

from .host import FIXTURES, SOURCE, TESTS, TIMEOUT_SECONDS, Host

MCP1 = os.environ.get("TOOLGATE_WORKER_MCP1", "")
MCP2 = os.environ.get("TOOLGATE_WORKER_MCP2", "")


def session(python: str, program: str, *arguments: str) -> dict[str, object]:
    command = [python, str(TESTS / "clients" / program), sys.executable, str(SOURCE)]
    done = subprocess.run(
        [*command, str(FIXTURES / "calls.py"), *arguments],
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        text=True,
    )
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    seen: dict[str, object] = json.loads(done.stdout)
    return seen


class OfficialClients(unittest.TestCase):
    maxDiff = None

    def check(self, seen: dict[str, object], version: str) -> None:
        self.assertEqual(seen["version"], version)
        self.assertEqual(seen["server"], "calls")
        self.assertEqual(seen["tools"]["get_current_weather"]["required"], ["location"])
        weather = {"location": "Paris", "temperature": 22.5, "unit": "celsius"}
        self.assertEqual(seen["weather"], weather)
        self.assertEqual(seen["sum"], 3 if version == "2026-07-28" else {"result": 3})
        self.assertEqual(seen["counted"], {"counted": 2})
        self.assertEqual(seen["progress"], [[1, 2, "step 1"], [2, 2, "step 2"]])
        self.assertEqual(seen["error"], [True, "no such city"])
        self.assertEqual(seen["picture"], ["text", "image", "text"])
        self.assertEqual(seen["noise"], "stdin is empty: ''")
        self.assertEqual(seen["parallel"], "True")

    @unittest.skipUnless(MCP1, "TOOLGATE_WORKER_MCP1 is not set")
    def test_mcp_1(self) -> None:
        self.check(session(MCP1, "session_v1.py"), "2025-11-25")

    @unittest.skipUnless(MCP2, "TOOLGATE_WORKER_MCP2 is not set")
    def test_mcp_2(self) -> None:
        cases = [("auto", "2026-07-28"), ("legacy", "2025-11-25")]
        for mode, version in cases:
            with self.subTest(mode):
                seen = session(MCP2, "session_v2.py", mode)
                self.check(seen, version)
                self.assertEqual(seen["session"], ["x", "y"])


@unittest.skipUnless(MCP2, "TOOLGATE_WORKER_MCP2 is not set")
class OptionalPackages(unittest.TestCase):
    """Tools that use pydantic and Pillow, on an interpreter that has both."""

    maxDiff = None
    host: Host

    @classmethod
    def setUpClass(cls) -> None:
        module = str(FIXTURES / "optional.py")
        cls.host = Host(command=[MCP2, "-m", "toolgate_worker", module])
        cls.addClassCleanup(cls.host.close)

    def test_models_are_described(self) -> None:
        tools = {tool["name"]: tool for tool in self.host.request("tools/list")["result"]["tools"]}
        order = tools["order"]["inputSchema"]
        self.assertEqual(order["required"], ["cart"])
        self.assertEqual(set(order["$defs"]), {"Product"})
        cart = order["properties"]["cart"]
        self.assertEqual(cart["properties"]["items"]["items"], {"$ref": "#/$defs/Product"})
        self.assertEqual(cart["properties"]["items"]["minItems"], 1)
        total = tools["order"]["outputSchema"]["properties"]
        self.assertEqual(set(total), {"totalPrice", "count"})
        limit = tools["limited"]["inputSchema"]["properties"]["number"]
        self.assertEqual(
            limit, {"type": "integer", "minimum": 1, "maximum": 9, "description": "A number."}
        )

    def test_models_are_converted(self) -> None:
        items = [{"name": "a", "price": 2}, {"name": "b", "price": 3.5}]
        result = self.host.call("order", {"cart": {"items": items}})
        self.assertEqual(result["structuredContent"], {"totalPrice": 5.5, "count": 2})
        items[1]["price"] = "free"
        self.assertIn(
            "argument `cart.items[1].price`", self.host.text("order", {"cart": {"items": items}})
        )
        self.assertIn("0 is less than 1", self.host.text("limited", {"number": 0}))

    def test_pillow_images(self) -> None:
        for kind in ("png", "jpeg"):
            with self.subTest(kind):
                (block,) = self.host.call("paint", {"kind": kind})["content"]
                self.assertEqual((block["type"], block["mimeType"]), ("image", f"image/{kind}"))


if __name__ == "__main__":
    unittest.main()
