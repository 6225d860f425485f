"""What the shares of `lre_core/generations.py` trade: the price of a chat's prompts, and the evidence left at its end.

    python -m benchmarks.generations --data FOLDER
    python -m benchmarks.generations --data FOLDER --json

FOLDER holds `beam-128k.jsonl.gz` (BEAM, CC BY-SA 4.0, Tavakoli et al.), one chat a line in OpenAI chat format with the
messages that hold the evidence for each question asked after its end. Every chat is gone through by a session, with a
scorer fitted on the other half of the chats. Each share is moved down and up alone. Constants are no better than the
chats they were chosen on, so the even and the odd pairs of chats are told apart: what is real shows in both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.scorers import evidence, lines
from lre_core import Evictor, Scorer, generations
from lre_core.evaluation import Replay
from lre_core.tokens import estimate

SHARES = {
    "TENURED_SHARE": (0.7, 0.75, 0.9),
    "FRESH_SHARE": (0.5, 0.6, 0.75),
    "FRESH_DENSITY": (0.0, 0.25, 0.6),
    "YOUNG_SHARE": (0.02, 0.04, 0.1),
}
"""What each is set to beside what it is."""
BUDGETS = [4_000, 8_000, 16_000, 32_000]
KEEP_RECENT = 4

app = typer.Typer(add_completion=False)


class Chat(NamedTuple):
    """A chat, the messages that hold evidence, and the scorer that has not seen it."""

    messages: list[dict[str, Any]]
    evidence: set[int]
    scorer: Scorer


class Row(NamedTuple):
    """What one setting does under one budget, over all chats; `halves` is the evidence of either half of them."""

    setting: str
    budget: int
    of_recency: float
    of_everything: float
    evidence: float
    halves: tuple[float, float]


def read(path: Path) -> list[Chat]:
    """The chats of the file, each with a scorer fitted on every other one."""
    rows = lines(path)
    found = [{index for question in row["questions"] for index in question["evidence"]} for row in rows]
    histories, labels = [row["messages"] for row in rows], [evidence(row) for row in rows]
    scorers = [Scorer.fit(histories[1 - half :: 2], labels[1 - half :: 2]) for half in (0, 1)]
    return [
        Chat(messages, sources, scorers[number % 2])
        for number, (messages, sources) in enumerate(zip(histories, found, strict=True))
    ]


@contextmanager
def shares(**moved: float) -> Iterator[None]:
    """Other shares for a while."""
    before = {name: getattr(generations, name) for name in moved}
    for name, value in moved.items():
        setattr(generations, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(generations, name, value)


def measure(chats: Sequence[Chat], setting: str, budget: int) -> Row:
    """Every chat gone through once under a budget."""
    costs, kept = [], []
    for chat in chats:
        replay = Replay(chat.messages, Evictor(budget, chat.scorer, KEEP_RECENT, token_counter=estimate))
        costs.append([sum(p.cost() for p in replay.prompts[by]) for by in ("lre", "recency", "everything")])
        kept.append(len(chat.evidence.intersection(replay.views[-1].kept)) / len(chat.evidence))
    ours, recency, everything = np.sum(costs, axis=0)
    even = np.arange(len(kept)) // 2 % 2 == 0
    halves = (float(np.mean(np.array(kept)[even])), float(np.mean(np.array(kept)[~even])))
    return Row(setting, budget, float(ours / recency), float(ours / everything), float(np.mean(kept)), halves)


def table(rows: Sequence[Row]) -> Table:
    """For each setting and budget what the prompts cost beside recency trimmed on every turn, and what they keep."""
    budgets = sorted({row.budget for row in rows})
    drawn = Table(
        title="Cost of all prompts (recency: 1), evidence in view at the end; below, in either half",
        show_lines=True,
    )
    drawn.add_column("setting", no_wrap=True)
    for budget in budgets:
        drawn.add_column(f"{budget:,}", no_wrap=True)
    for setting in dict.fromkeys(row.setting for row in rows):
        cells = {row.budget: row for row in rows if row.setting == setting}
        drawn.add_row(setting, *(cell(cells[budget]) for budget in budgets))
    return drawn


def cell(row: Row) -> str:
    """Cost and evidence; below, the evidence of either half of the chats."""
    return f"{row.of_recency:.3f} {row.evidence:.3f}\n{row.halves[0]:.3f} {row.halves[1]:.3f}"


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="Folder with beam-128k.jsonl.gz.", exists=True, file_okay=False)],
    budget: Annotated[list[int], typer.Option(min=1, help="Tokens a view may take; may be repeated.")] = BUDGETS,
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON object a line instead of the table.")] = False,
) -> None:
    """Move the shares of the generations one by one."""
    console = Console(stderr=True)
    chats = read(data / "beam-128k.jsonl.gz")
    settings = [{}, *({name: value} for name, values in SHARES.items() for value in values)]
    rows = []
    for moved in track(settings, "Replaying", console=console, transient=True, disable=not console.is_terminal):
        with shares(**moved):
            setting = " ".join(f"{name} {value}" for name, value in moved.items()) or "as it is"
            rows += [measure(chats, setting, tokens) for tokens in budget]
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row._asdict()))
    else:
        Console().print(table(rows))


if __name__ == "__main__":
    app()
