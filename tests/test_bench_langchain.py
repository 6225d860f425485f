"""`make bench langchain`: what it writes, at sizes that take no time, and what the figures kept in results/ show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.langchain import CACHED, METHODS, PLAIN, RESULTS, app, chat

OURS = [name for name in METHODS if name.lower().startswith("lre")]


def rows(path: Path) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row["method"], row["messages"]): row for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}


def test_every_method_has_a_row_at_every_size(tmp_path: Path) -> None:
    out = tmp_path / "new" / "rows.json"
    finished = CliRunner().invoke(app, f"--sizes 10,40 --turns 3 --chats 2 --out {out}".split(), catch_exceptions=False)
    found = rows(out)
    assert list(found) == [(name, size) for size in (10, 40) for name in METHODS]
    assert all(row["turns"] == 6 and 0 < row["turn_ms"] <= row["slowest_ms"] for row in found.values())
    assert all(name in finished.output for name in METHODS)


@pytest.mark.parametrize("method", OURS)
def test_the_figures_kept_are_faster_than_trim_messages_and_near_it_with_every_count_known(method: str) -> None:
    found = rows(RESULTS)
    for size in (100, 1_000, 5_000):
        mean = found[method, size]["mean_ms"]
        assert found[PLAIN, size]["mean_ms"] > (50 if size == 5_000 else 1) * mean
        assert mean < 2 * found[CACHED, size]["mean_ms"]


def test_the_same_chat_every_time_question_and_answer_in_turn() -> None:
    assert chat(30, "a") == chat(30, "a") != chat(30, "b")
    assert [message.type for message in chat(4, "a")] == ["human", "ai"] * 2
