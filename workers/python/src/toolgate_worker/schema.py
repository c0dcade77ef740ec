"""JSON Schema 2020-12 of shapes."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

from .content import to_json
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

Schema = dict[str, Any]

DECIMAL_PATTERN = r"^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$"
JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class Describer:
    """Describes the shapes of one tool. Named types that occur more than once go into `$defs`.

    The modes are those of pydantic: `validation` for arguments, `serialization` for results.
    """

    def __init__(self, shapes: list[Shape], mode: str = "validation") -> None:
        self.definitions: dict[str, Schema] = {}
        self._mode = mode
        self._uses: Counter[int] = Counter()
        self._names: dict[int, str] = {}
        for shape in shapes:
            self._count(shape)

    def _count(self, shape: Shape) -> None:
        if isinstance(shape, Named):
            self._uses[id(shape)] += 1
            if self._uses[id(shape)] > 1:
                return
        for child in _children(shape):
            self._count(child)

    def members(self, members: list[Member]) -> Schema:
        """Describes an object with the given members."""
        schema: Schema = {"type": "object", "properties": {}}
        for member in members:
            schema["properties"][member.name] = self.member(member)
        required = [member.name for member in members if member.is_required]
        if required:
            schema["required"] = required
        return schema

    def member(self, member: Member) -> Schema:
        """Describes one member, with its description and default."""
        schema = self.describe(member.shape)
        if member.description and not (
            isinstance(member.shape, Limited) and "description" in schema
        ):
            schema["description"] = member.description
        if member.default is not inspect.Parameter.empty:
            encoded = to_json(member.default, strict=True)
            if encoded is not None:
                schema["default"] = encoded.value
        return schema

    def describe(self, shape: Shape) -> Schema:
        """Returns a new schema of a shape."""
        match shape:
            case Anything():
                return {}
            case Null():
                return {"type": "null"}
            case Scalar(name):
                return {"type": name}
            case Exact():
                text = {"type": "string", "pattern": DECIMAL_PATTERN}
                return {"anyOf": [{"type": "number"}, text]}
            case Text(keywords, _):
                return {"type": "string", **keywords}
            case Choice(options):
                return _choice([value for value, _ in options])
            case Array(item, _, is_unique):
                unique = {"uniqueItems": True} if is_unique else {}
                return {"type": "array", "items": self.describe(item), **unique}
            case Row(items):
                return self._row(items)
            case Table(_, value, _):
                return {"type": "object", "additionalProperties": self.describe(value) or True}
            case Record(_, members, description):
                schema = self.members(members)
                if self._mode == "validation":
                    schema["additionalProperties"] = False
                if description:
                    schema["description"] = description
                return schema
            case Either(options):
                return {"anyOf": [self.describe(option) for option in options]}
            case Limited(base, constraints):
                schema = self.describe(base)
                schema.update(constraints.keywords(_type_of(schema)))
                if constraints.description:
                    schema["description"] = constraints.description
                return schema
            case Named():
                return self._named(shape)
            case Foreign():
                return self._foreign(shape)
        raise TypeError(f"unknown shape {shape!r}")

    def with_definitions(self, schema: Schema) -> Schema:
        """Adds `$defs`, if there are any, to the root of a schema."""
        return {**schema, "$defs": self.definitions} if self.definitions else schema

    def _row(self, items: tuple[Shape, ...]) -> Schema:
        count = len(items)
        schema: Schema = {"type": "array", "minItems": count, "maxItems": count}
        if items:
            schema["prefixItems"] = [self.describe(item) for item in items]
        return schema

    def _named(self, shape: Named) -> Schema:
        if self._uses[id(shape)] < 2:
            return self.describe(shape.target)
        name = self._names.get(id(shape))
        if name is None:
            name = self._names[id(shape)] = self._free_name(shape.name)
            self.definitions[name] = {}
            self.definitions[name] = self.describe(shape.target)
        return {"$ref": f"#/$defs/{name}"}

    def _free_name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.definitions:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def _foreign(self, shape: Foreign) -> Schema:
        schema: Schema = dict(shape.adapter.json_schema(mode=self._mode))
        inner: dict[str, Schema] = schema.pop("$defs", {})
        clashes = {
            name: self._free_name(name)
            for name, definition in inner.items()
            if self.definitions.get(name, definition) != definition
        }
        for name, definition in inner.items():
            self.definitions[clashes.get(name, name)] = _renamed(definition, clashes)
        renamed: Schema = _renamed(schema, clashes)
        return renamed


def _children(shape: Shape) -> list[Shape]:
    match shape:
        case Array(item, _, _):
            return [item]
        case Row(items):
            return list(items)
        case Table(key, value, _):
            return [key, value]
        case Record(_, members, _):
            return [member.shape for member in members]
        case Either(options):
            return list(options)
        case Limited(base, _):
            return [base]
        case Named(_, target):
            return [target]
        case _:
            return []


def _type_of(schema: Schema) -> object:
    """Returns the type of a schema, or that of its first option (`Optional[list[int]]`)."""
    return schema.get("type") or next(
        (option.get("type") for option in schema.get("anyOf", [])), None
    )


def _choice(values: list[Any]) -> Schema:
    types = list(dict.fromkeys(JSON_TYPES[type(value)] for value in values))
    return {"type": types[0] if len(types) == 1 else types, "enum": values}


def _renamed(value: Any, names: dict[str, str]) -> Any:
    """Returns a schema with other names in its references to `$defs`."""
    if isinstance(value, dict):
        prefix = "#/$defs/"
        renamed = {key: _renamed(item, names) for key, item in value.items()}
        target = renamed.get("$ref")
        if isinstance(target, str) and target.startswith(prefix):
            name = target[len(prefix) :]
            renamed["$ref"] = prefix + names.get(name, name)
        return renamed
    return [_renamed(item, names) for item in value] if isinstance(value, list) else value
