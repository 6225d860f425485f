"""`lre train`: a scorer from one's own logs, and whether it is worth having."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from lre_core import labels, logs
from lre_core.cli.options import Json, KeepRecent, Logs, Quiet, SkipBad, scores_by
from lre_core.cli.terminal import console, counted, plural, reading, tell_reading, waiting, write_json
from lre_core.errors import InvalidSetting, TrainingError
from lre_core.messages import ChatMessage
from lre_core.scorer import Scorer

if TYPE_CHECKING:
    from lre_core.comparison import Comparison
    from lre_core.intervals import Interval

__all__ = ["Cases", "Most", "comparison_json", "labelled", "ranking_table", "sampled", "train"]

Most = Annotated[
    int, typer.Option(help="Use so many histories at most, an even sample of all; this bounds memory and time.")
]

CARD = Template("""# $name

A learned relevance eviction scorer: the probability that a unit of a history is needed by what comes next.
Logistic regression over $features statistics and hashed words; weights as JSON, $size bytes. No word of the logs it was
trained on is in it.

| | |
|---|---|
| trained on | $sources |
| labels | $rule |
| cases | $cases moments, $units units, $needed of them needed later |
| training set | SHA-256 `$digest` |
| made by | `lre train` of lre-memory $version |

Held out, $folds folds by thread; macro-AUC with 95 % bootstrap intervals over threads (0.5 is chance):

| ranking | AUC | ahead by |
|---|---|---|
$rows

$verdict.

## Where it may lose

Its labels were made without annotation, from what later calls took up and later turns asked for. A fact that mattered
without being repeated is not in them. The last $keep_recent units never compete and were not ranked.
""")
SHOWN = {"lre": "this scorer", "bundled": "the bundled scorer"}
RULE = (
    "runs with tool calls: an identifier the unit introduced is taken by a later call; chats: of the units before "
    "the recent window, it matches best what a later turn and its reply say (`lre_core.labels.from_log`)"
)


@dataclass
class Cases:
    """Labelled moments of several histories.

    Attributes:
        histories: each cut at the moment its labels speak of.
        labels: for each one 0 or 1 a unit.
        groups: for each the thread, session or task it belongs to.
    """

    histories: list[list[ChatMessage]] = field(default_factory=list)
    labels: list[NDArray[np.int64]] = field(default_factory=list)
    groups: list[object] = field(default_factory=list)

    def add(self, history: logs.History) -> None:
        """Labels a history: by the questions its log names, else by what its later part turned out to need."""
        pairs = labels.from_log(history.messages)
        if history.questions:
            pairs = [(list(history.messages), labels.answer_overlap(history.messages, history.questions))]
        for prefix, needed in pairs:
            self.histories.append(prefix)
            self.labels.append(needed)
            self.groups.append(history.group)

    @property
    def units(self) -> int:
        """How many units are labelled."""
        return sum(map(len, self.labels))

    @property
    def needed(self) -> int:
        """How many of them are needed."""
        return int(sum(label.sum() for label in self.labels))

    def check(self, histories: int) -> None:
        """Raises TrainingError where there is nothing to learn from, and says what was looked for."""
        if not self.needed:
            raise TrainingError(
                f"nothing to learn from: in {histories:,} {plural('history', 'histories', histories)} nothing of an "
                "earlier turn is taken up later. "
                "A run needs a call that takes an identifier seen before; a chat, a turn that says again what was said "
                "more than five units before"
            )


def labelled(histories: Sequence[logs.History], quiet: bool) -> Cases:
    """The cases of these histories, with a progress bar."""
    cases = Cases()
    for history in counted(histories, len(histories), "labelling", quiet):
        cases.add(history)
    cases.check(len(histories))
    return cases


def sampled(paths: Sequence[str], most: int, skip_bad: bool, quiet: bool) -> tuple[list[logs.History], logs.Histories]:
    """An even sample of the logs' histories, and the reader that knows what was read."""
    if most < 1:
        raise InvalidSetting(f"--most is {most}; it must be 1 or more histories")
    histories = logs.read(*paths, skip_bad=skip_bad)
    sample = logs.Sample(most)
    sample.add_all(reading(histories, quiet))
    kept = sample.histories()
    if not quiet:
        tell_reading(histories)
        if len(kept) < sample.seen:
            console().print(f"Using an even sample of {len(kept):,} of them; --most changes that.", soft_wrap=True)
    return kept, histories


