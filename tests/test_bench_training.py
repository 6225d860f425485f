"""The benchmarks of training: a log by repetition, and labels without annotation beside annotated ones."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import selfsup, training

CITIES = "Lisbon Oslo Quito Hanoi Tunis Riga Accra Lima Cork Nara".split()


def run(seed: int) -> list[dict[str, object]]:
    """A run of some 5 kB, whose calls take the code of a result long before."""
    messages: list[dict[str, object]] = [{"role": "user", "content": f"errand {seed}"}]
    for step in range(12):
        call = {"name": "go", "arguments": json.dumps({"code": f"kx-{seed}-{max(0, step - 6)}"})}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [{"id": f"{step}", "function": call}]},
            {"role": "tool", "tool_call_id": f"{step}", "content": f"next kx-{seed}-{step + 1} " + "padding " * 40},
        ]
    return messages


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="no os.wait4, which tells a process's peak memory")
def test_a_log_of_a_size_is_trained_on_and_its_time_and_memory_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "messages", run)
    size = training.write(tmp_path / "log.jsonl", 100_000)
    lines = (tmp_path / "log.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == size == len({json.loads(line)["thread_id"] for line in lines})
    assert 100_000 <= (tmp_path / "log.jsonl").stat().st_size < 110_000

    out = tmp_path / "results.json"
    result = CliRunner().invoke(training.app, ["--sizes", "1", "--out", str(out)])
    assert result.exit_code == 0, result.output
    (row,) = json.loads(out.read_text("utf-8"))["rows"]
    assert row["log_mib"] == 1
    assert row["used"] == row["threads"] > 100
    assert row["moments"] == 4 * row["threads"]
    assert row["seconds"] > 0
    # An interpreter with scikit-learn is larger than the log.
    assert row["peak_mib"] > 50


def test_the_three_ways_of_labelling_are_judged_by_annotated_evidence(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl.gz"
    with gzip.open(path, "wt") as lines:
        for chat in range(10):
            order = np.random.default_rng(chat).permutation(8)
            messages: list[dict[str, object]] = []
            questions: list[dict[str, object]] = []
            for turn, number in enumerate(order):
                fact = (
                    f"My booking in {CITIES[number]} is KX{chat}{number}417." if number < 3 else "Nice weather today."
                )
                messages += [{"role": "user", "content": fact}, {"role": "assistant", "content": "I see, go on."}]
                if number < 3:
                    asked, answer = f"Which booking in {CITIES[number]}?", f"KX{chat}{number}417"
                    questions.append({"question": asked, "answer": answer, "evidence": [2 * turn]})
            for item in questions:
                messages += [
                    {"role": "user", "content": item["question"]},
                    {"role": "assistant", "content": f"It is {item['answer']}."},
                ]
            lines.write(json.dumps({"messages": messages, "questions": questions}) + "\n")
    result = CliRunner().invoke(selfsup.app, ["--data", str(path), "--json"])
    assert result.exit_code == 0, result.output
    auc = json.loads(result.stdout)
    assert auc["annotated evidence"] > 0.9
    assert auc["questions with answers"] > 0.9
    assert auc["chats alone"] > 0.9
    assert {"recency", "length", "salience", "random"} < set(auc)
