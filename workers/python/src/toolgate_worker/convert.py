"""Conversion of JSON arguments into the Python types of the parameters."""

from __future__ import annotations

import decimal
import json
from typing import Any

from .errors import ArgumentError
from .shapes import (
    Anything,
    Array,
    Choice,
    Either,
    Exact,
    Foreign,
    Limited,
    Member,
    Named,
    Null,
    Record,
    Row,
    Scalar,
    Shape,
    Table,
    Text,
)

MAX_SHOWN_OPTIONS = 20


def read(shape: Shape, value: Any, at: str) -> Any:
    """Converts a JSON value; `at` is its path for errors."""
    match shape:
        case Anything():
            return value
        case Null():
            return _expect(value is None, None, "null", value, at)
        case Scalar(name):
            return _scalar(name, value, at)
        case Exact():
            return _decimal(value, at)
        case Text(keywords, parse):
            _expect(isinstance(value, str), value, "a string", value, at)
            try:
                return parse(value)
            except (ValueError, OverflowError, RecursionError) as error:
                kind = keywords.get("format") or keywords.get("contentEncoding")
                raise ArgumentError(at, f"not a valid {kind}: {error}") from error
        case Choice(options):
            return _choice(options, value, at)
        case Array(item, build, _):
            _expect(isinstance(value, list), value, "an array", value, at)
            items = [read(item, entry, f"{at}[{index}]") for index, entry in enumerate(value)]
            return _built(build, items, at)
        case Row(shapes):
            _expect(isinstance(value, list), value, "an array", value, at)
            if len(value) != len(shapes):
                raise ArgumentError(at, f"expected {len(shapes)} items, got {len(value)}")
            pairs = enumerate(zip(shapes, value, strict=True))
            return tuple(read(item, entry, f"{at}[{index}]") for index, (item, entry) in pairs)
        case Table(key, item, build):
            _expect(isinstance(value, dict), value, "an object", value, at)
            entries = {
                _key(key, name, at): read(item, entry, f"{at}.{name}")
                for name, entry in value.items()
            }
            return _built(build, entries, at)
        case Record(build, members, _):
            _expect(isinstance(value, dict), value, "an object", value, at)
            return _built(build, read_members(members, value, at), at)
        case Either(options):
            return _either(options, value, at)
        case Limited(base, constraints):
            converted = read(base, value, at)
            problem = constraints.problem(value)
            if problem is not None:
                raise ArgumentError(at, problem)
            return _built(constraints.convert, converted, at) if constraints.convert else converted
        case Named(_, target):
            return read(target, value, at)
        case Foreign():
            return _foreign(shape, value, at)
    raise TypeError(f"unknown shape {shape!r}")


def read_members(members: list[Member], value: dict[str, Any], at: str) -> dict[str, Any]:
    """Converts the members of an object. Unknown and missing members are errors."""
    prefix = f"{at}." if at else ""
    known = {member.name: member for member in members}
    for name in value:
        if name not in known:
            names = ", ".join(known) or "none"
            raise ArgumentError(f"{prefix}{name}", f"unexpected; known are: {names}")
    for member in members:
        if member.is_required and member.name not in value:
            raise ArgumentError(f"{prefix}{member.name}", "missing")
    return {
        name: read(member.shape, value[name], f"{prefix}{name}")
        for name, member in known.items()
        if name in value
    }


def json_type(value: Any) -> str:
    """Returns the JSON name of a value's type, for errors."""
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string"}
    return names.get(type(value), "an array" if isinstance(value, list) else "an object")


def _expect(holds: bool, result: Any, wanted: str, value: Any, at: str) -> Any:
    if not holds:
        raise ArgumentError(at, f"expected {wanted}, got {json_type(value)}")
    return result


def _scalar(name: str, value: Any, at: str) -> Any:
    kind = type(value)
    match name:
        case "string":
            return _expect(kind is str, value, "a string", value, at)
        case "boolean":
            return _expect(kind is bool, value, "a boolean", value, at)
        case "integer":
            if kind is float and value.is_integer():
                return int(value)
            return _expect(kind is int, value, "an integer", value, at)
        case _:
            _expect(kind in (int, float), value, "a number", value, at)
            return _built(float, value, at)


def _decimal(value: Any, at: str) -> decimal.Decimal:
    if type(value) not in (int, float, str):
        _expect(False, value, "a number or its text", value, at)
    try:
        number = decimal.Decimal(value if isinstance(value, (int, str)) else repr(value))
    except decimal.InvalidOperation as error:
        raise ArgumentError(at, "not a decimal number") from error
    if not number.is_finite():
        raise ArgumentError(at, "not a finite number")
    return number


def _choice(options: tuple[tuple[Any, Any], ...], value: Any, at: str) -> Any:
    for option, converted in options:
        # In Python, 1 == True.
        if option == value and (isinstance(option, bool) == isinstance(value, bool)):
            return converted
    shown = ", ".join(json.dumps(option) for option, _ in options[:MAX_SHOWN_OPTIONS])
    more = ", …" if len(options) > MAX_SHOWN_OPTIONS else ""
    raise ArgumentError(at, f"expected one of {shown}{more}")


def _key(shape: Shape, name: str, at: str) -> Any:
    """Converts the name of a member, which JSON always spells as a string."""
    value: Any = name
    if shape in (Scalar("integer"), Scalar("number")):
        try:
            value = int(name) if shape == Scalar("integer") else float(name)
        except ValueError as error:
            raise ArgumentError(f"{at}.{name}", "the key is not a number") from error
    return read(shape, value, f"{at}.{name}")


def _either(options: tuple[Shape, ...], value: Any, at: str) -> Any:
    problems: list[ArgumentError] = []
    for option in options:
        try:
            return read(option, value, at)
        except ArgumentError as error:
            problems.append(error)
    # The option that was understood furthest has the most useful message.
    deepest = max(problems, key=lambda error: len(error.path))
    if len(deepest.path) > len(at):
        raise deepest
    wanted = "; or ".join(dict.fromkeys(error.problem for error in problems))
    raise ArgumentError(at, wanted)


def _built(build: Any, parts: Any, at: str) -> Any:
    """Calls a constructor of the user's, whose own checks count as problems of the argument."""
    try:
        return build(parts)
    except ArgumentError:
        raise
    except Exception as error:
        raise ArgumentError(at, f"{type(error).__name__}: {error}") from error


def _foreign(shape: Foreign, value: Any, at: str) -> Any:
    try:
        return shape.adapter.validate_json(json.dumps(value))
    except ValueError as error:
        errors = getattr(error, "errors", None)
        details = errors() if callable(errors) else []
        if not details:
            raise ArgumentError(at, str(error)) from error
        first = details[0]
        path = at + "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"]
        )
        raise ArgumentError(path, str(first["msg"])) from error
