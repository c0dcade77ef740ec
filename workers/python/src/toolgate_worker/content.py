"""Results: Python values as JSON and as MCP content blocks."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import json
import math
import mimetypes
import os
import re
import sys
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from .errors import ToolError
from .texts import format_duration

Block = dict[str, Any]

MAX_DEPTH = 100
MAX_REPR_CHARS = 500
MAX_ITERATED_ITEMS = 100_000
MAX_FILE_BYTES = 12 * 1024 * 1024  # 16 MiB as base64

# Leading bytes, bytes at offset 8, media type.
SIGNATURES: list[tuple[bytes, bytes, str]] = [
    (b"\x89PNG\r\n\x1a\n", b"", "image/png"),
    (b"\xff\xd8\xff", b"", "image/jpeg"),
    (b"GIF8", b"", "image/gif"),
    (b"RIFF", b"WEBP", "image/webp"),
    (b"RIFF", b"WAVE", "audio/wav"),
    (b"ID3", b"", "audio/mpeg"),
    (b"\xff\xfb", b"", "audio/mpeg"),
    (b"OggS", b"", "audio/ogg"),
    (b"fLaC", b"", "audio/flac"),
    (b"%PDF-", b"", "application/pdf"),
]


@dataclass
class File:
    """Bytes or a text with a media type: `File(path="a.pdf")`, `File(data=b"…", name="a.bin")`.

    Images and audio become blocks of their own kind, everything else an embedded resource.
    """

    data: bytes | str | None = None
    path: str | os.PathLike[str] | None = None
    mime_type: str | None = None
    name: str | None = None

    def block(self) -> Block:
        """Returns the content block. Reads the file, if there is a path."""
        data, kind = self.read()
        text = data.decode("utf-8") if _is_text(kind, data) else None
        if text is None and kind.startswith(("image/", "audio/")):
            return {"type": kind.split("/")[0], "data": _base64(data), "mimeType": kind}
        resource: dict[str, Any] = {"uri": self._uri(), "mimeType": kind}
        resource.update({"blob": _base64(data)} if text is None else {"text": text})
        return {"type": "resource", "resource": resource}

    def read(self) -> tuple[bytes, str]:
        """Returns the bytes and their media type."""
        data = self.data.encode() if isinstance(self.data, str) else self.data
        if data is None:
            if self.path is None:
                raise ToolError(f"{type(self).__name__} needs data or a path")
            with open(self.path, "rb") as stream:
                data = stream.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise ToolError(f"a file of a result may have at most {MAX_FILE_BYTES} bytes")
        return data, self.mime_type or self._guess(data)

    def _guess(self, data: bytes) -> str:
        by_name = mimetypes.guess_type(str(self.name or self.path or ""))[0]
        by_data = sniff(data) or by_name
        return by_data or (
            "text/plain" if isinstance(self.data, str) else "application/octet-stream"
        )

    def _uri(self) -> str:
        if self.path is not None and self.name is None:
            return Path(self.path).absolute().as_uri()
        return "file:///" + quote(self.name or "result")


@dataclass
class Image(File):
    """A picture: `Image(path="chart.png")`, `Image(data=png_bytes)`."""

    def block(self) -> Block:
        data, kind = self.read()
        if not kind.startswith("image/"):
            raise ToolError(f"an image has a media type image/…, not {kind}; set mime_type")
        return {"type": "image", "data": _base64(data), "mimeType": kind}


@dataclass
class Audio(File):
    """A sound: `Audio(path="answer.wav")`."""

    def block(self) -> Block:
        data, kind = self.read()
        if not kind.startswith("audio/"):
            raise ToolError(f"audio has a media type audio/…, not {kind}; set mime_type")
        return {"type": "audio", "data": _base64(data), "mimeType": kind}


@dataclass
class Link:
    """A reference to a resource that the host may read."""

    uri: str
    name: str
    mime_type: str | None = None
    description: str | None = None

    def block(self) -> Block:
        """Returns the content block."""
        block = {"type": "resource_link", "uri": self.uri, "name": self.name}
        optional = {"mimeType": self.mime_type, "description": self.description}
        return {**block, **{name: text for name, text in optional.items() if text is not None}}


@dataclass(frozen=True)
class Encoded:
    """A JSON value that was made of a Python value."""

    value: Any


def sniff(data: bytes) -> str | None:
    """Returns the media type that the first bytes show."""
    for start, mark, kind in SIGNATURES:
        if data.startswith(start) and data[8 : 8 + len(mark)] == mark:
            return kind
    return None


def media_block(value: Any) -> Block | None:
    """Returns the block of a value that is media and not JSON."""
    if isinstance(value, (File, Link)):
        return value.block()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return File(data=bytes(value)).block()
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(value, pillow.Image):
        return _pillow(value)
    return None


def blocks(value: Any) -> list[Block]:
    """Returns the content blocks of a result."""
    if value is None:
        return []
    block = media_block(value)
    if block is not None:
        return [block]
    if has_media(value):
        return [block for item in value for block in blocks(item)]
    if isinstance(value, str):
        return [{"type": "text", "text": clean(value)}]
    encoded = to_json(value)
    text = encoded.value if isinstance(encoded.value, str) else dumps(encoded.value)
    return [{"type": "text", "text": text}]


def has_media(value: Any) -> bool:
    """Whether a value is media, or a list or tuple that holds some."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return any(_is_media(item) for item in value)
    return _is_media(value)


