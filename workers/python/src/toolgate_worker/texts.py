"""Python types that JSON spells as strings: their schema keywords and parsers."""

from __future__ import annotations

import base64
import binascii
import datetime
import ipaddress
import os
import pathlib
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any

DURATION = re.compile(
    r"(?P<sign>[-+])?P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?$"
)


def _datetime(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(_with_offset(text))


def _time(text: str) -> datetime.time:
    return datetime.time.fromisoformat(_with_offset(text))


def _with_offset(text: str) -> str:
    # Python 3.10 does not read the suffix "Z".
    return text[:-1] + "+00:00" if text[-1:] in ("Z", "z") else text


def _duration(text: str) -> datetime.timedelta:
    match = DURATION.match(text)
    if match is None or text[-1] in "PT":
        raise ValueError("not an ISO 8601 duration such as PT1H30M")
    parts = {name: float(part) for name, part in match.groupdict("0").items() if name != "sign"}
    duration = datetime.timedelta(**parts)
    return -duration if match.group("sign") == "-" else duration


def format_duration(duration: datetime.timedelta) -> str:
    """Returns the ISO 8601 text of a duration."""
    sign = "-" if duration < datetime.timedelta(0) else ""
    duration = abs(duration)
    seconds = f"{duration.seconds + duration.microseconds / 1e6:.6f}".rstrip("0").rstrip(".")
    days = f"{duration.days}D" if duration.days else ""
    return f"{sign}P{days}" if days and seconds == "0" else f"{sign}P{days}T{seconds}S"


def _bytes(text: str) -> bytes:
    try:
        # Models write both alphabets, with and without padding.
        plain = text.replace("-", "+").replace("_", "/").rstrip("=")
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error


Entry = tuple[Mapping[str, str], Callable[[str], Any]]

TEXT_TYPES: dict[Any, Entry] = {
    datetime.datetime: ({"format": "date-time"}, _datetime),
    datetime.date: ({"format": "date"}, datetime.date.fromisoformat),
    datetime.time: ({"format": "time"}, _time),
    datetime.timedelta: ({"format": "duration"}, _duration),
    uuid.UUID: ({"format": "uuid"}, uuid.UUID),
    pathlib.PurePosixPath: ({"format": "path"}, pathlib.PurePosixPath),
    pathlib.Path: ({"format": "path"}, pathlib.Path),
    pathlib.PurePath: ({"format": "path"}, pathlib.PurePath),
    os.PathLike: ({"format": "path"}, pathlib.Path),
    bytes: ({"contentEncoding": "base64"}, _bytes),
    bytearray: ({"contentEncoding": "base64"}, lambda text: bytearray(_bytes(text))),
    re.Pattern: ({"format": "regex"}, _pattern),
    ipaddress.IPv4Address: ({"format": "ipv4"}, ipaddress.IPv4Address),
    ipaddress.IPv6Address: ({"format": "ipv6"}, ipaddress.IPv6Address),
}
