"""`lre evict`: the messages of a log worth sending under a budget."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

import typer

from lre_core import logs
from lre_core.cli.summary import print_summary
from lre_core.errors import InvalidScorer, InvalidSetting
from lre_core.eviction import Evictor

__all__ = ["evict"]


class Scope(StrEnum):
    """What the budget covers."""

    VIEW = "view"
    HISTORY = "history"


def evict(
    file: Annotated[
        str, typer.Argument(help="A chat log: JSON or JSONL, plain or .gz; - reads standard input.", show_default=False)
    ],
    budget: Annotated[int, typer.Option(help="Tokens the kept messages may take.", show_default=False)],
    keep_recent: Annotated[int, typer.Option(help="Keep the last so many units without asking the scorer.")] = 5,
    scorer: Annotated[str, typer.Option(help="auto, a bundled scorer (see lre scorers), or a scorer's file.")] = "auto",
    encoding: Annotated[str, typer.Option(help="The tiktoken encoding that counts the tokens.")] = "o200k_base",
    scope: Annotated[
        Scope, typer.Option(help="What the budget covers: the whole view, or only what is older than the recent units.")
    ] = Scope.VIEW,
    history: Annotated[
        int | None, typer.Option(help="Which history of a file that holds several; 1 is the first.", show_default=False)
    ] = None,
    as_json: Annotated[
        bool | None,
        typer.Option(
            "--json/--jsonl", help="Write an array, or a message a line; by default as the file.", show_default=False
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Leave the summary out.")] = False,
) -> None:
    """Write the messages worth keeping under a token budget to stdout, and a summary of who left and why to stderr.

    The messages come out as they went in, in their order. A tool call and its results stay or leave together; system
    messages and the current turn stay. If the current turn alone is over the budget, its finished steps compete too.

    Example: lre evict run.jsonl --budget 2048 > view.jsonl
    """
    evictor = _evictor(budget, scorer, keep_recent, scope, encoding)
    log = _choose(file, history)
    view = evictor.view(log.messages)
    if view.over_budget:
        # The same counter again, which remembers what it has counted.
        evictor = replace(evictor, whole_turn=False, token_counter=evictor.count)
        view = evictor.view(log.messages)

    array = log.container == "json" if as_json is None else as_json
    typer.echo(_encoded(view.messages, array), nl=False)
    if not quiet:
        print_summary(view, log.messages, evictor, scorer)
    if view.over_budget:
        typer.echo(
            f"lre: over the budget of {budget:,}: what must stay takes {view.tokens:,} tokens by itself", err=True
        )


def _evictor(budget: int, scorer: str, keep_recent: int, scope: Scope, encoding: str) -> Evictor:
    try:
        return Evictor(
            budget,
            scorer=scorer,
            keep_recent=keep_recent,
            budget_scope="history" if scope is Scope.HISTORY else "view",
            token_counter=encoding,
        )
    except OSError as error:
        raise InvalidScorer(f"{scorer}: {error.strerror}") from None


def _choose(file: str, wanted: int | None) -> logs.History:
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


def _encoded(messages: Sequence[dict[str, Any]], array: bool) -> bytes:
    """UTF-8. Half a surrogate pair, which JSON can hold and UTF-8 cannot, comes out as the escape it came in as."""
    lines = [json.dumps(message, ensure_ascii=False) for message in messages]
    text = "[\n" + ",\n".join(lines) + "\n]\n" if array else "\n".join(lines) + "\n"
    return text.encode("utf-8", "backslashreplace")