def _is_media(value: Any) -> bool:
    if isinstance(value, (File, Link, bytes, bytearray, memoryview)):
        return True
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(value, pillow.Image)


def to_json(value: Any, strict: bool = False) -> Any:
    """Returns the JSON form of a value as `Encoded`.

    A value without one becomes its `repr`; with `strict`, the result is `None` instead.
    """
    encoder = _Encoder(strict)
    try:
        return Encoded(encoder.encode(value, 0))
    except Exception:
        if strict:
            return None
        raise


def is_json_scalar(value: Any) -> bool:
    """Whether JSON has the value as it is."""
    return value is None or type(value) in (str, int, float, bool)


def enum_json(member: enum.Enum) -> Any:
    """Returns the value of a member, or its name if a value of the enum has no JSON form."""
    has_values = all(is_json_scalar(other.value) for other in type(member))
    return member.value if has_values else member.name


def dumps(value: Any) -> str:
    """Returns compact JSON text."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def clean(text: str) -> str:
    """Replaces lone surrogates, which UTF-8 cannot carry."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _NoJsonForm(Exception):
    pass


class _Encoder:
    def __init__(self, strict: bool) -> None:
        self._strict = strict

    def encode(self, value: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ToolError("the result refers to itself or is nested too deeply")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, enum.Enum):
            return enum_json(value)
        if isinstance(value, str):
            return clean(str(value))
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            # JSON has no NaN and no infinity.
            return float(value) if math.isfinite(value) else None
        if isinstance(value, Mapping):
            return {
                self._key(key, depth): self.encode(item, depth + 1) for key, item in value.items()
            }
        simple = self._simple(value)
        if simple is not None:
            return simple
        return self._composite(value, depth)

    def _simple(self, value: Any) -> Any:
        match value:
            case datetime.datetime() | datetime.date() | datetime.time():
                return value.isoformat()
            case datetime.timedelta():
                return format_duration(value)
            case decimal.Decimal():
                return _decimal(value)
            case uuid.UUID() | PurePath():
                return str(value)
            case bytes() | bytearray() | memoryview():
                return _base64(bytes(value))
            case re.Pattern():
                return clean(str(value.pattern))
            case _:
                return None

    def _composite(self, value: Any, depth: int) -> Any:
        if isinstance(value, type):
            return self._fallback(value)
        if dataclasses.is_dataclass(value):
            members = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
            return self.encode(members, depth + 1)
        for name in ("model_dump", "to_dict", "_asdict", "tolist", "isoformat"):
            method = getattr(value, name, None)
            if callable(method):
                options = {"mode": "json", "by_alias": True} if name == "model_dump" else {}
                return self.encode(method(**options), depth + 1)
        if isinstance(value, (list, tuple)):
            return [self.encode(item, depth + 1) for item in value]
        if isinstance(value, (set, frozenset)):
            return [self.encode(item, depth + 1) for item in _sorted(value)]
        if isinstance(value, Iterable):
            items = list(islice(value, MAX_ITERATED_ITEMS + 1))
            if len(items) > MAX_ITERATED_ITEMS:
                raise ToolError(f"the result has more than {MAX_ITERATED_ITEMS} items")
            return [self.encode(item, depth + 1) for item in items]
        return self._fallback(value)

    def _key(self, key: Any, depth: int) -> str:
        encoded = self.encode(key, depth + 1)
        return encoded if isinstance(encoded, str) else dumps(encoded)

    def _fallback(self, value: Any) -> str:
        if self._strict:
            raise _NoJsonForm
        return clean(repr(value)[:MAX_REPR_CHARS])


def _decimal(value: decimal.Decimal) -> Any:
    """Returns a number where it is exact, otherwise the text."""
    if value.is_finite() and value == value.to_integral_value() and abs(value) < 2**53:
        return int(value)
    if value.is_finite() and decimal.Decimal(repr(float(value))) == value:
        return float(value)
    return str(value)


def _sorted(values: Iterable[Any]) -> list[Any]:
    """Returns the items of a set in an order that does not change from run to run."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _is_text(kind: str, data: bytes) -> bool:
    is_textual = kind.startswith("text/") or kind in ("application/json", "image/svg+xml")
    if not is_textual:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _pillow(image: Any) -> Block:
    """Encodes a Pillow image as JPEG if it was one, otherwise as PNG."""
    kind = "JPEG" if image.format == "JPEG" else "PNG"
    stream = BytesIO()
    if kind == "PNG" and image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16"):
        image = image.convert("RGB")
    image.save(stream, kind)
    return Image(data=stream.getvalue(), mime_type=f"image/{kind.lower()}").block()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