def train(
    paths: Logs,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where the scorer goes; its model card goes beside it.", dir_okay=False)
    ] = Path("scorer.json"),
    most: Most = 500,
    folds: Annotated[int, typer.Option(help="Parts the histories are cut into; each is held out once.")] = 5,
    keep_recent: KeepRecent = 5,
    skip_bad: SkipBad = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn a scorer from your own logs, without annotation, and say whether it beats the simple ways of choosing.

    What a later call or question took up is what an earlier unit was needed for. The verdict comes from histories held
    out of training, whole threads at a time, beside recency, random, length, TF-IDF salience and the bundled scorer.
    The scorer is written either way; take it if the verdict is good.

    Example: lre train logs/ -o scorer.json
    """
    if folds < 2:
        raise InvalidSetting(f"--folds is {folds}; it must be 2 or more")
    if not out.parent.is_dir():
        raise InvalidSetting(f"{out}: there is no folder {out.parent}")
    from lre_core.training import compare, fit

    sample, read = sampled(paths, most, skip_bad, quiet)
    cases = labelled(sample, quiet)
    with waiting(f"training on {cases.units:,} units", quiet):
        scorer = fit(cases.histories, cases.labels, groups=cases.groups)
    comparison: Comparison | None = None
    verdict = f"too few histories to tell: have {len(set(cases.groups))}, want about 20"
    if len(set(cases.groups)) > 1:
        with waiting(f"cross-validating in {folds} folds", quiet):
            try:
                comparison = compare(
                    cases.histories,
                    cases.labels,
                    groups=cases.groups,
                    keep_recent=keep_recent,
                    folds=folds,
                    rivals={"bundled": scores_by("auto")},
                )
                verdict = comparison.verdict(SHOWN)
            except TrainingError as error:
                verdict = f"too few histories to tell: {error}"

    scorer.save(out)
    card = out.with_suffix(".md")
    card.write_text(
        _card(out.stem, scorer, cases, read, comparison, verdict, folds=folds, keep_recent=keep_recent),
        "utf-8",
    )
    if not quiet:
        screen = console()
        if comparison is not None and comparison.auc:
            screen.print(ranking_table(comparison))
        screen.print(
            f"{cases.needed:,} of {cases.units:,} units were needed later, at {len(cases.histories):,} moments."
        )
        screen.print(f"Verdict: {verdict}.", soft_wrap=True)
        screen.print(f"Wrote {out} ({out.stat().st_size:,} bytes) and {card}.", soft_wrap=True)
    if as_json:
        write_json(
            _counts(sample, read, cases)
            | {"verdict": verdict, "scorer": str(out), "card": str(card)}
            | comparison_json(comparison)
        )


def _counts(sample: Sequence[logs.History], read: logs.Histories, cases: Cases) -> dict[str, Any]:
    return {
        "histories": read.count,
        "used": len(sample),
        "skipped": read.skipped,
        "formats": read.formats,
        "moments": len(cases.histories),
        "units": cases.units,
        "needed": cases.needed,
    }


def comparison_json(comparison: Comparison | None) -> dict[str, Any]:
    """A comparison as plain JSON; `held_out` is how many groups were ranked."""
    if comparison is None:
        return {"held_out": 0, "auc": {}, "lead": {}}
    return {
        "held_out": comparison.histories,
        **{
            key: {name: _interval_json(interval) for name, interval in getattr(comparison, key).items()}
            for key in ("auc", "lead")
        },
    }


def _interval_json(interval: Interval) -> dict[str, float]:
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}


def ranked(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Rankings with their AUC and how far the scorer is ahead of each, best first."""
    auc, lead = comparison.auc, comparison.lead
    return [
        (SHOWN.get(name, name), str(auc[name]), str(lead.get(name, "")))
        for name in sorted(auc, key=lambda name: -auc[name].mean)
    ]


def ranking_table(comparison: Comparison) -> Table:
    """AUC by ranking, best first, and how far the scorer is ahead of each."""
    table = Table(box=None, pad_edge=False)
    for name in ("ranking", "AUC (95 %)", "scorer ahead by"):
        table.add_column(name, no_wrap=True)
    for row in ranked(comparison):
        table.add_row(*row)
    return table


def _card(
    name: str,
    scorer: Scorer,
    cases: Cases,
    read: logs.Histories,
    comparison: Comparison | None,
    verdict: str,
    *,
    folds: int,
    keep_recent: int,
) -> str:
    return CARD.substitute(
        name=name,
        features=len(scorer.weights),
        size=len(scorer.to_json()),
        sources=f"{len(set(cases.groups)):,} threads of {read.count:,} logged histories "
        f"({', '.join(f'{format} {count:,}' for format, count in sorted(read.formats.items()))})",
        rule=RULE,
        cases=f"{len(cases.histories):,}",
        units=f"{cases.units:,}",
        needed=f"{cases.needed:,}",
        digest=_digest(cases),
        version=version("lre-memory"),
        folds=folds,
        rows="\n".join(f"| {' | '.join(row)} |" for row in (ranked(comparison) if comparison else ())) or "| | | |",
        verdict=verdict[0].upper() + verdict[1:],
        keep_recent=keep_recent,
    )


def _digest(cases: Cases) -> str:
    digest = hashlib.sha256()
    for history, label in zip(cases.histories, cases.labels, strict=True):
        digest.update(json.dumps([history, label.tolist()], sort_keys=True, default=str).encode())
    return digest.hexdigest()
