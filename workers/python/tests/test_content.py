"""Results as JSON and as content blocks."""

import base64
import collections
import datetime
import decimal
import enum
import itertools
import pathlib
import tempfile
import unittest
import uuid
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolgate_worker import Audio, File, Image, Link, ToolError
from toolgate_worker.content import blocks, to_json
from toolgate_worker.definition import define
from toolgate_worker.results import call_result

PNG = b"\x89PNG\r\n\x1a\n"
PNG_TEXT = base64.b64encode(PNG).decode()
WAV = b"RIFF\0\0\0\0WAVE"


class Color(enum.Enum):
    RED = "red"
    BLUE = (0, 0, 255)


class Kind(enum.Enum):
    CITY = "city"


class Point(NamedTuple):
    x: int


@dataclass
class Item:
    at: datetime.date
    points: list[Point]


class Model:
    def to_dict(self) -> Any:
        return {"kind": "model"}


class Vector:
    def tolist(self) -> Any:
        return [1, 2]


JSON: list[tuple[Any, Any]] = [
    (None, None),
    (True, True),
    (10**25, 10**25),
    (1.5, 1.5),
    (float("nan"), None),
    (float("inf"), None),
    ("é\ud800", "é\ufffd"),
    ("\ud83d\ude00", "😀"),
    ((1, 2), [1, 2]),
    ({3, 1, 2}, [1, 2, 3]),
    ({1: "a", None: "b", Color.RED: "c"}, {"1": "a", "null": "b", "RED": "c"}),
    (Color.RED, "RED"),
    (Kind.CITY, "city"),
    (Color.BLUE, "BLUE"),
    (Item(datetime.date(2026, 1, 2), [Point(1)]), {"at": "2026-01-02", "points": [{"x": 1}]}),
    (datetime.timedelta(days=1, seconds=2.5), "P1DT2.5S"),
    (datetime.timedelta(days=2), "P2D"),
    (datetime.timedelta(seconds=-1), "-PT1S"),
    (decimal.Decimal("12.50"), 12.5),
    (decimal.Decimal("1E+2"), 100),
    (decimal.Decimal("0.1234567890123456789"), "0.1234567890123456789"),
    (decimal.Decimal("NaN"), "NaN"),
    (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
    (pathlib.PurePosixPath("/a"), "/a"),
    ([b"hi"], ["aGk="]),
    (Model(), {"kind": "model"}),
    (Vector(), [1, 2]),
    (collections.deque([1]), [1]),
    (range(3), [0, 1, 2]),
    (print, repr(print)),
    (Color, repr(Color)),
]

BLOCKS: list[tuple[Any, Any]] = [
    (None, []),
    ("", [{"type": "text", "text": ""}]),
    ("hi", [{"type": "text", "text": "hi"}]),
    (0, [{"type": "text", "text": "0"}]),
    ([], [{"type": "text", "text": "[]"}]),
    ({}, [{"type": "text", "text": "{}"}]),
    ({"ä": [1.0]}, [{"type": "text", "text": '{"ä":[1.0]}'}]),
    (PNG, [{"type": "image", "data": PNG_TEXT, "mimeType": "image/png"}]),
    (Image(data=PNG), [{"type": "image", "data": PNG_TEXT, "mimeType": "image/png"}]),
    (
        ["a", Image(data=PNG), {"b": 1}],
        [
            {"type": "text", "text": "a"},
            {"type": "image", "data": PNG_TEXT, "mimeType": "image/png"},
            {"type": "text", "text": '{"b":1}'},
        ],
    ),
    (
        Audio(data=WAV),
        [{"type": "audio", "data": base64.b64encode(WAV).decode(), "mimeType": "audio/wav"}],
    ),
    (
        File(data="a,b", name="ü.csv"),
        [
            {
                "type": "resource",
                "resource": {"uri": "file:///%C3%BC.csv", "mimeType": "text/csv", "text": "a,b"},
            }
        ],
    ),
    (
        b"\0\1",
        [
            {
                "type": "resource",
                "resource": {
                    "uri": "file:///result",
                    "mimeType": "application/octet-stream",
                    "blob": "AAE=",
                },
            }
        ],
    ),
    (
        Link("https://example.com/a", "a", mime_type="text/html"),
        [
            {
                "type": "resource_link",
                "uri": "https://example.com/a",
                "name": "a",
                "mimeType": "text/html",
            }
        ],
    ),
]


class Content(unittest.TestCase):
    maxDiff = None

    def test_json_forms(self) -> None:
        for value, expected in JSON:
            with self.subTest(value):
                encoded = to_json(value).value
                self.assertEqual(encoded, expected)
                self.assertIs(type(encoded), type(expected))

    def test_blocks(self) -> None:
        for value, expected in BLOCKS:
            with self.subTest(value):
                self.assertEqual(blocks(value), expected)

    def test_files_are_read(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.png"
            path.write_bytes(PNG)
            (block,) = blocks(File(path=path))
            self.assertEqual(block, {"type": "image", "data": PNG_TEXT, "mimeType": "image/png"})
            with self.assertRaises(FileNotFoundError):
                blocks(File(path=path.with_name("missing")))

    def test_wrong_media_is_refused(self) -> None:
        for value in (Image(data=b"text"), Audio(data=PNG), File()):
            with self.subTest(value), self.assertRaises(ToolError):
                blocks(value)

    def test_endless_results_end(self) -> None:
        loop: list[Any] = []
        loop.append(loop)
        for value in (loop, itertools.count()):
            with self.assertRaises(ToolError):
                to_json(value)

    def test_structured_content_by_revision(self) -> None:
        def number() -> int: ...
        def table() -> dict[str, int]: ...
        def anything() -> Any: ...

        cases = [
            (number, 5, "2024-11-05", None),
            (number, 5, "2025-11-25", {"result": 5}),
            (number, 5, "2026-07-28", 5),
            (table, {"a": 1}, "2025-03-26", None),
            (table, {"a": 1}, "2025-06-18", {"a": 1}),
            (table, {}, "2026-07-28", {}),
            (anything, [1], "2025-11-25", None),
            (anything, [1], "2026-07-28", [1]),
            (anything, {"a": 1}, "2025-11-25", {"a": 1}),
            (anything, "text", "2026-07-28", None),
            (anything, PNG, "2026-07-28", None),
        ]
        for function, value, revision, expected in cases:
            with self.subTest(function.__name__, revision=revision):
                result = call_result(define(function), value, revision)
                self.assertEqual(result.get("structuredContent"), expected)

    def test_old_revisions_get_blocks_that_they_know(self) -> None:
        def anything() -> Any: ...

        definition = define(anything)
        audio = call_result(definition, Audio(data=WAV), "2024-11-05")["content"][0]
        self.assertEqual(audio["type"], "resource")
        link = call_result(definition, Link("https://example.com", "a"), "2025-03-26")["content"][0]
        self.assertEqual(link, {"type": "text", "text": "a: https://example.com"})


if __name__ == "__main__":
    unittest.main()
