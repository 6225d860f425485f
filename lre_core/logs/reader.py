"""Reads logs: file by file, history by history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from lre_core.errors import InvalidMessage, LogError
from lre_core.logs.dialects import Unreadable, chat_dict, dialect, is_message
from lre_core.logs.formats import Found, elements, histories_in
from lre_core.logs.growing import Growing
from lre_core.logs.records import Container, Record, kind_of, records
from lre_core.logs.sources import Source, find, opened
from lre_core.messages import Message, as_message

__all__ = ["Histories", "History", "read"]

REMEMBERED_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class History:
    """One logged history.

    Attributes:
        id: the log's own id of it, else the path and, where a file holds several, which one, counted from 1.
        messages: chat dicts, oldest first; at least one. OpenAI's and Anthropic's are the log's own, unchanged; those
            of other frameworks are put into OpenAI's words.
        questions: what was asked of it afterwards, for `lre_core.labels.answer_overlap`: mappings with `question`
            and `answer`; mostly empty.
        format: in what form it was found: `openai`, `openai-responses`, `anthropic`, `langchain`, `langsmith`,
            `llamaindex` or `atif`.
        container: how the file is written, `json` or `jsonl`.
        group: what it belongs to: the log's thread, session, trace or task, else its own id. Histories of one group
            must not be on both sides of a train and test split.
    """

    id: str
    messages: list[dict[str, Any]]
    questions: list[dict[str, Any]]
    format: str
    container: Container
    group: str


def read(*paths: str | Path, skip_bad: bool = False) -> Histories:
    """Reads logs, one history after the other.

    JSON Lines are read line by line: memory holds the longest line, and of a file with a message a line its one
    history. A JSON document is in memory whole while its histories are read.

    Where a log holds requests with their responses, each call repeats the conversation so far. They are one history:
    the longest, held back until nothing extends it any more.

    Args:
        paths: files, folders, globs, fsspec URLs (with the `remote` extra), or `-` for standard input.
        skip_bad: go on behind what cannot be read, and count it, instead of raising.

    Returns:
        An iterator over histories, which also tells how far it is and what it skipped.

    Raises:
        LogError: there is no such file or no log in the folder. While iterating: a file cannot be read, is empty, is
            not UTF-8 text or a whole gzip or zstd file, is broken JSON, or holds something else than histories of
            chat messages. The text names the file and the line, or the message's index. Histories before a broken
            line have been yielded.
        MissingExtra: the file is zstd or lies behind a URL, and what reads it is not installed.
    """
    return Histories([source for path in paths for source in find(path)], skip_bad)


@dataclass(slots=True)
class Histories(Iterator[History]):
    """An iterator over the histories of some files.

    Attributes:
        sources: the files.
        skip_bad: whether what cannot be read is skipped.
        count: histories given so far.
        skipped: lines, parts of a document or files skipped so far.
        problems: what was wrong with the first of them.
        formats: how many histories were found in each format so far.
    """

    sources: list[Source]
    skip_bad: bool
    count: int = 0
    skipped: int = 0
    problems: list[str] = field(default_factory=list)
    formats: dict[str, int] = field(default_factory=dict)
    _bytes_behind: int = 0
    _raw: BinaryIO | None = None
    _iterator: Iterator[History] | None = None

    @property
    def size(self) -> int | None:
        """Bytes of all files, as they lie there; None where one of them does not say."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def position(self) -> int:
        """Bytes read so far."""
        if self._raw is None or self._raw.closed or not self._raw.seekable():
            return self._bytes_behind
        return self._bytes_behind + self._raw.tell()

    def __next__(self) -> History:
        if self._iterator is None:
            self._iterator = self._all()
        history = next(self._iterator)
        self.count += 1
        self.formats[history.format] = self.formats.get(history.format, 0) + 1
        return history

    def _all(self) -> Iterator[History]:
        for source in self.sources:
            try:
                with opened(source) as (self._raw, stream):
                    yield from self._of_file(stream, source.name)
            except LogError as error:
                self._bad(error)
            self._raw = None
            self._bytes_behind += source.size or 0

    def _bad(self, error: LogError) -> None:
        if not self.skip_bad:
            raise error
        self.skipped += 1
        if len(self.problems) < REMEMBERED_PROBLEMS:
            self.problems.append(str(error))

    def _of_file(self, stream: BinaryIO, name: str) -> Iterator[History]:
        container, values = records(stream, name, self._bad)
        growing: Growing[History] = Growing()
        number, skipped = 0, self.skipped
        for number, (place, found) in enumerate(self._found(values, container, name), 1):
            try:
                history, read = _history(found, name if place == name else f"{name}:{number}", place, container)
            except LogError as error:
                self._bad(error)
                continue
            if found.grows:
                yield from growing.add(read, history)
            else:
                yield history
        yield from growing.rest()
        if not number and self.skipped == skipped:
            self._bad(LogError(f"{name}: no history in it, only records that hold none"))

    def _found(self, values: Iterator[Record], container: Container, name: str) -> Iterator[tuple[str, Found]]:
        """Every history of a file with its place; messages on lines of their own are one."""
        lines: list[Any] = []
        format, records = "openai", 0
        for place, value in values:
            try:
                if container == "jsonl" and is_message(value):
                    if records:
                        raise Unreadable("found no 'messages', which the lines before have")
                    spoken = dialect(value)
                    format = spoken if format == "openai" else format
                    lines += _read([value], place, "")[0]
                    continue
                if container == "jsonl" and lines:
                    if isinstance(value, dict) and "messages" in value:
                        raise Unreadable("found an object with 'messages' where the lines before are messages")
                    if not isinstance(value, dict):
                        raise Unreadable(f"expected an object, found {kind_of(value)}")
                    raise Unreadable(f"a message without 'role': found {kind_of(value)}")
                records += 1
                parts = elements(value)
                if parts is None:
                    yield from ((place, found) for found in histories_in(value))
                    continue
            except Unreadable as error:
                self._bad(LogError(f"{place}: {error}"))
                continue
            except LogError as error:
                self._bad(error)
                continue
            except RecursionError:
                self._bad(LogError(f"{place}: nested too deep to be a log"))
                continue
            for number, part in enumerate(parts, 1):
                where = f"{place}, history {number}"
                try:
                    yield from ((where, found) for found in histories_in(part))
                except Unreadable as error:
                    self._bad(LogError(f"{where}: {error}"))
                except RecursionError:
                    self._bad(LogError(f"{where}: nested too deep to be a log"))
        if lines:
            yield name, Found(lines, format)


