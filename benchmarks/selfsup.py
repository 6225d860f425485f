"""What a scorer learns without annotation: from answered questions, and from chats alone.

    python -m benchmarks.selfsup --data FILE

FILE holds chats as gzipped JSON Lines, a `messages` list and annotated `questions` each (`locomo.jsonl.gz`,
`beam-128k.jsonl.gz`). Five folds by chat; every scorer is judged by the annotated evidence of chats held out, which
only the first has seen any of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.scorers import evidence, lines
from lre_core import Scorer
from lre_core.comparison import Comparison, rank
from lre_core.labels import answer_overlap, from_log
from lre_core.messages import ChatMessage

FOLDS = 5

Labelled = list[tuple[list[ChatMessage], NDArray[np.int64]]]

LABELS: dict[str, Callable[[dict[str, Any]], Labelled]] = {
    "annotated evidence": lambda chat: [(chat["messages"], evidence(chat))],
    "questions with answers": lambda chat: [(chat["messages"], answer_overlap(chat["messages"], chat["questions"]))],
    "chats alone": lambda chat: from_log(chat["messages"]),
}

app = typer.Typer(add_completion=False)


def measure(chats: Sequence[dict[str, Any]], label: Callable[[dict[str, Any]], Labelled]) -> Comparison:
    """How scorers trained on such labels rank the annotated evidence of the chats held out."""
    cases = [label(chat) for chat in chats]
    order = np.random.default_rng(0).permutation(len(chats))
    scorer_of: dict[int, Scorer] = {}
    for fold in range(FOLDS):
        held = {int(index) for index in order[fold::FOLDS]}
        train = [(case, group) for group, found in enumerate(cases) if group not in held for case in found]
        scorer = Scorer.fit(
            [history for (history, _), _ in train],
            [labels for (_, labels), _ in train],
            groups=[group for _, group in train],
        )
        scorer_of |= {id(chats[index]["messages"]): scorer for index in held}
    return rank(
        lambda history: scorer_of[id(history)].score(history),
        [chat["messages"] for chat in chats],
        [evidence(chat) for chat in chats],
        groups=range(len(chats)),
    )


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="Chats with annotated questions, gzipped JSON Lines.", exists=True)],
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON object instead of the table.")] = False,
) -> None:
    """Train with and without annotation, and rank annotated evidence."""
    chats = lines(data)
    found = {name: measure(chats, label) for name, label in LABELS.items()}
    auc = {name: result.auc["lre"] for name, result in found.items()}
    auc |= {name: interval for name, interval in next(iter(found.values())).auc.items() if name != "lre"}
    if as_json:
        typer.echo(json.dumps({"data": data.name} | {name: round(interval.mean, 4) for name, interval in auc.items()}))
        return
    table = Table("learned from", "AUC (95 %)", title=f"{data.name}: evidence of chats held out")
    for name, interval in auc.items():
        table.add_row(name, str(interval))
    Console().print(table)


if __name__ == "__main__":
    app()
