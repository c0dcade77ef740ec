"""Tool definitions: the decorator, and definitions made from functions."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, Union, overload

from . import docstrings
from .content import File, Link
from .context import Context, Progress, Result
from .convert import read, read_members
from .errors import ArgumentError, DefinitionError
from .hints import Parser, resolve
from .schema import Describer, Schema
from .shapes import Anything, Either, Member, Null, Shape, accepts_none

Function = TypeVar("Function", bound=Callable[..., Any])

OPTIONS_ATTRIBUTE = "__toolgate_tool__"
TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}$")
META_PREFIX = "dev.toolgate/"
GENERATORS = {
    collections.abc.Generator,
    collections.abc.Iterator,
    collections.abc.Iterable,
    collections.abc.AsyncGenerator,
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
}
AWAITABLES = {collections.abc.Awaitable, collections.abc.Coroutine}


@dataclass(frozen=True)
class Options:
    """Arguments of the decorator."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    timeout: float | None = None
    sequential: bool | str = False
    deterministic: bool = False
    inline: bool = False
    sessions: tuple[str, ...] | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@overload
def tool(function: Function, /) -> Function: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    sequential: bool | str = False,
    deterministic: bool = False,
    inline: bool = False,
    sessions: Iterable[str] | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
) -> Callable[[Function], Function]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Marks a function as a tool. The function itself stays as it is.

    Args:
        name: Name for the host; by default the function's.
        title: Name for people.
        description: Description for the model; by default from the docstring.
        timeout: Seconds after which a call fails.
        sequential: `True` runs one call of the tool at a time; a text names a group of tools that
            share the rule.
        deterministic: Same arguments give the same result, so that the host may cache it.
        inline: Run on the main thread, between asynchronous tools.
        sessions: Ids of the sessions that may call the tool.
        read_only: The tool changes nothing.
        destructive: The tool may delete or overwrite.
        idempotent: Repeating a call changes nothing more.
        open_world: The tool reaches outside systems.
    """
    if options.get("sessions") is not None:
        options["sessions"] = tuple(options["sessions"])
    marks = Options(**options)

    def mark(marked: Any) -> Any:
        setattr(marked, OPTIONS_ATTRIBUTE, marks)
        return marked

    return mark if function is None else mark(function)


@dataclass
class Tool:
    """A function with its definition for hosts."""

    name: str
    function: Callable[..., Any]
    options: Options
    description: str
    input_schema: Schema
    output_schema: Schema | None
    members: list[Member]
    rest: Shape | None = None
    positional: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    context_name: str | None = None
    is_async: bool = False
    yields_one: bool = False
    warnings: list[str] = field(default_factory=list)

    def bind(self, arguments: Any, context: Context) -> tuple[list[Any], dict[str, Any]]:
        """Converts JSON arguments into positional and keyword arguments of the function."""
        if not isinstance(arguments, dict):
            raise ArgumentError("", "the arguments are not a JSON object")
        known = {member.name for member in self.members}
        extra: dict[str, Any] = {}
        if self.rest is not None:
            extra = {name: value for name, value in arguments.items() if name not in known}
            arguments = {name: value for name, value in arguments.items() if name in known}
            extra = {name: read(self.rest, value, name) for name, value in extra.items()}
            reserved = [name for name in extra if name == self.context_name]
            if reserved:
                raise ArgumentError(reserved[0], "unexpected")
        values = read_members(self.members, arguments, "")
        if self.context_name is not None:
            values[self.context_name] = context
        positional = []
        for name in self.positional:
            positional.append(values.pop(name) if name in values else self.defaults[name])
        return positional, {**values, **extra}

    def group(self) -> str | None:
        """Returns the name of the group whose calls run one at a time."""
        sequential = self.options.sequential
        if isinstance(sequential, str):
            return f"group:{sequential}"
        return f"tool:{self.name}" if sequential else None

    def is_for(self, session_id: str | None) -> bool:
        """Whether a session may call the tool."""
        return self.options.sessions is None or session_id in self.options.sessions

    def annotations(self) -> dict[str, bool]:
        """Returns the behaviour hints of MCP."""
        options = self.options
        hints = {
            "readOnlyHint": options.read_only,
            "destructiveHint": options.destructive,
            "idempotentHint": options.idempotent,
            "openWorldHint": options.open_world,
        }
        return {name: hint for name, hint in hints.items() if hint is not None}

    def meta(self) -> dict[str, Any]:
        """Returns the marks that only the gateway knows."""
        options = self.options
        marks: dict[str, Any] = {}
        if options.deterministic:
            marks["deterministic"] = True
        if options.sequential:
            marks["sequential"] = options.sequential
        if options.timeout is not None:
            marks["timeoutMs"] = round(options.timeout * 1000)
        if options.sessions is not None:
            marks["sessions"] = list(options.sessions)
        return {META_PREFIX + name: mark for name, mark in marks.items()}


def define(function: Callable[..., Any]) -> Tool:
    """Makes the definition of a function. Raises `DefinitionError` with the function's name."""
    name = getattr(function, "__name__", repr(function))
    try:
        return _define(function)
    except DefinitionError as error:
        raise DefinitionError(f"tool `{name}`: {error}") from error
    except Exception as error:
        # Hints are arbitrary objects, and some run code of the user's.
        problem = f"{type(error).__name__}: {error}"
        raise DefinitionError(f"tool `{name}`: cannot be described: {problem}") from error