def _history(found: Found, default_id: str, place: str, container: Container) -> tuple[History, list[Message]]:
    """The history, with its messages as read, once all of them are known to be messages."""
    messages, read = _read(found.messages, place, ", message {}")
    if not messages:
        raise LogError(f"{place}: a history without messages")
    if not all(isinstance(question, dict) for question in found.questions):
        raise LogError(f"{place}: 'questions' holds something else than objects")
    own_id = default_id if found.id is None else str(found.id)
    group = own_id if found.group is None else str(found.group)
    return History(own_id, messages, found.questions, found.format, container, group), read


def _read(logged: Sequence[Any], place: str, numbered: str) -> tuple[list[dict[str, Any]], list[Message]]:
    """Logged messages as chat dicts, and as read; what stands among them and is none is left out."""
    messages: list[dict[str, Any]] = []
    read: list[Message] = []
    for index, value in enumerate(logged):
        try:
            chat = chat_dict(value)
            if chat is not None:
                read.append(as_message(chat, index))
                messages.append(chat)
        except (InvalidMessage, Unreadable) as error:
            problem = str(error).removeprefix(f"message {index}: ")
            raise LogError(f"{place}{numbered.format(index)}: {problem}") from None
        except RecursionError:
            raise LogError(f"{place}{numbered.format(index)}: nested too deep to be a message") from None
    return messages, read
