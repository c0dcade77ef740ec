"""Exceptions of the package."""

from __future__ import annotations


class ToolError(Exception):
    """A failure that the tool reports on purpose. Its text goes to the model unchanged."""


class Cancelled(ToolError):
    """The host cancelled the call, or its deadline passed."""


class ArgumentError(ToolError):
    """An argument that does not fit; `path` is its place, such as `items[2].price`."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"argument `{path}`: {problem}" if path else problem)
        self.path = path
        self.problem = problem


class DefinitionError(Exception):
    """A function that cannot be offered as a tool."""


class LoadError(Exception):
    """A module that cannot be imported or defines no usable tools."""

    def __init__(
        self, message: str, file: str | None = None, line: int | None = None, details: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.details = details

    def to_json(self) -> dict[str, object]:
        """Returns the members `message`, `file` and `line`; unknown ones are left out."""
        members = {"message": self.message, "file": self.file, "line": self.line}
        return {name: value for name, value in members.items() if value is not None}
