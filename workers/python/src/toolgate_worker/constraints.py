"""Descriptions and limits in `Annotated`, ours and those of other libraries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

# Attribute names that this package, annotated-types and pydantic share.
NUMERIC = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
SIZES = {
    str: ("minLength", "maxLength"),
    list: ("minItems", "maxItems"),
    dict: ("minProperties", "maxProperties"),
}


@dataclass(frozen=True)
class Param:
    """Description and limits of a parameter: `Annotated[int, Param("Pages to read", ge=1)]`."""

    description: str = ""
    _: KW_ONLY
    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    examples: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Constraints:
    """Collected metadata of one `Annotated` hint."""

    description: str = ""
    numeric: dict[str, Any] = field(default_factory=dict)
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    examples: tuple[Any, ...] = ()
    convert: Callable[[Any], Any] | None = None

    def __bool__(self) -> bool:
        return self != Constraints()

    @classmethod
    def of(cls, metadata: Iterable[Any]) -> Constraints:
        """Collects what is known; other metadata is ignored, as PEP 593 asks."""
        found: dict[str, Any] = {"numeric": {}}
        for item in _flattened(metadata):
            if isinstance(item, str):
                found["description"] = item
                continue
            text = getattr(item, "description", None) or getattr(item, "documentation", None)
            if isinstance(text, str):
                found["description"] = text
            for name, keyword in NUMERIC.items():
                limit = getattr(item, name, None)
                if isinstance(limit, (int, float)):
                    found["numeric"][keyword] = limit
            for name in ("min_length", "max_length"):
                if isinstance(getattr(item, name, None), int):
                    found[name] = getattr(item, name)
            pattern = getattr(item, "pattern", None)
            if isinstance(pattern, str):
                found["pattern"] = pattern
            examples = getattr(item, "examples", None)
            if isinstance(examples, (list, tuple)) and examples:
                found["examples"] = tuple(examples)
        return cls(**found)

    def keywords(self, schema_type: object) -> dict[str, Any]:
        """Returns the JSON Schema keywords for a schema of the given `type`."""
        keywords: dict[str, Any] = dict(self.numeric)
        python_type = {"array": list, "object": dict}.get(str(schema_type), str)
        smallest, largest = SIZES[python_type]
        limits = {smallest: self.min_length, largest: self.max_length, "pattern": self.pattern}
        keywords.update({name: limit for name, limit in limits.items() if limit is not None})
        if self.examples:
            keywords["examples"] = list(self.examples)
        return keywords

    def problem(self, value: Any) -> str | None:
        """Returns what is wrong with a JSON value, or `None`."""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._numeric_problem(value)
        if isinstance(value, (str, list, dict)):
            if self.min_length is not None and len(value) < self.min_length:
                return f"length {len(value)} is less than {self.min_length}"
            if self.max_length is not None and len(value) > self.max_length:
                return f"length {len(value)} is more than {self.max_length}"
        if isinstance(value, str) and self.pattern and not re.search(self.pattern, value):
            return f"does not match the pattern {self.pattern}"
        return None

    def _numeric_problem(self, value: float) -> str | None:
        checks: dict[str, tuple[Callable[[Any], bool], str]] = {
            "minimum": (lambda limit: value >= limit, "less than"),
            "exclusiveMinimum": (lambda limit: value > limit, "not greater than"),
            "maximum": (lambda limit: value <= limit, "more than"),
            "exclusiveMaximum": (lambda limit: value < limit, "not less than"),
            "multipleOf": (lambda limit: value % limit == 0, "not a multiple of"),
        }
        for keyword, limit in self.numeric.items():
            holds, words = checks[keyword]
            if not holds(limit):
                return f"{value} is {words} {limit}"
        return None


def _flattened(metadata: Iterable[Any]) -> Iterable[Any]:
    for item in metadata:
        yield item
        # pydantic's `Field(...)` keeps its limits in a list.
        inner = getattr(item, "metadata", None)
        if isinstance(inner, (list, tuple)):
            yield from inner
