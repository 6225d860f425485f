"""Readers of chat logs: what is accepted, and that everything else is refused with its place."""

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lre_core.errors import LogError
from lre_core.logs import read

FIXTURES = Path(__file__).parent / "fixtures"
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Is the reading room open on Monday? 図書館"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "function": {"name": "hours", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "closed"},
]
RECORD = {"messages": MESSAGES}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a log, text or bytes, and gives its path."""

    def write(log: str | bytes, name: str = "log") -> Path:
        path = tmp_path / name
        path.write_bytes(log.encode() if isinstance(log, str) else log)
        return path

    return write


def lines(*values: object) -> str:
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


@pytest.mark.parametrize(
    ("log", "format", "histories"),
    [
        (json.dumps(MESSAGES), "json", 1),
        (json.dumps(MESSAGES, indent=2), "json", 1),
        (
            "[\n" + json.dumps(MESSAGES[0]) + ",\n" + json.dumps(MESSAGES[1]) + ",\n" + json.dumps(MESSAGES[2]) + "]",
            "json",
            1,
        ),
        (json.dumps(RECORD), "json", 1),
        (json.dumps(RECORD, indent=1), "json", 1),
        (json.dumps([RECORD, RECORD]), "json", 2),
        (json.dumps([RECORD, RECORD], indent=4), "json", 2),
        (lines(*MESSAGES), "jsonl", 1),
        (lines(RECORD, RECORD, RECORD), "jsonl", 3),
        ("\n\n" + lines(RECORD) + "\n  \n" + lines(RECORD) + "\n", "jsonl", 2),
        (lines(*MESSAGES).replace("\n", "\r\n"), "jsonl", 1),
        (lines(MESSAGES, MESSAGES), "jsonl", 2),
    ],
)
def test_every_shape_gives_the_same_messages(write: Write, log: str, format: str, histories: int) -> None:
    for content in (log, gzip.compress(log.encode()), b"\xef\xbb\xbf" + log.encode()):
        found = list(read(write(content)))
        assert [history.messages for history in found] == [MESSAGES] * histories
        assert {history.container for history in found} == {format}


def test_a_line_that_is_one_message_is_json_lines(write: Write) -> None:
    (history,) = read(write(lines(MESSAGES[0])))
    assert (history.messages, history.container) == (MESSAGES[:1], "jsonl")


def test_one_history_in_one_line_is_json_lines_where_the_name_says_so(write: Write) -> None:
    assert [next(read(write(lines(RECORD), name))).container for name in ("a.json", "a.jsonl", "a.ndjson.gz", "a")] == [
        "json",
        "jsonl",
        "jsonl",
        "json",
    ]


def test_one_message_on_a_line_of_its_own_inside_an_object_is_json(write: Write) -> None:
    (history,) = read(write('{"messages": [\n' + lines(MESSAGES[0]) + "]}\n"))
    assert (history.messages, history.container) == (MESSAGES[:1], "json")


def test_ids_and_questions_come_along(write: Write) -> None:
    questions = [{"question": "When is it closed?", "answer": "Monday"}]
    path = write(lines({"id": 7, **RECORD, "questions": questions}, RECORD))
    first, second = read(path)
    assert (first.id, first.questions) == ("7", questions)
    assert (second.id, second.questions) == (f"{path}:2", [])


def test_fixtures_are_read() -> None:
    (run,) = read(FIXTURES / "agent_run.jsonl")
    (chat,) = read(str(FIXTURES / "chat.json"))
    assert (run.container, run.messages[0]["role"], run.messages[-1]["role"]) == ("jsonl", "system", "user")
    assert (chat.container, chat.id, len(chat.messages)) == ("json", "allotment-1", 14)


def test_json_lines_are_never_in_memory_as_a_whole(write: Write) -> None:
    record = lines({"messages": [{"role": "user", "content": "tide tables and ferry times " * 400}]})
    path = write(gzip.compress(record.encode() * 1000))
    tracemalloc.start()
    try:
        assert sum(1 for _ in read(path)) == 1000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(record) < 1000 * len(record)


def test_histories_before_a_broken_line_are_given(write: Write) -> None:
    histories = read(write(lines(RECORD, RECORD) + '{"messages": ['))
    assert [next(histories).messages, next(histories).messages] == [MESSAGES, MESSAGES]
    with pytest.raises(LogError, match="line 3"):
        next(histories)


SIX = lines(*MESSAGES, *MESSAGES)
EXPECTED = "expected an array of messages or an object with 'messages'"
NO_ROLE = {"content": "Who says so?"}


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        ("", ": the file is empty"),
        (" \n\n", ": the file is empty"),
        (
            SIX + '{"role": "user" "content": "hi"}\n',
            ", line 7: broken JSON: expecting ',' delimiter at column 17, found '\"content\": \"hi\"}'",
        ),
        (
            "\n" + SIX[:-1] + '\n{"role": "user",\n',
            ", line 8: broken JSON: expecting property name enclosed in double quotes at column 17, found the end",
        ),
        (
            '{"role": "user", "content": "hi\n' + SIX,
            ", line 1: broken JSON: unterminated string starting at column 29, found '\"hi'",
        ),
        (
            '[\n\n{"role": "user",\n "content": nil}]',
            ", line 4: broken JSON: expecting value at column 13, found 'nil}]'",
        ),
        ('[\n {"role": "user"},\n', ", line 2: broken JSON: expecting value at column 19, found the end"),
        (
            json.dumps(MESSAGES, indent=1) + "\n" + json.dumps(MESSAGES),
            ', line 25: broken JSON: extra data at column 1, found \'[{"role": "user", "c\'',
        ),
        ("It was a quiet day.\n", ", line 1: broken JSON: expecting value at column 1, found 'It was a quiet day.'"),
        (b"\x7fELF\x02\xfe\xff\n\x00", ", line 1: not UTF-8 text: found byte 0xfe; expected JSON"),
        (SIX.encode() + b"\xff\n", ", line 7: not UTF-8 text: found byte 0xff; expected JSON"),
        (gzip.compress(SIX.encode())[:-9], ": damaged gzip file: "),
        (b"\x1f\x8bnot gzip at all", ": damaged gzip file: "),
        ("[" * 100_000, ", line 1: JSON that cannot be read: "),
        (lines({"role": "user", "timestamp": 10}).replace("10", "1" * 5000), ", line 1: JSON that cannot be read: "),
        ("[]", ": a history without messages"),
        ("{}", f": {EXPECTED}, found an empty object"),
        (lines(RECORD, {"messages": []}), ", line 2: a history without messages"),
        (lines(RECORD, {"messages": "hi"}), ", line 2: 'messages' is a string; expected an array"),
        (lines(RECORD, {**RECORD, "questions": ["Why?"]}), ", line 2: 'questions' holds something else than objects"),
        (lines(RECORD, {**RECORD, "questions": 4}), ", line 2: 'questions' is a number; expected an array"),
        ("42", f": {EXPECTED}, found a number"),
        (
            json.dumps(MESSAGES[0], indent=1),
            f": {EXPECTED}, found an object with 'role', 'content'",
        ),
        (
            json.dumps([RECORD, MESSAGES[0]]),
            f", history 2: {EXPECTED}, found an object with 'role', 'content'",
        ),
        (lines(RECORD, MESSAGES[0]), ", line 2: found no 'messages', which the lines before have"),
        (lines(MESSAGES[0], RECORD), ", line 2: found an object with 'messages' where the lines before are messages"),
        (lines(*MESSAGES, None), ", line 4: expected an object, found null"),
        (lines(*MESSAGES, NO_ROLE), ", line 4: a message without 'role': found an object with 'content'"),
        (
            json.dumps([*MESSAGES, NO_ROLE]),
            ", message 3: a message without 'role': found an object with 'content'",
        ),
        (json.dumps([*MESSAGES, "hello"]), ", message 3: expected a message, found a string"),
        (
            lines(RECORD, {"messages": [*MESSAGES, NO_ROLE]}),
            ", line 2, message 3: a message without 'role': found an object with 'content'",
        ),
        (lines(*MESSAGES, {"role": "narrator"}), ", line 4: role 'narrator' is none of system, "),
        (json.dumps([{"role": "user", "content": True}]), ", message 0: 'content' is bool; expected text"),
    ],
)
def test_what_is_no_log_is_refused_with_its_place(write: Write, log: str | bytes, problem: str) -> None:
    path = write(log)
    with pytest.raises(LogError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"{path}{problem}")
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path, problem in (
        (tmp_path / "gone.json", "No such file or directory"),
        (tmp_path, "no log there; a log's name ends in .json, .jsonl or .ndjson, perhaps with .gz or .zst"),
    ):
        with pytest.raises(LogError) as caught:
            next(read(path))
        assert str(caught.value) == f"{path}: {problem}"
