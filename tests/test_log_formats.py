"""One short talk at a ferry desk, logged in every format there is a reader for, reads the same from all of them."""

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from lre_core import group, logs
from lre_core.errors import LogError
from lre_core.messages import as_message

FOLDER = Path(__file__).parent / "logs"
OPENAI = FOLDER / "openai.jsonl"
Chat = dict[str, Any]


def said(messages: list[Chat]) -> list[tuple[object, ...]]:
    """Who says what and calls what, whatever the provider's words for it."""
    read = [as_message(message) for message in messages]
    return [
        (m.kind, _text(m.blocks) or m.text, [(c.id, c.name, json.loads(c.arguments)) for c in m.calls]) for m in read
    ]


def _text(blocks: Any) -> str:
    return "".join(block.get("text") or block.get("content") or "" for block in blocks if isinstance(block, dict))


@pytest.mark.parametrize(
    ("file", "format", "id", "group_of"),
    [
        ("openai.jsonl", "openai", None, None),
        ("openai_calls.jsonl", "openai", None, None),
        ("openai_responses.jsonl", "openai-responses", None, None),
        ("anthropic.json", "anthropic", None, None),
        ("anthropic_calls.jsonl", "anthropic", None, None),
        ("langchain.json", "langchain", None, None),
        ("langsmith.json", "langsmith", "5f0c0005", "tova"),
        ("llamaindex.json", "llamaindex", "tova", "tova"),
        ("atif.json", "atif", "ferry-desk-0314", "ferry-desk-0314"),
    ],
)
def test_every_format_reads_as_the_same_history(file: str, format: str, id: str | None, group_of: str | None) -> None:
    (expected,), histories = logs.read(OPENAI), logs.read(FOLDER / file)
    (history,) = histories
    assert (history.format, histories.formats) == (format, {format: 1})
    assert said(history.messages) == said(expected.messages)
    assert [unit.kind for unit in group(history.messages)] == [unit.kind for unit in group(expected.messages)]
    assert all(unit.complete for unit in group(history.messages))
    assert id is None or history.id == id
    assert group_of is None or history.group == group_of


