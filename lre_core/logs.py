"""Chat logs as people keep them, read one history at a time.

OpenAI's chat format in JSON or JSON Lines, plain or gzip; which of them a file is shows from its first bytes and lines.
In JSON a history is an array of messages or an object with `messages`; a file holds one, or an array of such objects.
In JSON Lines a line is a message, and the file one history, or a line is an object with `messages`, a history.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from lre_core.errors import InvalidMessage, LogError
from lre_core.messages import as_message

__all__ = ["History", "read"]

Format = Literal["json", "jsonl"]

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
JSON_TYPES = {list: "an array", str: "a string", type(None): "null", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class History:
    """One logged history.

    Attributes:
        id: the log's own `id` of it, else the path and, where a file holds several, which one, counted from 1.
        messages: the chat dicts as they stand in the log, oldest first; at least one.
        questions: what was asked of it afterwards, for `lre_core.labels.answer_overlap`: mappings with `question`
            and `answer`; mostly empty.
        format: how the file is written, `json` or `jsonl`.
    """

    id: str
    messages: list[dict[str, Any]]
    questions: list[dict[str, Any]]
    format: Format


def read(path: str | Path) -> Iterator[History]:
    """Reads a log's histories, one after the other; a JSON Lines file is never in memory as a whole.

    Args:
        path: the file, or `-` for standard input.

    Yields:
        At least one history.

    Raises:
        LogError: the file cannot be read, is empty, is not UTF-8 text or a whole gzip file, is broken JSON, or holds
            something else than histories of chat messages. The text names the file and the line, or the message's
            index. It is raised when the reading gets there, so histories before a broken line have been yielded.
    """
    stdin = str(path) == "-"
    name = "standard input" if stdin else str(path)
    try:
        with open(0 if stdin else path, "rb", closefd=not stdin) as stream:
            yield from _histories(stream, name)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise LogError(f"{name}: damaged gzip file: {error}") from None
    except OSError as error:
        raise LogError(f"{name}: {error.strerror}") from None


def _histories(stream: BufferedReader, name: str) -> Iterator[History]:
    compressed = stream.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
    lines = _lines(gzip.GzipFile(fileobj=stream) if compressed else stream, name)
    opening = list(islice(lines, 2))
    if not opening:
        raise LogError(f"{name}: the file is empty")
    if _is_json_lines([line for _, line in opening], name):
        return _from_json_lines(chain(opening, lines), name)
    return _from_json(list(chain(opening, lines)), name)


def _lines(stream: BufferedReader | gzip.GzipFile, name: str) -> Iterator[tuple[int, str]]:
    """Numbered lines, blank ones left out."""
    for number, line in enumerate(stream, 1):
        try:
            text = (line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line).decode()
        except UnicodeDecodeError as error:
            raise LogError(
                f"{name}, line {number}: not UTF-8 text: found byte 0x{line[error.start]:02x}; expected JSON"
            ) from None
        if not text.isspace():
            yield number, text


def _is_json_lines(opening: list[str], name: str) -> bool:
    """Whether a file that opens with these one or two lines holds a JSON value a line."""
    first = opening[0].strip()
    if not first.startswith("{"):
        return False
    record = _object(first)
    if record is None:
        # A broken first line: the next one is an object by itself, and not one inside what the first began.
        return len(opening) == 2 and first[-1] not in "{[,:" and _object(opening[1]) is not None
    # One object in one line reads the same either way. A file of one history is JSON, unless its name says otherwise.
    return len(opening) == 2 or "messages" not in record or not {".jsonl", ".ndjson"}.isdisjoint(Path(name).suffixes)


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _from_json_lines(lines: Iterator[tuple[int, str]], name: str) -> Iterator[History]:
    messages: list[dict[str, Any]] = []
    histories = 0
    for number, line in lines:
        place = f"{name}, line {number}"
        value = _value([(number, line)], name)
        if not isinstance(value, dict):
            raise LogError(f"{place}: expected an object, found {_kind(value)}")
        if "messages" in value:
            if messages:
                raise LogError(f"{place}: found an object with 'messages' where the lines before are messages")
            histories += 1
            yield _history(value, f"{name}:{histories}", place, "jsonl")
        else:
            if histories:
                raise LogError(f"{place}: found no 'messages', which the lines before have")
            messages.append(_message(value, len(messages), place, numbered=False))
    if messages:
        yield History(name, messages, [], "jsonl")


def _from_json(lines: list[tuple[int, str]], name: str) -> Iterator[History]:
    value = _value(lines, name)
    if isinstance(value, list) and value and isinstance(value[0], dict) and "messages" in value[0]:
        for number, record in enumerate(value, 1):
            yield _history(record, f"{name}:{number}", f"{name}, history {number}", "json")
    else:
        yield _history({"messages": value} if isinstance(value, list) else value, name, name, "json")


def _history(record: object, default_id: str, place: str, written: Format) -> History:
    if not isinstance(record, dict) or "messages" not in record:
        raise LogError(f"{place}: expected an array of messages or an object with 'messages', found {_kind(record)}")
    messages, questions = record["messages"], record.get("questions") or []
    for key, values in (("messages", messages), ("questions", questions)):
        if not isinstance(values, list):
            raise LogError(f"{place}: {key!r} is {_kind(values)}; expected an array")
    if not messages:
        raise LogError(f"{place}: a history without messages")
    if not all(isinstance(question, dict) for question in questions):
        raise LogError(f"{place}: 'questions' holds something else than objects")
    own_id = record.get("id")
    checked = [_message(message, index, place) for index, message in enumerate(messages)]
    return History(default_id if own_id is None else str(own_id), checked, questions, written)


def _message(value: object, index: int, place: str, numbered: bool = True) -> dict[str, Any]:
    """The chat dict itself, once it is known to be one."""
    where = f"{place}, message {index}" if numbered else place
    if not isinstance(value, dict):
        raise LogError(f"{where}: expected a message, found {_kind(value)}")
    if "role" not in value:
        raise LogError(f"{where}: a message without 'role': found {_kind(value)}")
    try:
        as_message(value, index)
    except InvalidMessage as error:
        raise LogError(f"{where}: {str(error).removeprefix(f'message {index}: ')}") from None
    return value


def _value(lines: list[tuple[int, str]], name: str) -> object:
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


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(map(repr, islice(value, 5)))}" if value else "an empty object"
    return JSON_TYPES.get(type(value), "a number")
