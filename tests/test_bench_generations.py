"""The benchmark of the generations' shares, on chats small enough to count its figures by hand."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from benchmarks.generations import KEEP_RECENT, SHARES, app, read
from lre_core import Evictor, generations
from lre_core.tokens import estimate

BUDGET = 300


def written(path: Path, chats: int = 4, turns: int = 30) -> Path:
    """Chats in which every fifth question holds what is asked for after the end."""
    with gzip.open(path / "beam-128k.jsonl.gz", "wt") as lines:
        for chat in range(chats):
            said = [
                f"{chat} {n} booking kx{n}93j for Ines" if n % 5 == 0 else f"fine weather {n}" for n in range(turns)
            ]
            messages = [
                {"role": role, "content": text + " and so on" * (role == "assistant") * 8}
                for text in said
                for role in ("user", "assistant")
            ]
            questions = [{"question": "Which?", "answer": "That.", "evidence": [2 * n]} for n in range(0, turns, 5)]
            lines.write(json.dumps({"messages": messages, "questions": questions}) + "\n")
    return path


def price(views: list[list[int]], costs: list[int]) -> float:
    """Tokens of all prompts, those of the prefix that the prompt before had too at a tenth."""
    total, before = 0.0, list[int]()
    for view in views:
        same = 0
        while same < min(len(before), len(view)) and before[same] == view[same]:
            same += 1
        total += sum(costs[index] for index in view[same:]) + 0.1 * sum(costs[index] for index in view[:same])
        before = view
    return total


def test_its_figures_are_those_counted_by_hand_and_every_share_is_moved_and_put_back(tmp_path: Path) -> None:
    before = {name: getattr(generations, name) for name in SHARES}
    result = CliRunner().invoke(app, ["--data", str(written(tmp_path)), "--budget", str(BUDGET), "--json"])
    assert result.exit_code == 0, result.output
    assert {name: getattr(generations, name) for name in SHARES} == before
    rows: list[dict[str, Any]] = [json.loads(line) for line in result.stdout.splitlines()]
    moved = [f"{name} {value}" for name, values in SHARES.items() for value in values]
    assert [row["setting"] for row in rows] == ["as it is", *moved]
    assert len({row["of_everything"] for row in rows}) > 4

    ours, everything, kept = 0.0, 0.0, []
    for chat in read(tmp_path / "beam-128k.jsonl.gz"):
        evictor = Evictor(BUDGET, chat.scorer, KEEP_RECENT, token_counter=estimate)
        costs = [estimate(str(message["content"])) + evictor.message_overhead for message in chat.messages]
        session, views = evictor.session(), []
        for size in range(1, len(chat.messages), 2):
            session.append(chat.messages[max(0, size - 2) : size])
            views.append(list(session.view().kept))
        ours += price(views, costs)
        everything += price([list(range(size)) for size in range(1, len(chat.messages), 2)], costs)
        kept.append(len(chat.evidence & set(views[-1])) / len(chat.evidence))
    assert np.isclose(rows[0]["of_everything"], ours / everything)
    assert np.isclose(rows[0]["evidence"], np.mean(kept))
    assert np.allclose(rows[0]["halves"], [np.mean(kept[:2]), np.mean(kept[2:])])
