"""Import of the user's modules, and collection of their tools."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from .definition import OPTIONS_ATTRIBUTE, Tool, define
from .errors import DefinitionError, LoadError


def load(targets: Iterable[str]) -> list[Tool]:
    """Imports modules, by name or by file, and returns their tools. Raises `LoadError`."""
    tools: list[Tool] = []
    for target in targets:
        tools += collect(import_target(target))
    names: dict[str, Tool] = {}
    for tool in tools:
        other = names.setdefault(tool.name, tool)
        if other is not tool:
            file, line = _source(tool.function)
            raise LoadError(f"two tools are named `{tool.name}`", file, line)
    return tools


def import_target(target: str) -> ModuleType:
    """Imports `my_tools.py` or `package.module`."""
    try:
        is_file = target.endswith(".py") or os.sep in target
        return _import_file(Path(target)) if is_file else _import_name(target)
    except LoadError:
        raise
    except (Exception, SystemExit) as error:
        raise _load_error(target, error) from error


def collect(module: ModuleType) -> list[Tool]:
    """Returns the marked functions of a module or, if there are none, all its public functions."""
    members = list(vars(module).items())
    marked = [value for _, value in members if is_marked(value)]
    functions = _unique(marked) or _unique(_public(module, members))
    if not functions:
        text = "has no tools: define public functions or mark functions with @tool"
        raise LoadError(f"module `{module.__name__}` {text}", getattr(module, "__file__", None))
    tools: list[Tool] = []
    problems: list[tuple[str, Any]] = []
    for function in functions:
        try:
            tools.append(define(function))
        except DefinitionError as error:
            problems.append((str(error), function))
    if problems:
        file, line = _source(problems[0][1])
        raise LoadError("; ".join(message for message, _ in problems), file, line)
    return tools


def is_marked(value: object) -> bool:
    """Whether the decorator marked a function of this module or of one that it imports."""
    return callable(value) and OPTIONS_ATTRIBUTE in getattr(value, "__dict__", {})


def _public(module: ModuleType, members: list[tuple[str, Any]]) -> list[Any]:
    exported = getattr(module, "__all__", None)
    return [
        value
        for name, value in members
        if inspect.isfunction(value)
        and (
            name in exported
            if exported is not None
            else not name.startswith("_") and value.__module__ == module.__name__
        )
    ]


def _unique(functions: list[Any]) -> list[Any]:
    """Removes repetitions: one function may have several names in a module."""
    return list({id(function): function for function in functions}.values())


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise LoadError(f"no such file: {path}", str(path))
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # A file may have the name of a module that is loaded already, such as `calendar.py`.
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_tools"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise LoadError(f"not a Python file: {path}", str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _import_name(name: str) -> ModuleType:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return importlib.import_module(name)


def _load_error(target: str, error: BaseException) -> LoadError:
    """Describes an exception at import, with the line of the user's code nearest to its cause."""
    if isinstance(error, SyntaxError):
        text, file, line = error.msg, error.filename, error.lineno
    else:
        text, (file, line) = str(error), _location(error)
    place = f" ({file}, line {line})" if file and line else ""
    message = f"cannot import `{target}`: {type(error).__name__}: {text}{place}"
    details = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return LoadError(message, file, line, details)


def _location(error: BaseException) -> tuple[str | None, int | None]:
    own = os.path.dirname(__file__)
    frames = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", own)) and "importlib" not in frame.filename
    ]
    # Frames of installed packages say less than the user's line that led there.
    mine = [frame for frame in frames if "site-packages" not in frame[0]]
    return (mine or frames)[-1] if frames else (None, None)


def _source(function: Any) -> tuple[str | None, int | None]:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else (None, None)
