"""Serves Python functions as MCP tools over stdio.

Any function with type hints is a tool:

    def get_current_weather(location: str, unit: str = "celsius") -> dict: ...

`python -m toolgate_worker my_tools.py` serves the functions of a file to any MCP host.
"""

from __future__ import annotations

from .constraints import Param
from .content import Audio, File, Image, Link
from .context import Context, Progress, Result
from .definition import tool
from .errors import Cancelled, ToolError
from .main import serve
from .state import Session

__all__ = [
    "Audio",
    "Cancelled",
    "Context",
    "File",
    "Image",
    "Link",
    "Param",
    "Progress",
    "Result",
    "Session",
    "ToolError",
    "serve",
    "tool",
]
