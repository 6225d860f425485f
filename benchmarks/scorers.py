"""Rebuilds the bundled scorers, with a model card beside each.

    pip install --no-deps bfcl-eval==2026.3.23 mpmath
    python -m benchmarks.scorers --data FOLDER

FOLDER holds `tau-airline.jsonl.gz` (tau-bench trajectories, MIT, Sierra) and `beam-128k.jsonl.gz` (BEAM, CC BY-SA 4.0,
Tavakoli et al.), one history a line in OpenAI chat format; the function-calling runs come from the installed package
`bfcl-eval` (Apache-2.0). The same data give the same bytes. Nothing is trained on data that may not be: no LoCoMo.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from benchmarks import bfcl, families
from lre_core import ChatMessage, Scorer, group
from lre_core.comparison import Comparison
from lre_core.labels import moments
from lre_core.training import compare

app = typer.Typer(add_completion=False)

CARD = Template("""# $name

A learned relevance eviction scorer: the probability that a unit of a history is needed by what comes next.
Logistic regression over $features statistics and hashed words; weights as JSON, $size bytes.

| | |
|---|---|
| for | $purpose |
| trained on | $sources |
| labels | $rule |
| cases | $cases histories cut at their moments of decision, $units units, $needed of them needed |
| training set | SHA-256 `$digest` |
| rebuilt by | `python -m benchmarks.scorers --data FOLDER` |

Held out, five folds by $unit_of_folds; macro-AUC with 95 % bootstrap intervals over $unit_of_folds:

| ranking | AUC | LRE ahead by |
|---|---|---|
$rows

$verdict.

## Where it loses

$limits

## Licence of the data

$licence
""")


@dataclass
class Recipe:
    """What a scorer is made from, and what its card says."""

    name: str
    purpose: str
    sources: str
    rule: str
    unit_of_folds: str
    limits: str
    licence: str
    keep_recent: int
    histories: list[list[ChatMessage]]
    labels: list[NDArray[np.int64]]
    groups: list[object]


def main(
    data: Annotated[Path, typer.Option(help="Folder with tau-airline.jsonl.gz and beam-128k.jsonl.gz.", exists=True)],
    out: Annotated[Path, typer.Option(help="Where the scorers go.")] = Path("lre_core/scorers"),
) -> None:
    """Rebuild the bundled scorers and their model cards."""
    console = Console(stderr=True)
    for recipe in (agent(data), assistant(data)):
        scorer = Scorer.fit(recipe.histories, recipe.labels, groups=recipe.groups)
        result = compare(recipe.histories, recipe.labels, groups=recipe.groups, keep_recent=recipe.keep_recent)
        scorer.save(out / f"{recipe.name}.json")
        (out / f"{recipe.name}.md").write_text(card(recipe, scorer, result), encoding="utf-8")
        console.print(f"{recipe.name}: {len(scorer.to_json())} bytes, AUC {result.auc['lre']}; {result.verdict()}")


def agent(data: Path) -> Recipe:
    """Tool-calling agents: airline customer service, a benchmark's eight services, and generated families."""
    runs = [(f"tau-{row['task']}", row["messages"]) for row in lines(data / "tau-airline.jsonl.gz")]
    for variant in bfcl.Variant:
        runs += [(row["task"], row["messages"]) for row in bfcl.histories(variant)]
    for family in families.FAMILIES:
        runs += [(row["task"], row["messages"]) for row in families.histories(family)]
    cases = [(task, prefix, labels) for task, messages in runs for prefix, labels in moments(messages)]
    return Recipe(
        name="agent",
        purpose="agents that call tools",
        sources="tau-bench airline (200 GPT-4o trajectories), executed BFCL multi-turn runs (200 tasks, two "
        "variants), generated operations, coding and browsing runs (`benchmarks/families.py`, 40 each)",
        rule="`lre_core.labels.moments`: the unit introduced an identifier that a call after the cut takes",
        unit_of_folds="task",
        limits="Facts that are no identifiers (a preference, a decision in words) are not in its labels. Runs shorter "
        "than about ten steps leave it little to learn from, and their needed unit is often simply the last result.",
        licence="tau-bench: MIT, Sierra. BFCL: Apache-2.0, UC Berkeley. Generated runs: this project's, MIT.",
        keep_recent=5,
        histories=[prefix for _, prefix, _ in cases],
        labels=[labels for _, _, labels in cases],
        groups=[task for task, _, _ in cases],
    )


def assistant(data: Path) -> Recipe:
    """A person talking with an assistant, over weeks."""
    rows = lines(data / "beam-128k.jsonl.gz")
    return Recipe(
        name="assistant",
        purpose="chats of a person with an assistant, without tools",
        sources="BEAM, 20 chats of 128k tokens with 400 probing questions",
        rule="the unit holds a message that the dataset names as the source of a probing question's answer",
        unit_of_folds="chat",
        limits="Twenty chats, written by a language model from outlines: the interval is wide. It ranks talk between "
        "two people hardly better than chance; train on your own logs for that. Early turns carry most of the evidence "
        "in these chats, and it has learned so.",
        licence='BEAM: CC BY-SA 4.0, Tavakoli et al., "Beyond a Million Tokens". These weights are derived from it.',
        keep_recent=0,
        histories=[row["messages"] for row in rows],
        labels=[evidence(row) for row in rows],
        groups=[row["id"] for row in rows],
    )


def lines(path: Path) -> list[dict[str, Any]]:
    """A gzipped JSON Lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def evidence(row: dict[str, Any]) -> NDArray[np.int64]:
    """1 for each unit that holds a source message of a question."""
    sources = {message for question in row["questions"] for message in question["evidence"]}
    return np.array([not sources.isdisjoint(range(unit.start, unit.stop)) for unit in group(row["messages"])], np.int64)


def card(recipe: Recipe, scorer: Scorer, result: Comparison) -> str:
    """The model card."""
    ranked = sorted(result.auc, key=lambda name: -result.auc[name].mean)
    rows = (f"| {name} | {result.auc[name]} | {result.lead.get(name, '')} |" for name in ranked)
    return CARD.substitute(
        {
            key: getattr(recipe, key)
            for key in ("name", "purpose", "sources", "rule", "unit_of_folds", "limits", "licence")
        },
        features=len(scorer.weights),
        size=len(scorer.to_json()),
        cases=f"{len(recipe.histories):,}",
        units=f"{sum(map(len, recipe.labels)):,}",
        needed=f"{int(sum(labels.sum() for labels in recipe.labels)):,}",
        digest=training_digest(recipe.histories, recipe.labels),
        rows="\n".join(rows),
        verdict=result.verdict()[0].upper() + result.verdict()[1:],
    )


def training_digest(histories: Sequence[Sequence[ChatMessage]], labels: Sequence[NDArray[np.int64]]) -> str:
    """SHA-256 of the training histories and labels."""
    digest = hashlib.sha256()
    for history, label in zip(histories, labels, strict=True):
        digest.update(json.dumps([history, label.tolist()], sort_keys=True).encode())
    return digest.hexdigest()


app.command()(main)

if __name__ == "__main__":
    app()