def _define(function: Callable[..., Any]) -> Tool:
    options: Options = getattr(function, OPTIONS_ATTRIBUTE, Options())
    name: str = options.name or getattr(function, "__name__", None) or ""
    if not TOOL_NAME.match(name):
        raise DefinitionError(f"the name {name!r} needs 1 to 128 letters, digits, `_`, `-` or `.`")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError, NameError) as error:
        raise DefinitionError(f"the signature cannot be read: {error}") from error
    scope = _scope(function)
    parser = Parser(scope)
    doc = docstrings.parse(function.__doc__)
    definition = Tool(name, function, options, "", {}, None, [])
    for parameter in signature.parameters.values():
        _add_parameter(definition, parameter, scope, parser, doc)
    shapes = [member.shape for member in definition.members]
    if definition.rest is not None:
        shapes.append(definition.rest)
    describer = Describer(shapes)
    schema = describer.members(definition.members)
    rest = describer.describe(definition.rest) if definition.rest is not None else False
    schema["additionalProperties"] = True if rest == {} else rest
    definition.input_schema = describer.with_definitions(schema)
    # A synchronous wrapper of an asynchronous function may block, so it gets a thread.
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    definition.is_async = is_async
    _add_output(definition, signature.return_annotation, scope, parser, doc)
    _add_description(definition, doc)
    return definition


def _scope(function: Callable[..., Any]) -> Mapping[str, Any]:
    inner = inspect.unwrap(function)
    while isinstance(inner, functools.partial):
        inner = inspect.unwrap(inner.func)
    scope: Mapping[str, Any] = getattr(inner, "__globals__", {})
    return scope


def _add_parameter(
    definition: Tool,
    parameter: inspect.Parameter,
    scope: Mapping[str, Any],
    parser: Parser,
    doc: docstrings.Docstring,
) -> None:
    name, empty = parameter.name, inspect.Parameter.empty
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        raise DefinitionError(f"`*{name}` has no JSON form; use a list parameter")
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        definition.positional += (name,)
        if parameter.default is not empty:
            definition.defaults = {**definition.defaults, name: parameter.default}
    if _is_context(parameter.annotation, scope):
        if definition.context_name is not None:
            raise DefinitionError("more than one parameter is a Context")
        definition.context_name = name
        return
    try:
        hint = parameter.annotation
        shape = parser.parse(hint if hint is empty else resolve(hint, scope))
    except DefinitionError as error:
        raise DefinitionError(f"parameter `{name}`: {error}") from error
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        definition.rest = shape
        return
    if parameter.annotation is empty:
        definition.warnings.append(f"parameter `{name}` has no type hint and accepts any value")
    if parameter.default is None and not accepts_none(shape):
        shape = Either((shape, Null()))
    is_required = parameter.default is empty
    description = doc.parameters.get(name, "")
    definition.members.append(Member(name, shape, is_required, description, parameter.default))


