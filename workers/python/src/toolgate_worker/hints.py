"""Type hints, parsed into shapes that `schema` describes and `convert` reads."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import decimal
import enum
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Union

from . import docstrings
from .constraints import Constraints
from .content import enum_json, is_json_scalar
from .errors import DefinitionError
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
from .texts import TEXT_TYPES

SCALARS: dict[Any, Shape] = {
    str: Scalar("string"),
    int: Scalar("integer"),
    float: Scalar("number"),
    bool: Scalar("boolean"),
    decimal.Decimal: Exact(),
    None: Null(),
    type(None): Null(),
    Any: Anything(),
    object: Anything(),
    inspect.Parameter.empty: Anything(),
    # Python 3.11
    getattr(typing, "LiteralString", str): Scalar("string"),
}

LISTS = {
    list,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Collection,
}
ARRAYS: dict[Any, tuple[Callable[[list[Any]], Any], bool]] = {
    **dict.fromkeys(LISTS, (list, False)),
    collections.deque: (collections.deque, False),
    set: (set, True),
    frozenset: (frozenset, True),
    collections.abc.Set: (set, True),
    collections.abc.MutableSet: (set, True),
}
TABLES: dict[Any, Callable[[dict[Any, Any]], Any]] = {
    dict: dict,
    collections.abc.Mapping: dict,
    collections.abc.MutableMapping: dict,
    collections.OrderedDict: collections.OrderedDict,
    collections.defaultdict: lambda entries: collections.defaultdict(None, entries),
    collections.Counter: collections.Counter,
}
QUALIFIERS = {"Required", "NotRequired", "ReadOnly", "Final", "ClassVar"}


def resolve(hint: Any, scope: Mapping[str, Any]) -> Any:
    """Evaluates a hint given as text, also inside other hints."""

    def holder() -> None:
        pass

    holder.__annotations__ = {"hint": hint}
    try:
        return typing.get_type_hints(holder, dict(scope), include_extras=True)["hint"]
    except Exception as error:
        raise DefinitionError(f"cannot resolve the type `{hint}`: {error}") from error


class Parser:
    """Parses the hints of one function. Shapes of classes are shared between its parameters."""

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self._scope = dict(scope)
        self._named: dict[Any, Named] = {}
        self._variables: dict[Any, Any] = {}

    def parse(self, hint: Any) -> Shape:
        """Returns the shape of a resolved hint."""
        try:
            known = SCALARS.get(hint)
        except TypeError:
            known = None
        if known is not None:
            return known
        if isinstance(hint, (str, typing.ForwardRef)):
            return self._forward(hint if isinstance(hint, str) else hint.__forward_arg__)
        if isinstance(hint, typing.TypeVar):
            return self._variable(hint)
        if hasattr(hint, "__supertype__"):  # NewType
            return self.parse(hint.__supertype__)
        if type(hint).__name__ == "TypeAliasType":
            return self._alias(hint)
        origin = typing.get_origin(hint)
        if origin is not None:
            return self._generic(hint, origin, typing.get_args(hint))
        if isinstance(hint, type):
            return self._class(hint)
        return self._unsupported(hint)

    def _forward(self, name: str) -> Shape:
        """Parses a name that refers to itself; only recursive aliases are still names here."""
        named = self._named.get(name)
        if named is None:
            named = self._named[name] = Named(name, Anything())
            named.target = self.parse(resolve(name, self._scope))
        return named

    def _variable(self, variable: typing.TypeVar) -> Shape:
        if variable in self._variables:
            return self.parse(self._variables[variable])
        if variable.__constraints__:
            return self._union(variable.__constraints__)
        return self.parse(variable.__bound__) if variable.__bound__ else Anything()

    def _alias(self, alias: Any) -> Shape:
        named = self._named.get(alias)
        if named is None:
            named = self._named[alias] = Named(alias.__name__, Anything())
            named.target = self.parse(resolve(alias.__value__, self._scope))
        return named

    def _generic(self, hint: Any, origin: Any, arguments: tuple[Any, ...]) -> Shape:
        if origin is typing.Annotated:
            base = self.parse(arguments[0])
            constraints = Constraints.of(hint.__metadata__)
            return Limited(base, constraints) if constraints else base
        if origin is Union or origin is types.UnionType:
            return self._union(arguments)
        if origin is typing.Literal:
            return Choice(tuple(_literal(value) for value in arguments))
        if getattr(origin, "_name", None) in QUALIFIERS:
            return self.parse(arguments[0])
        if not arguments and (origin is not tuple or hint is typing.Tuple):
            return self._class(origin)  # `typing.List` without a type
        if origin is tuple:
            return self._tuple(arguments)
        if origin in ARRAYS:
            build, is_unique = ARRAYS[origin]
            return Array(self.parse(arguments[0]), build, is_unique)
        if origin is collections.Counter:
            return Table(self.parse(arguments[0]), Scalar("integer"), collections.Counter)
        if origin in TABLES:
            key, value = (self.parse(argument) for argument in arguments)
            return Table(key, value, TABLES[origin])
        if origin in TEXT_TYPES:  # os.PathLike[str], re.Pattern[str]
            return self._class(origin)
        parameters = getattr(origin, "__parameters__", ())
        if isinstance(origin, type) and parameters and not _is_pydantic(origin):
            outer = self._variables
            self._variables = {**outer, **dict(zip(parameters, arguments, strict=False))}
            try:
                return self._class(origin, key=(hint, tuple(self._variables.items())))
            finally:
                self._variables = outer
        return self._pydantic(hint) if _is_pydantic(origin) else self._unsupported(hint)

    def _union(self, options: tuple[Any, ...]) -> Shape:
        shapes = [self.parse(option) for option in options]
        # `float | int`: an integer stays an integer.
        shapes.sort(key=lambda shape: shape != Scalar("integer"))
        return Either(tuple(shapes))

    def _tuple(self, arguments: tuple[Any, ...]) -> Shape:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return Array(self.parse(arguments[0]), tuple)
        return Row(tuple(self.parse(argument) for argument in arguments if argument != ()))

    def _class(self, cls: type, key: Any = None) -> Shape:
        if cls in ARRAYS:
            build, is_unique = ARRAYS[cls]
            return Array(Anything(), build, is_unique)
        if cls is tuple:
            return Array(Anything(), tuple)
        if cls in TABLES:
            value = Scalar("integer") if cls is collections.Counter else Anything()
            return Table(Scalar("string"), value, TABLES[cls])
        for base in cls.__mro__:
            if base in TEXT_TYPES:
                keywords, parse = TEXT_TYPES[base]
                return Text(keywords, parse)
        if issubclass(cls, enum.Enum):
            if not len(cls):
                raise DefinitionError(f"the enum `{cls.__name__}` has no members")
            return Named(cls.__name__, Choice(tuple((enum_json(member), member) for member in cls)))
        if _is_pydantic(cls):
            return self._pydantic(cls)
        key = cls if key is None else key
        if key in self._named:
            return self._named[key]
        if dataclasses.is_dataclass(cls):
            return self._record(cls, key, _dataclass_fields(cls))
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return self._record(cls, key, _namedtuple_fields(cls))
        if issubclass(cls, dict) and hasattr(cls, "__required_keys__"):
            return self._record(cls, key, _typeddict_fields(cls))
        # Subclasses of plain types, such as `class City(str)`.
        for base in (bool, int, float, str):
            if issubclass(cls, base):
                return Limited(SCALARS[base], Constraints(convert=cls))
        return self._unsupported(cls)

    def _record(self, cls: type, key: Any, fields: list[tuple[str, bool, Any, str]]) -> Shape:
        record = Record(build=lambda members: cls(**members))
        named = self._named[key] = Named(cls.__name__, record)
        doc = docstrings.parse(_own_docstring(cls))
        record.description = doc.description
        hints = _class_hints(cls)
        for name, is_required, default, description in fields:
            hint = hints.get(name, Any)
            is_required = _requirement(hint, is_required)
            text = description or doc.parameters.get(name, "")
            record.members.append(Member(name, self.parse(hint), is_required, text, default))
        return named

    def _pydantic(self, hint: Any) -> Shape:
        try:
            adapter = sys.modules["pydantic"].TypeAdapter(hint)
        except Exception as error:
            raise DefinitionError(f"pydantic cannot describe `{hint}`: {error}") from error
        return Foreign(getattr(hint, "__name__", "Model"), adapter)

    def _unsupported(self, hint: Any) -> Shape:
        name = getattr(hint, "__qualname__", None) or str(hint)
        raise DefinitionError(
            f"the type `{name}` has no JSON form; use a dataclass, a TypedDict or a plain type"
        )


def _literal(value: Any) -> tuple[Any, Any]:
    if isinstance(value, enum.Enum):
        return enum_json(value), value
    if is_json_scalar(value):
        return value, value
    raise DefinitionError(f"the literal {value!r} has no JSON form")


def _is_pydantic(cls: Any) -> bool:
    """Whether pydantic is imported and the class is one of its types. Never imports pydantic."""
    if "pydantic" not in sys.modules or dataclasses.is_dataclass(cls):
        return False
    return hasattr(cls, "__get_pydantic_core_schema__")


def _own_docstring(cls: type) -> str | None:
    """Returns the docstring, unless `dataclass` or `NamedTuple` generated it."""
    text = cls.__dict__.get("__doc__")
    is_generated = isinstance(text, str) and text.startswith(f"{cls.__name__}(")
    return None if is_generated else text


def _class_hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception as error:
        name = cls.__qualname__
        raise DefinitionError(f"cannot resolve the fields of `{name}`: {error}") from error


def _requirement(hint: Any, otherwise: bool) -> bool:
    """Reads `Required` and `NotRequired`, which text annotations hide from `TypedDict`."""
    while (origin := typing.get_origin(hint)) is not None:
        name = getattr(origin, "_name", None)
        if name in ("Required", "NotRequired"):
            return bool(name == "Required")
        if origin is not typing.Annotated and name != "ReadOnly":
            break
        hint = typing.get_args(hint)[0]
    return otherwise


def _dataclass_fields(cls: Any) -> list[tuple[str, bool, Any, str]]:
    fields = []
    for item in dataclasses.fields(cls):
        if not item.init:
            continue
        has_default = item.default is not dataclasses.MISSING
        is_required = not has_default and item.default_factory is dataclasses.MISSING
        default = item.default if has_default else inspect.Parameter.empty
        description = str(item.metadata.get("description", ""))
        fields.append((item.name, is_required, default, description))
    return fields


def _namedtuple_fields(cls: Any) -> list[tuple[str, bool, Any, str]]:
    empty = inspect.Parameter.empty
    defaults: dict[str, Any] = cls._field_defaults
    return [(name, name not in defaults, defaults.get(name, empty), "") for name in cls._fields]


def _typeddict_fields(cls: Any) -> list[tuple[str, bool, Any, str]]:
    empty = inspect.Parameter.empty
    return [(name, name in cls.__required_keys__, empty, "") for name in cls.__annotations__]