def test_a_folder_a_glob_and_several_paths_give_all_files_in_order(tmp_path: Path) -> None:
    for name in ("b/two.jsonl", "a/one.jsonl.gz", "a/.hidden/three.jsonl", "notes.txt", "a/scorer.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(OPENAI.read_bytes()) if name.endswith(".gz") else OPENAI.read_bytes())
    one, two = str(tmp_path / "a/one.jsonl.gz"), str(tmp_path / "b/two.jsonl")
    assert [history.id for history in logs.read(tmp_path)] == [one, two]
    assert [history.id for history in logs.read(tmp_path / "**" / "*.jsonl*")] == [one, two]
    assert [history.id for history in logs.read(two, one)] == [two, one]


def test_a_folder_may_lie_below_a_hidden_one(tmp_path: Path) -> None:
    (tmp_path / ".cache").mkdir()
    shutil.copy(OPENAI, tmp_path / ".cache" / "run.jsonl")
    assert len(list(logs.read(tmp_path / ".cache"))) == 1


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress, lambda b: zstandard.compress(b) * 2])
def test_packed_logs_are_read_and_progress_counts_bytes_as_they_lie_there(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "log"
    path.write_bytes(pack((FOLDER / "openai_histories.jsonl").read_bytes()))
    histories = logs.read(path)
    assert histories.position == 0
    found = list(histories)
    assert len(found) in (2, 4)
    assert histories.position == histories.size == path.stat().st_size


def test_a_damaged_zstd_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.zst"
    packed = bytearray(zstandard.compress(OPENAI.read_bytes() * 50))
    packed[len(packed) // 2 :] = b"\xff" * (len(packed) - len(packed) // 2)
    path.write_bytes(packed)
    with pytest.raises(LogError, match="damaged zstd file"):
        list(logs.read(path))


def test_an_fsspec_url_is_a_file_a_folder_or_a_glob() -> None:
    memory = fsspec.filesystem("memory")
    for name in ("week/monday.jsonl", "week/sunday.jsonl.gz"):
        packed = gzip.compress(OPENAI.read_bytes()) if name.endswith("gz") else OPENAI.read_bytes()
        memory.pipe(f"/{name}", packed)
    try:
        for url in ("memory://week", "memory://week/*.jsonl*"):
            histories = logs.read(url)
            assert [history.id for history in histories] == [
                "memory://week/monday.jsonl",
                "memory://week/sunday.jsonl.gz",
            ] or [history.id for history in logs.read(url)] == [
                "memory:///week/monday.jsonl",
                "memory:///week/sunday.jsonl.gz",
            ]
            assert histories.position == histories.size
        assert len(list(logs.read("memory://week/monday.jsonl"))) == 1
        with pytest.raises(LogError, match="memory://week/tuesday"):
            list(logs.read("memory://week/tuesday.jsonl"))
    finally:
        memory.rm("/week", recursive=True)
    with pytest.raises(LogError, match="nosuch://"):
        logs.read("nosuch://bucket/log.jsonl")


def test_local_files_need_neither_fsspec_nor_zstandard() -> None:
    code = (
        "import sys; sys.modules['fsspec'] = sys.modules['zstandard'] = None\n"
        "from lre_core import logs; from lre_core.errors import MissingExtra\n"
        f"assert len(list(logs.read({str(OPENAI)!r}))) == 1\n"
        "try: logs.read('s3://bucket/log.jsonl')\n"
        "except MissingExtra as error: print(error)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert finished.stdout == "Reading s3:// addresses needs the 'remote' extra: pip install 'lre-memory[remote]'\n"


def test_what_is_broken_is_skipped_and_counted_only_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    whole = (FOLDER / "openai_histories.jsonl").read_text("utf-8").splitlines()
    lines = ['{"messages": [', whole[0], '{"messages": 3}', '{"messages": [{"role": "elf"}]}', whole[1], "\udcff", "7"]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    with pytest.raises(LogError, match="line 1: broken JSON"):
        list(logs.read(path))
    histories = logs.read(path, skip_bad=True)
    assert [history.id for history in histories] == ["ferry-1", "ferry-2"]
    assert histories.skipped == 5
    places = [problem.removeprefix(f"{path}, ").partition(":")[0] for problem in histories.problems]
    assert places == ["line 1", "line 3", "line 4, message 0", "line 6", "line 7"]


def test_a_broken_line_among_messages_leaves_the_others_one_history(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = OPENAI.read_text("utf-8").splitlines()
    path.write_text("\n".join([*lines[:6], "{", '{"role": "elf"}', *lines[6:]]), "utf-8")
    histories = logs.read(path, skip_bad=True)
    assert [history.messages for history in histories] == [history.messages for history in logs.read(OPENAI)]
    assert histories.skipped == 2


def test_a_file_that_is_no_log_is_skipped_whole(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"weights": [1, 2]}')
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(OPENAI.read_bytes())[:-20])
    (tmp_path / "c.json").write_text("")
    shutil.copy(OPENAI, tmp_path / "d.jsonl")
    histories = logs.read(tmp_path, skip_bad=True)
    assert [history.id for history in histories] == [str(tmp_path / "d.jsonl")]
    assert histories.skipped == 3


def test_calls_of_several_conversations_at_once_are_told_apart(tmp_path: Path) -> None:
    def call(name: str, turns: int) -> Chat:
        messages = [{"role": ("user", "assistant")[n % 2], "content": f"{name} {n}"} for n in range(2 * turns - 1)]
        answer = {"role": "assistant", "content": f"{name} {2 * turns - 1}"}
        return {"request": {"messages": messages}, "response": {"choices": [{"message": answer}]}}

    path = tmp_path / "calls.jsonl"
    order = [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("b", 2), ("a", 2), ("a", 3)]
    path.write_text("".join(json.dumps(call(*each)) + "\n" for each in order))
    histories = {history.messages[0]["content"]: len(history.messages) for history in logs.read(path)}
    assert histories == {"c 0": 2, "b 0": 4, "a 0": 6}


def test_a_request_that_failed_is_a_history_without_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    asked = [{"role": "user", "content": "Are you there?"}]
    body = json.dumps({"model": "m", "messages": asked})
    path.write_text(json.dumps([{"request": {"body": body}, "response": {"error": {"message": "overloaded"}}}]))
    (history,) = logs.read(path)
    assert history.messages == asked


def test_records_that_hold_no_history_are_said_to(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([{"run_type": "tool", "inputs": {}, "outputs": {}}]))
    with pytest.raises(LogError, match="no history in it"):
        list(logs.read(path))


def test_langchain_messages_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    called = {"name": "f", "arguments": "{}"}
    values: list[Chat] = [
        {"type": "system", "data": {"content": "s"}},
        {"type": "human", "content": [{"type": "text", "text": "h"}], "name": "Mara"},
        {"type": "AIMessageChunk", "data": {"content": "", "additional_kwargs": {"function_call": called}}},
        {"type": "function", "data": {"content": "r", "name": "f"}},
        {"type": "ai", "data": {"content": "", "invalid_tool_calls": [{"id": "i", "name": "g", "args": "{"}]}},
        {"type": "tool", "data": {"content": "bad", "tool_call_id": "i"}},
        {"type": "remove", "data": {"id": "x", "content": ""}},
        {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": "bye"}},
        {"type": "chat", "data": {"role": "user", "content": "again"}},
    ]
    path.write_text(json.dumps(values))
    (history,) = logs.read(path)
    kinds = [as_message(message).kind for message in history.messages]
    assert kinds == ["system", "human", "assistant", "tool", "assistant", "tool", "assistant", "human"]
    assert history.messages[1]["name"] == "Mara"
    assert as_message(history.messages[4]).calls[0].arguments == "{"


def test_a_llamaindex_message_of_an_older_version(tmp_path: Path) -> None:
    path = tmp_path / "store.json"
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    kwargs = {"tool_calls": [call]}
    block = {"block_type": "tool_call", "tool_call_id": "c", "tool_name": "f", "tool_kwargs": {}}
    image = {"block_type": "image", "url": "x"}
    messages = [
        {"role": "user", "content": "hi", "additional_kwargs": {}},
        {"role": "assistant", "content": None, "additional_kwargs": kwargs},
        {"role": "tool", "content": "r", "additional_kwargs": {"tool_call_id": "c"}},
        {"role": "assistant", "blocks": [block], "additional_kwargs": kwargs},
        {"role": "user", "blocks": [{"block_type": "text", "text": "see"}, image], "additional_kwargs": {}},
        {"role": "chatbot", "blocks": [{"block_type": "text", "text": "ok"}], "additional_kwargs": {}},
    ]
    path.write_text(json.dumps({"chat_store": {"store": {"u": messages}}, "token_limit": 9}))
    (history,) = logs.read(path)
    read = [as_message(message) for message in history.messages]
    assert [len(message.calls) for message in read] == [0, 1, 0, 1, 0, 0]
    assert (read[2].answers, read[4].media, read[5].kind) == (("c",), 1, "assistant")


def test_an_atif_agent_without_tools_sees_its_screen_and_subagents_are_histories_of_the_same_group(
    tmp_path: Path,
) -> None:
    def trajectory(name: str, *children: Chat) -> Chat:
        screen = {"results": [{"content": "$ ls"}]}
        steps = [
            {"source": "user", "message": "list"},
            {"source": "agent", "message": "ls", "timestamp": "2026-03-14T07:40:00Z", "observation": screen},
        ]
        return {
            "schema_version": "ATIF-v1.7",
            "session_id": "s",
            "trajectory_id": name,
            "agent": {},
            "steps": steps,
            "subagent_trajectories": list(children),
        }

    path = tmp_path / "t.json"
    path.write_text(json.dumps(trajectory("root", trajectory("child"))))
    root, child = logs.read(path)
    assert [message["role"] for message in root.messages] == ["user", "assistant", "user"]
    assert root.messages[1]["timestamp"] == 1773474000.0
    assert [(h.id, h.group) for h in (root, child)] == [("root", "s"), ("child", "s")]


JSON_KEYS = st.sampled_from(
    "messages role content type data request response body choices message inputs outputs run_type steps agent source "
    "observation results store chat_store blocks tool_calls input output system kwargs id lc additional_kwargs "
    "generations questions metadata thread_id child_runs function name args arguments runs".split()
)
JSON_LEAVES = st.sampled_from([None, True, 0, 1.5, "", '{"messages": [7]}']) | st.sampled_from(
    "user assistant tool human ai llm chain hi message tool_use tool_result function_call function_call_output".split()
)
JSON_VALUES = st.recursive(
    JSON_LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(JSON_KEYS, inner, max_size=5),
    max_leaves=25,
)


def outcome(path: Path, skip_bad: bool = False) -> tuple[list[logs.History], int, str]:
    """The histories, how much was skipped, and what was refused; nothing else may come out of a reader."""
    histories = logs.read(path, skip_bad=skip_bad)
    found: list[logs.History] = []
    try:
        while (history := next(histories, None)) is not None:
            found.append(history)
    except LogError as error:
        return found, histories.skipped, str(error)
    return found, histories.skipped, ""


@settings(max_examples=200)
@given(st.lists(JSON_VALUES, min_size=1, max_size=4), st.booleans())
def test_whatever_json_holds_is_read_or_refused(tmp_path_factory: Any, values: list[Any], skip: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    found, skipped, refusal = outcome(path, skip)
    assert found or skipped or refusal.startswith(str(path))
    assert not (skip and refusal)
    for history in found:
        assert sum(unit.stop - unit.start for unit in group(history.messages)) == len(history.messages) > 0


FIXTURES = sorted(file.name for file in FOLDER.iterdir())


@settings(max_examples=200)
@given(st.sampled_from(FIXTURES), st.data(), st.sampled_from([bytes, gzip.compress, zstandard.compress]))
def test_a_log_damaged_anywhere_is_read_or_refused(
    tmp_path_factory: Any, file: str, choice: st.DataObject, pack: Any
) -> None:
    damaged = bytearray(pack((FOLDER / file).read_bytes()))
    at = choice.draw(st.integers(0, len(damaged) - 1))
    damaged[at : at + choice.draw(st.integers(0, 40))] = choice.draw(st.binary(max_size=8))
    path = tmp_path_factory.getbasetemp() / file
    path.write_bytes(damaged)
    found, _, refusal = outcome(path)
    assert found or refusal.startswith(str(path))
    assert "\n" not in refusal


@settings(max_examples=200)
@given(st.sampled_from(FIXTURES), st.data())
def test_a_log_with_one_value_exchanged_is_read_or_refused(
    tmp_path_factory: Any, file: str, choice: st.DataObject
) -> None:
    text = (FOLDER / file).read_text("utf-8")
    values = [json.loads(line) for line in text.splitlines()] if file.endswith("jsonl") else [json.loads(text)]
    places = [place for value in values for place in _places(value)]
    container, key = choice.draw(st.sampled_from(places))
    container[key] = choice.draw(JSON_VALUES)
    path = tmp_path_factory.getbasetemp() / file
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    found, _, refusal = outcome(path)
    assert found or refusal.startswith(str(path))
    assert all(group(history.messages) for history in found)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place a value stands in, as container and key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in [(value, key), *_places(value[key])]]
