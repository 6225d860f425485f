"""From bytes to JSON values: a line each in JSON Lines, one document otherwise; with the place of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

from lre_core.errors import LogError

__all__ = ["Container", "Record", "kind_of", "records"]

Container = Literal["json", "jsonl"]
Record = tuple[str, Any]
"""A place, for errors, and the JSON value that stands there."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
JSON_TYPES = {list: "an array", str: "a string", type(None): "null", bool: "true or false"}


def records(stream: BinaryIO, name: str, bad: Callable[[LogError], None]) -> tuple[Container, Iterator[Record]]:
    """Reads a file: JSON Lines a line at a time, anything else as one document, whole in memory.

    Args:
        stream: the bytes, unpacked.
        name: the file's name, for errors and because `.jsonl` and `.ndjson` say what a single line cannot.
        bad: told of each broken line; it raises, or returns to go on.

    Raises:
        LogError: the file is empty.
    """
    lines = _lines(stream, name, bad)
    opening = list(islice(lines, 2))
    if not opening:
        raise LogError(f"{name}: the file is empty")
    if _is_json_lines([line for _, line in opening], name):
        return "jsonl", _values(chain(opening, lines), name, bad)
    return "json", _document(chain(opening, lines), name, bad)


def _lines(stream: Iterable[bytes], name: str, bad: Callable[[LogError], None]) -> Iterator[tuple[int, str]]:
    """Numbered lines, blank ones left out."""
    for number, line in enumerate(stream, 1):
        try:
            text = (line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line).decode()
        except UnicodeDecodeError as error:
            found = f"found byte 0x{line[error.start]:02x}; expected JSON"
            bad(LogError(f"{name}, line {number}: not UTF-8 text: {found}"))
            continue
        if not text.isspace():
            yield number, text


def _is_json_lines(opening: list[str], name: str) -> bool:
    """Whether a file that opens with these one or two lines holds a JSON value a line."""
    first = opening[0].strip()
    named = not {".jsonl", ".ndjson"}.isdisjoint(Path(name).suffixes)
    if first[0] not in "{[":
        return False
    value = _whole(first)
    if value is None:
        # A broken first line: the next one is an object by itself, and not one inside what the first began.
        one_cut_off = named or (first[0] == "{" and first[-1] not in "{[,:")
        return len(opening) == 2 and one_cut_off and isinstance(_whole(opening[1]), dict)
    # One value in one line reads the same either way. A file of one history is JSON, unless its name says otherwise.
    return len(opening) == 2 or named or (isinstance(value, dict) and "role" in value and "messages" not in value)


def _whole(line: str) -> dict[str, Any] | list[Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _values(lines: Iterator[tuple[int, str]], name: str, bad: Callable[[LogError], None]) -> Iterator[Record]:
    for number, line in lines:
        try:
            value = _parsed([(number, line)], name)
        except LogError as error:
            bad(error)
        else:
            yield f"{name}, line {number}", value


def _document(lines: Iterator[tuple[int, str]], name: str, bad: Callable[[LogError], None]) -> Iterator[Record]:
    try:
        yield name, _parsed(list(lines), name)
    except LogError as error:
        bad(error)


def _parsed(lines: list[tuple[int, str]], name: str) -> object:
    """The JSON value these lines make up."""
    text = "".join(line for _, line in lines).rstrip()
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as error:
        number, _ = lines[error.lineno - 1]
        problem = error.msg[0].lower() + error.msg[1:].removesuffix(" at")
        found = repr(text[error.pos : error.pos + 20]) if error.pos < len(text) else "the end"
        raise LogError(
            f"{name}, line {number}: broken JSON: {problem} at column {error.colno}, found {found}"
        ) from None
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or thousands of brackets: Python refuses both, and does not say where.
        raise LogError(f"{name}, line {lines[0][0]}: JSON that cannot be read: {error}") from None
    return value


def kind_of(value: object) -> str:
    """What a JSON value is, in words for an error."""
    if isinstance(value, dict):
        return f"an object with {', '.join(map(repr, islice(value, 5)))}" if value else "an empty object"
    return JSON_TYPES.get(type(value), "a number")
