"""Docstrings: description, parameters and result in Google, NumPy and reST style."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field


@dataclass
class Docstring:
    """The parts of a docstring that a tool definition uses."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    returns: str = ""


PARAMETER_SECTIONS = {
    "args",
    "arguments",
    "parameters",
    "params",
    "other parameters",
    "keyword args",
    "keyword arguments",
    "attributes",
}
RETURN_SECTIONS = {"returns", "return", "yields", "yield"}
OTHER_SECTIONS = {
    "raises",
    "raise",
    "except",
    "exceptions",
    "warns",
    "example",
    "examples",
    "note",
    "notes",
    "see also",
    "references",
    "todo",
    "warning",
    "warnings",
    "methods",
}
SECTIONS = PARAMETER_SECTIONS | RETURN_SECTIONS | OTHER_SECTIONS

REST_FIELD = re.compile(r":(\w+)(?:\s+([^:]*?))?\s*:(?:\s+(.*))?$")
REST_PARAMETERS = {"param", "parameter", "arg", "argument", "key", "keyword"}
GOOGLE_ITEM = re.compile(r"(\*{0,2}\w+)\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*:(?:\s+(.*))?$")
NUMPY_ITEM = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
UNDERLINE = re.compile(r"-{3,}\s*$|={3,}\s*$")


def parse(text: str | None) -> Docstring:
    """Parses a docstring; an unknown style is all description."""
    lines = inspect.cleandoc(text or "").splitlines()
    doc = Docstring()
    description: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        section = _section(lines, at)
        rest = REST_FIELD.match(line)
        if section is not None:
            name, is_numpy = section
            body, at = _body(lines, at + (2 if is_numpy else 1), is_numpy)
            _read_section(doc, name, body, is_numpy)
        elif rest is not None and _is_rest_field(rest.group(1)):
            body, at = _indented(lines, at + 1)
            _read_field(doc, rest, body)
        else:
            description.append(line)
            at += 1
    doc.description = _paragraphs(description)
    return doc


def _section(lines: list[str], at: int) -> tuple[str, bool] | None:
    """Returns the name of the section that starts here, and whether its style is NumPy's."""
    line = lines[at]
    if not line or line[0].isspace():
        return None
    name = line.strip().lower()
    if name in SECTIONS and at + 1 < len(lines) and UNDERLINE.match(lines[at + 1]):
        return name, True
    if not name.endswith(":") or name[:-1] not in SECTIONS:
        return None
    # A sentence may end in "note:"; the body of a section is indented.
    following = next((next_line for next_line in lines[at + 1 :] if next_line.strip()), "")
    return (name[:-1], False) if following[:1].isspace() else None


def _body(lines: list[str], at: int, is_numpy: bool) -> tuple[list[str], int]:
    """Returns the lines of a section, without common indentation, and the index after them."""
    if not is_numpy:
        return _indented(lines, at)
    start = at
    while at < len(lines) and _section(lines, at) is None:
        at += 1
    return lines[start:at], at


def _indented(lines: list[str], at: int) -> tuple[list[str], int]:
    start = at
    while at < len(lines) and (not lines[at].strip() or lines[at][0].isspace()):
        at += 1
    return inspect.cleandoc("\n" + "\n".join(lines[start:at])).splitlines(), at


def _read_section(doc: Docstring, name: str, body: list[str], is_numpy: bool) -> None:
    if name in PARAMETER_SECTIONS:
        items = _items(body, NUMPY_ITEM if is_numpy else GOOGLE_ITEM)
        for names, text in items:
            for parameter in names.split(","):
                doc.parameters.setdefault(parameter.strip().lstrip("*"), text)
    elif name in RETURN_SECTIONS:
        if is_numpy:
            # The first line of each entry is a type.
            body = [line for line in body if not line.strip() or line[0].isspace()] or body
        doc.returns = doc.returns or _joined(body)


def _items(body: list[str], item: re.Pattern[str]) -> list[tuple[str, str]]:
    """Splits a section into entries: names, and the text of the first and the indented lines."""
    entries: list[tuple[str, list[str]]] = []
    for line in body:
        match = item.match(line) if line and not line[0].isspace() else None
        if match is not None:
            first = match.group(2) if item.groups > 1 else None
            entries.append((match.group(1), [first or ""]))
        elif entries:
            entries[-1][1].append(line)
    return [(names, _joined(text)) for names, text in entries]


def _is_rest_field(name: str) -> bool:
    return name in REST_PARAMETERS | {"type", "returns", "return", "rtype", "raises", "raise"}


def _read_field(doc: Docstring, match: re.Match[str], body: list[str]) -> None:
    kind, argument, first = match.groups()
    text = _joined([first or "", *body])
    if kind in REST_PARAMETERS and argument:
        # `:param int count:` names a type before the parameter.
        doc.parameters.setdefault(argument.split()[-1].lstrip("*"), text)
    elif kind in {"returns", "return"}:
        doc.returns = doc.returns or text


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())


def _paragraphs(lines: list[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()
