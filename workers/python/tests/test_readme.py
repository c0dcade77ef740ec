"""The README runs as printed."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from .host import TESTS, TIMEOUT_SECONDS, Host, environment

README = (TESTS.parent / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


class Readme(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        weather, tools = blocks("python")
        (self.folder / "weather.py").write_text(weather)
        (self.folder / "tools.py").write_text(tools)

    def shell(self, command: str) -> str:
        # `python` may have another name here.
        command = re.sub(r"^python ", f"{sys.executable} ", command)
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_guide(self) -> None:
        _, check, call, *_ = blocks("sh")
        definitions, _, answer = blocks("json")
        self.assertEqual(self.shell(check), definitions)
        self.assertEqual(self.shell(call).splitlines()[1], answer.strip())

    def test_examples(self) -> None:
        with Host(str(self.folder / "tools.py")) as host:
            self.assertEqual(host.text("convert", {"amount": 100, "to": "EUR"}), "105.0")
            words = host.call("count_words", {"texts": ["a b", "c"]}, {"progressToken": 1})
            self.assertEqual(words["structuredContent"], {"words": 3})
            self.assertEqual(len(host.notifications), 2)
            session = {"dev.toolgate/session": "s"}
            host.call("remember", {"fact": "a"}, session)
            self.assertEqual(json.loads(host.text("remember", {"fact": "b"}, session)), ["a", "b"])
            self.assertEqual(host.call("pixel")["content"][0]["mimeType"], "image/png")


if __name__ == "__main__":
    unittest.main()
