"""Type hints: the schema of each, and JSON values read into Python ones."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import ipaddress
import pathlib
import re
import typing
import unittest
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypedDict,
    TypeVar,
    Union,
)

from toolgate_worker import Param
from toolgate_worker.convert import read
from toolgate_worker.errors import ArgumentError, DefinitionError
from toolgate_worker.hints import Parser, resolve
from toolgate_worker.schema import Describer


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mode(enum.Enum):
    FAST = object()
    SLOW = object()


class Point(NamedTuple):
    x: int
    y: int = 0


class Title(TypedDict):
    title: str


class Movie(Title, total=False):
    year: int


class Film(TypedDict, total=False):
    title: Required[str]
    year: int


@dataclass
class Address:
    """Where something is.

    Attributes:
        street: Street and number.
    """

    street: str
    zip: str = field(default="", metadata={"description": "Postal code."})
    tags: list[str] = field(default_factory=list)


@dataclass
class Node:
    value: int
    children: list[Node] = field(default_factory=list)


@dataclass
class Pair:
    first: Address
    second: Address


T = TypeVar("T")


@dataclass
class Box(Generic[T]):
    content: T


@dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("odd")


class City(str):
    pass


# Python 3.10 has no `Required`.
Required = getattr(typing, "Required", None)
UserId = NewType("UserId", int)
Tree = Union[int, list["Tree"]]


def schema(hint: Any) -> Any:
    shape = Parser(globals()).parse(resolve(hint, globals()))
    describer = Describer([shape])
    return describer.with_definitions(describer.describe(shape))


def convert(hint: Any, value: Any) -> Any:
    return read(Parser(globals()).parse(resolve(hint, globals())), value, "x")


ADDRESS_SCHEMA = {
    "type": "object",
    "properties": {
        "street": {"type": "string", "description": "Street and number."},
        "zip": {"type": "string", "description": "Postal code.", "default": ""},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["street"],
    "additionalProperties": False,
    "description": "Where something is.",
}
NUMBER_OR_TEXT = schema(decimal.Decimal)

SCHEMAS: list[tuple[Any, Any]] = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (Any, {}),
    ("Optional[str]", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Union[float, int], {"anyOf": [{"type": "integer"}, {"type": "number"}]}),
    ("int | None", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (Literal["a", 1, None], {"type": ["string", "integer", "null"], "enum": ["a", 1, None]}),
    (Color, {"type": "string", "enum": ["red", "blue"]}),
    (Level, {"type": "integer", "enum": [1, 2]}),
    (Mode, {"type": "string", "enum": ["FAST", "SLOW"]}),
    (list, {"type": "array", "items": {}}),
    (typing.List, {"type": "array", "items": {}}),
    (typing.Tuple, {"type": "array", "items": {}}),
    (typing.Dict, {"type": "object", "additionalProperties": True}),
    (Sequence, {"type": "array", "items": {}}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (typing.List[int], {"type": "array", "items": {"type": "integer"}}),
    (Sequence[str], {"type": "array", "items": {"type": "string"}}),
    (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (
        tuple[int, str],
        {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
        },
    ),
    (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}),
    (dict, {"type": "object", "additionalProperties": True}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Mapping[str, Any], {"type": "object", "additionalProperties": True}),
    (datetime.datetime, {"type": "string", "format": "date-time"}),
    (datetime.date, {"type": "string", "format": "date"}),
    (datetime.time, {"type": "string", "format": "time"}),
    (datetime.timedelta, {"type": "string", "format": "duration"}),
    (uuid.UUID, {"type": "string", "format": "uuid"}),
    (pathlib.Path, {"type": "string", "format": "path"}),
    (bytes, {"type": "string", "contentEncoding": "base64"}),
    (re.Pattern[str], {"type": "string", "format": "regex"}),
    (ipaddress.IPv4Address, {"type": "string", "format": "ipv4"}),
    (UserId, {"type": "integer"}),
    (City, {"type": "string"}),
    (T, {}),
    (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
    (
        Annotated[int, Param("How many.", ge=1, le=9)],
        {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 9},
    ),
    (
        Annotated[str, Param(min_length=1, pattern="^a", examples=("ab",))],
        {"type": "string", "minLength": 1, "pattern": "^a", "examples": ["ab"]},
    ),
    (
        Annotated[Optional[list[int]], Param(max_length=3)],
        {
            "anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}],
            "maxItems": 3,
        },
    ),
    (Address, ADDRESS_SCHEMA),
    (
        Point,
        {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
            "required": ["x"],
            "additionalProperties": False,
        },
    ),
    (
        Box[int],
        {
            "type": "object",
            "properties": {"content": {"type": "integer"}},
            "required": ["content"],
            "additionalProperties": False,
        },
    ),
    (
        Pair,
        {
            "type": "object",
            "properties": {
                "first": {"$ref": "#/$defs/Address"},
                "second": {"$ref": "#/$defs/Address"},
            },
            "required": ["first", "second"],
            "additionalProperties": False,
            "$defs": {"Address": ADDRESS_SCHEMA},
        },
    ),
    (
        Node,
        {
            "$ref": "#/$defs/Node",
            "$defs": {
                "Node": {
                    "type": "object",
                    "properties": {
                        "value": {"type": "integer"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                    },
                    "required": ["value"],
                    "additionalProperties": False,
                }
            },
        },
    ),
]

VALUES: list[tuple[Any, Any, Any]] = [
    (str, "a", "a"),
    (int, 3, 3),
    (int, 3.0, 3),
    (int, 10**30, 10**30),
    (float, 3, 3.0),
    (bool, True, True),
    (Any, {"a": [1]}, {"a": [1]}),
    (Optional[int], None, None),
    (Union[float, int], 3, 3),
    (Union[int, str], "3", "3"),
    (Union[datetime.date, str], "2026-01-02", datetime.date(2026, 1, 2)),
    (Union[datetime.date, str], "soon", "soon"),
    (Union[Point, Address], {"street": "s"}, Address("s")),
    (Literal[1, "a"], 1, 1),
    (Color, "red", Color.RED),
    (Level, 2, Level.HIGH),
    (Mode, "SLOW", Mode.SLOW),
    (Literal[Color.RED], "red", Color.RED),
    (list[int], [1, 2.0], [1, 2]),
    (set[int], [1, 1], {1}),
    (frozenset[str], ["a"], frozenset({"a"})),
    (tuple[int, str], [1, "a"], (1, "a")),
    (tuple[int, ...], [1, 2], (1, 2)),
    (collections.deque[int], [1], collections.deque([1])),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (dict[uuid.UUID, int], {"0" * 32: 1}, {uuid.UUID(int=0): 1}),
    (dict[Color, int], {"red": 1}, {Color.RED: 1}),
    (
        datetime.datetime,
        "2026-01-02T03:04:05Z",
        datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
    ),
    (datetime.time, "03:04", datetime.time(3, 4)),
    (datetime.timedelta, "P1DT2H3.5S", datetime.timedelta(days=1, hours=2, seconds=3.5)),
    (datetime.timedelta, "-PT1M", datetime.timedelta(minutes=-1)),
    (uuid.UUID, "0" * 32, uuid.UUID(int=0)),
    (pathlib.Path, "a/b", pathlib.Path("a/b")),
    (bytes, "aGk=", b"hi"),
    (bytes, "_-8", b"\xff\xef"),
    (decimal.Decimal, "12.50", decimal.Decimal("12.50")),
    (decimal.Decimal, 0.1, decimal.Decimal("0.1")),
    (re.Pattern[str], "a+", re.compile("a+")),
    (City, "Rome", City("Rome")),
    (Address, {"street": "s", "tags": ["t"]}, Address("s", tags=["t"])),
    (Point, {"x": 1}, Point(1)),
    (Movie, {"title": "t"}, {"title": "t"}),
    (Box[int], {"content": 1}, Box(1)),
    (Node, {"value": 1, "children": [{"value": 2}]}, Node(1, [Node(2)])),
    (Tree, [1, [2, []]], [1, [2, []]]),
]

PROBLEMS: list[tuple[Any, Any, str]] = [
    (str, 1, "argument `x`: expected a string, got an integer"),
    (int, "1", "argument `x`: expected an integer, got a string"),
    (int, True, "argument `x`: expected an integer, got a boolean"),
    (int, 1.5, "argument `x`: expected an integer, got a number"),
    (float, None, "argument `x`: expected a number, got null"),
    (float, 10**400, "argument `x`: OverflowError: int too large to convert to float"),
    (bool, 0, "argument `x`: expected a boolean, got an integer"),
    (list[int], [1, "a"], "argument `x[1]`: expected an integer, got a string"),
    (list[int], {"a": 1}, "argument `x`: expected an array, got an object"),
    (tuple[int, str], [1], "argument `x`: expected 2 items, got 1"),
    (dict[str, int], {"a": []}, "argument `x.a`: expected an integer, got an array"),
    (dict[int, int], {"a": 1}, "argument `x.a`: the key is not a number"),
    (Literal["a"], "b", 'argument `x`: expected one of "a"'),
    (Literal[1], True, "argument `x`: expected one of 1"),
    (Color, "green", 'argument `x`: expected one of "red", "blue"'),
    (Address, {}, "argument `x.street`: missing"),
    (
        Address,
        {"street": "s", "no": 1},
        "argument `x.no`: unexpected; known are: street, zip, tags",
    ),
    (Node, {"value": 1, "children": [{}]}, "argument `x.children[0].value`: missing"),
    (Even, {"number": 1}, "argument `x`: ValueError: odd"),
    (
        datetime.date,
        "tomorrow",
        "argument `x`: not a valid date: Invalid isoformat string: 'tomorrow'",
    ),
    (
        datetime.timedelta,
        "P",
        "argument `x`: not a valid duration: not an ISO 8601 duration such as PT1H30M",
    ),
    (bytes, "a", "argument `x`: not a valid base64"),
    (decimal.Decimal, "NaN", "argument `x`: not a finite number"),
    (decimal.Decimal, "x", "argument `x`: not a decimal number"),
    (decimal.Decimal, True, "argument `x`: expected a number or its text, got a boolean"),
    (
        Optional[int],
        "a",
        "argument `x`: expected an integer, got a string; or expected null, got a string",
    ),
    (Annotated[int, Param(ge=1)], 0, "argument `x`: 0 is less than 1"),
    (Annotated[int, Param(multiple_of=5)], 7, "argument `x`: 7 is not a multiple of 5"),
    (Annotated[str, Param(max_length=2)], "abc", "argument `x`: length 3 is more than 2"),
    (Annotated[str, Param(pattern="^a$")], "b", "argument `x`: does not match the pattern ^a$"),
    (Movie, {"year": 1}, "argument `x.title`: missing"),
]


class Types(unittest.TestCase):
    maxDiff = None

    def test_r081_types_become_schemas(self) -> None:
        for hint, expected in SCHEMAS:
            with self.subTest(hint):
                self.assertEqual(schema(hint), expected)

    def test_values_are_converted(self) -> None:
        for hint, value, expected in VALUES:
            with self.subTest(hint, value=value):
                converted = convert(hint, value)
                self.assertEqual(converted, expected)
                self.assertIs(type(converted), type(expected))

    def test_problems_name_the_place(self) -> None:
        for hint, value, expected in PROBLEMS:
            with self.subTest(hint, value=value):
                with self.assertRaises(ArgumentError) as caught:
                    convert(hint, value)
                self.assertTrue(str(caught.exception).startswith(expected), caught.exception)

    @unittest.skipUnless(Required, "needs Python 3.11")
    def test_required_members_of_text_annotations(self) -> None:
        self.assertEqual(schema(Film)["required"], ["title"])

    def test_recursive_alias(self) -> None:
        item = {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
        tree = {"anyOf": [{"type": "integer"}, item]}
        self.assertEqual(schema(list[Tree])["$defs"], {"Tree": tree})

    def test_unsupported_types(self) -> None:
        empty = enum.Enum("empty", [])
        plain = [5, [], "", "x y", "Missing", Ellipsis, complex, empty, type]
        generic = [
            Literal[b"x"],
            list[complex],
            collections.abc.Callable,
            typing.Callable[[int], str],
        ]
        for hint in plain + generic:
            with self.subTest(hint), self.assertRaises(DefinitionError):
                schema(hint)


if __name__ == "__main__":
    unittest.main()
