"""The arguments several commands share, and what they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from lre_core import logs
from lre_core.errors import InvalidScorer, InvalidSetting
from lre_core.eviction import Evictor, View
from lre_core.messages import ChatMessage
from lre_core.scorer import Scorer, bundled_scorers
from lre_core.units import group

__all__ = [
    "Budget",
    "Encoding",
    "File",
    "Json",
    "KeepRecent",
    "Logs",
    "Quiet",
    "ScorerName",
    "SkipBad",
    "Which",
    "choose",
    "evictor_of",
    "scorer_of",
    "scores_by",
    "view_of",
    "with_scope",
]


def _scorer_names(incomplete: str) -> list[str]:
    return [name for name in ["auto", *bundled_scorers()] if name.startswith(incomplete)]


Logs = Annotated[
    list[str],
    typer.Argument(
        metavar="LOGS",
        help="Chat logs: files, folders, globs or fsspec URLs; JSON or JSONL, plain, .gz or .zst; - is standard input.",
        show_default=False,
    ),
]
File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A chat log: JSON or JSONL, plain, .gz or .zst; - reads standard input.",
        show_default=False,
    ),
]
Budget = Annotated[int, typer.Option(help="Tokens the kept messages may take.", show_default=False)]
KeepRecent = Annotated[int, typer.Option(help="Keep the last so many units without asking the scorer.")]
ScorerName = Annotated[
    str,
    typer.Option(
        help="auto, a bundled scorer (see lre scorers), or a scorer's file.",
        autocompletion=_scorer_names,
    ),
]
Encoding = Annotated[str, typer.Option(help="The tiktoken encoding that counts the tokens.")]
Which = Annotated[
    int | None,
    typer.Option(help="Which history of a file that holds several; 1 is the first.", show_default=False),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Go on behind what cannot be read, and count it, instead of stopping.")
]
Json = Annotated[bool, typer.Option("--json", help="Write the result to stdout as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Leave out the table and the progress bar.")]


def evictor_of(budget: int, scorer: str = "auto", keep_recent: int = 5, encoding: str = "o200k_base") -> Evictor:
    """The evictor these options ask for."""
    chosen = scorer if scorer == "auto" else _named(scorer)
    return Evictor(budget, scorer=chosen, keep_recent=keep_recent, token_counter=encoding)


def with_scope(evictor: Evictor, scope: Literal["view", "history"]) -> Evictor:
    """The same evictor, its budget over another part of the history."""
    return replace(evictor, budget_scope=scope)


def view_of(evictor: Evictor, messages: list[dict[str, Any]]) -> tuple[View, Evictor]:
    """The best view, and what made it: where the current turn alone is over the budget, its finished steps compete."""
    view = evictor.view(messages)
    if not view.over_budget:
        return view, evictor
    # The same counter again, which remembers what it has counted.
    evictor = replace(evictor, whole_turn=False, token_counter=evictor.count)
    return evictor.view(messages), evictor


def scorer_of(evictor: Evictor, *, has_calls: bool) -> Scorer:
    """The scorer an evictor uses for histories with or without tool calls."""
    return evictor.scorer if isinstance(evictor.scorer, Scorer) else _bundled(has_calls)


def _named(name: str) -> Scorer:
    try:
        return Scorer.named(name)
    except OSError as error:
        raise InvalidScorer(f"{name}: {error.strerror}") from None


def _bundled(has_calls: bool) -> Scorer:
    return Scorer.from_pretrained("agent" if has_calls else "assistant")


def scores_by(name: str) -> Callable[[Sequence[ChatMessage]], NDArray[np.float64]]:
    """What a scorer gives the units of a history; `auto` chooses history by history. Nothing is counted in tokens."""
    named = None if name == "auto" else _named(name)

    def scores(history: Sequence[ChatMessage]) -> NDArray[np.float64]:
        has_calls = any(unit.kind == "step" for unit in group(history))
        return (named or _bundled(has_calls)).score(history)

    return scores


def choose(file: str, wanted: int | None) -> logs.History:
    """The history wanted, or the only one there is."""
    count = 0
    for count, history in enumerate(logs.read(file), 1):
        if count == wanted:
            return history
        if count == 1:
            only = history
    if wanted is not None:
        raise InvalidSetting(f"{file}: there is no history {wanted}; it holds {count}")
    if count > 1:
        raise InvalidSetting(f"{file}: holds {count} histories; choose one with --history 1 to --history {count}")
    return only