def _is_context(hint: Any, scope: Mapping[str, Any]) -> bool:
    if isinstance(hint, str):
        try:
            hint = resolve(hint, scope)
        except DefinitionError:
            # The name may be imported for type checkers only.
            return hint in ("Context", "toolgate_worker.Context")
    return any(option is Context for option in _options(hint))


def _options(hint: Any) -> tuple[Any, ...]:
    """Returns the options of a union, or the hint alone."""
    is_union = typing.get_origin(hint) in (Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)


def _add_output(
    definition: Tool,
    annotation: Any,
    scope: Mapping[str, Any],
    parser: Parser,
    doc: docstrings.Docstring,
) -> None:
    """Describes the result, if the return hint is one that JSON can describe."""
    if annotation is inspect.Signature.empty:
        return
    try:
        hint, definition.yields_one = _result_hint(definition.function, resolve(annotation, scope))
        if _is_unstructured(hint):
            return
        shape = parser.parse(hint)
    except DefinitionError as error:
        # The arguments are known; a result without a schema is a valid tool.
        definition.warnings.append(f"the result has no schema: {error}")
        return
    if isinstance(shape, Anything):
        return
    describer = Describer([shape], mode="serialization")
    schema = describer.describe(shape)
    if "$ref" in schema and describer.definitions:
        # The root of an output schema names its type, also if the type is recursive.
        name = schema["$ref"].rpartition("/")[2]
        schema = {**describer.definitions[name], **{k: v for k, v in schema.items() if k != "$ref"}}
    if doc.returns and "description" not in schema:
        schema["description"] = doc.returns
    definition.output_schema = describer.with_definitions(schema)


def _result_hint(function: Callable[..., Any], hint: Any) -> tuple[Any, bool]:
    """Returns the hint of the value that a call ends with, and whether a generator has just one."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in AWAITABLES:
        return arguments[-1], False
    inner = inspect.unwrap(function)
    is_generator = inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner)
    if not is_generator or origin not in GENERATORS:
        return (Any if is_generator else hint), False
    is_returning = origin is collections.abc.Generator and len(arguments) == 3
    if is_returning and arguments[2] not in (None, type(None), Any):
        return arguments[2], False
    yielded = _options(arguments[0])
    values = tuple(option for option in yielded if option not in (Progress, Result))
    if len(values) == len(yielded) or not values:
        # Values without progress are collected in a list, whose length decides its form.
        return Any, False
    return Union[values], True


def _is_unstructured(hint: Any) -> bool:
    """Whether a result is text, media or nothing, which have content blocks but no schema."""
    options = [_bare(option) for option in _options(hint)]
    if all(option in (None, type(None), Any, object) for option in options):
        return True
    items = [
        _bare(item)
        for option in options
        if typing.get_origin(option) in (list, tuple)
        for argument in typing.get_args(option)
        for item in _options(argument)
    ]
    return str in options or any(_is_media(option) for option in [*options, *items])


def _bare(hint: Any) -> Any:
    """Removes `Annotated`."""
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def _is_media(hint: Any) -> bool:
    if not isinstance(hint, type):
        return False
    media = (File, Link, bytes, bytearray, memoryview, Result)
    return hint.__module__.startswith("PIL.") or issubclass(hint, media)


def _add_description(definition: Tool, doc: docstrings.Docstring) -> None:
    description = definition.options.description or doc.description
    if doc.returns and definition.output_schema is None and not definition.options.description:
        description = f"{description}\n\nReturns: {doc.returns}".strip()
    definition.description = description
