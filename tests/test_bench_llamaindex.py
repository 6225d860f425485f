"""`make bench llamaindex`: what its rows say, at sizes that take no time."""

import json
from pathlib import Path

import pytest
from llamaindex_histories import UNCLOSED, unclosed
from typer.testing import CliRunner

from benchmarks.llamaindex import MEMORIES, RESULTS, app, conversation

__all__ = ["unclosed"]

pytestmark = UNCLOSED


def test_every_memory_has_a_row_and_only_what_was_not_run_is_extrapolated(tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    arguments = f"--sizes 40,80 --bound 40 --turns 4 --limit 200 --out {out}".split()
    finished = CliRunner().invoke(app, arguments, catch_exceptions=False)
    rows = json.loads(out.read_text())["rows"]
    assert [(row["memory"], row["messages"]) for row in rows] == [(name, n) for n in (40, 80) for name in MEMORIES]
    small, large = rows[0], rows[4]
    assert [row for row in rows if row["extrapolated"]] == [large]
    assert large["get_ms"] == pytest.approx(4 * small["get_ms"])
    assert finished.output.count("~") == 3
    assert [row["turns"] for row in rows] == [3, 4, 4, 4, 0, 4, 4, 4]
    assert all(0 < row["get_ms"] <= row["slowest_ms"] for row in rows)


def test_the_figures_kept_are_flat_a_thousand_times_below_the_original_and_no_higher_than_memorys() -> None:
    rows = {(row["memory"], row["messages"]): row for row in json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]}

    def ms(memory: str, messages: int) -> float:
        time: float = rows[memory, messages]["get_ms"]
        return time

    assert not rows["ChatMemoryBuffer", 1_000]["extrapolated"]
    assert ms("ChatMemoryBuffer", 1_000) > 1_000 * ms("LREChatMemoryBuffer", 1_000)
    for n in (100, 1_000, 5_000):
        assert ms("LREChatMemoryBuffer", n) < ms("Memory", n)
        assert ms("LREMemory", n) <= ms("Memory", n)
        assert rows["LREMemory", n]["shown"] > 2 * rows["Memory", n]["shown"]
    for memory in ("LREChatMemoryBuffer", "LREMemory"):
        assert ms(memory, 5_000) < 3 * ms(memory, 100)


def test_the_same_conversation_every_time_question_and_answer_in_turn() -> None:
    assert conversation(30) == conversation(30)
    assert [message.role.value for message in conversation(4)] == ["user", "assistant"] * 2
    assert len(set(map(str, conversation(30)))) > 25
