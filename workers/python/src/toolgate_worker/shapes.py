"""Shapes: what a type hint means for JSON."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .constraints import Constraints


class Shape:
    """Base of all shapes."""


@dataclass(frozen=True)
class Anything(Shape):
    """Any JSON value, passed on unchanged."""


@dataclass(frozen=True)
class Null(Shape):
    """`None`."""


@dataclass(frozen=True)
class Scalar(Shape):
    """A string, integer, number or boolean."""

    type: str


@dataclass(frozen=True)
class Exact(Shape):
    """`decimal.Decimal`, read from a number or from its text."""


@dataclass(frozen=True)
class Text(Shape):
    """A Python object that JSON spells as a string."""

    keywords: Mapping[str, str]
    parse: Callable[[str], Any]


@dataclass(frozen=True)
class Choice(Shape):
    """`Literal` or `Enum`: JSON values with the Python values that they stand for."""

    options: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class Array(Shape):
    """A list, set or other collection of one type."""

    item: Shape
    build: Callable[[list[Any]], Any]
    is_unique: bool = False


@dataclass(frozen=True)
class Row(Shape):
    """A tuple of fixed length."""

    items: tuple[Shape, ...]


@dataclass(frozen=True)
class Table(Shape):
    """A mapping with keys of one type and values of one type."""

    key: Shape
    value: Shape
    build: Callable[[dict[Any, Any]], Any]


@dataclass
class Member:
    """A member of a record."""

    name: str
    shape: Shape
    is_required: bool
    description: str = ""
    default: Any = inspect.Parameter.empty


@dataclass
class Record(Shape):
    """A dataclass, `TypedDict` or `NamedTuple`."""

    build: Callable[[dict[str, Any]], Any]
    members: list[Member] = field(default_factory=list)
    description: str = ""


@dataclass(frozen=True)
class Either(Shape):
    """A union. Options are tried in order."""

    options: tuple[Shape, ...]


@dataclass(frozen=True)
class Limited(Shape):
    """A shape with constraints or a description (`Annotated`)."""

    base: Shape
    constraints: Constraints


@dataclass
class Named(Shape):
    """A type with a name. A type that is used more than once is described in `$defs`."""

    name: str
    target: Shape


@dataclass
class Foreign(Shape):
    """A type that pydantic validates and describes."""

    name: str
    adapter: Any


def accepts_none(shape: Shape) -> bool:
    """Whether `None` fits a shape."""
    match shape:
        case Anything() | Null():
            return True
        case Either(options):
            return any(accepts_none(option) for option in options)
        case Choice(options):
            return any(value is None for value, _ in options)
        case Limited(base, _):
            return accepts_none(base)
        case _:
            return False
