"""`lre evict`: the messages of a log worth sending under a budget."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from lre_core.cli.options import (
    Budget,
    Encoding,
    File,
    KeepRecent,
    ScorerName,
    Which,
    choose,
    evictor_of,
    view_of,
    with_scope,
)
from lre_core.cli.summary import print_summary

__all__ = ["evict"]


class Scope(StrEnum):
    """What the budget covers."""

    VIEW = "view"
    HISTORY = "history"


def evict(
    file: File,
    budget: Budget,
    keep_recent: KeepRecent = 5,
    scorer: ScorerName = "auto",
    encoding: Encoding = "o200k_base",
    scope: Annotated[
        Scope, typer.Option(help="What the budget covers: the whole view, or only what is older than the recent units.")
    ] = Scope.VIEW,
    history: Which = None,
    as_json: Annotated[
        bool | None,
        typer.Option(
            "--json/--jsonl", help="Write an array, or a message a line; by default as the file.", show_default=False
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Leave the summary out.")] = False,
) -> None:
    """Write the messages worth keeping under a token budget to stdout, and a summary of who left and why to stderr.

    The messages come out as they went in, in their order; those of LangChain, LlamaIndex and ATIF as OpenAI chat
    messages. A tool call and its results stay or leave together; system messages and the current turn stay. If the
    current turn alone is over the budget, its finished steps compete too.

    Example: lre evict run.jsonl --budget 2048 > view.jsonl
    """
    evictor = evictor_of(budget, scorer, keep_recent, encoding)
    log = choose(file, history)
    view, evictor = view_of(with_scope(evictor, "history" if scope is Scope.HISTORY else "view"), log.messages)

    array = log.container == "json" if as_json is None else as_json
    typer.echo(_encoded(view.messages, array), nl=False)
    if not quiet:
        print_summary(view, log.messages, evictor, scorer)
    if view.over_budget:
        typer.echo(
            f"lre: over the budget of {budget:,}: what must stay takes {view.tokens:,} tokens by itself", err=True
        )


def _encoded(messages: Sequence[dict[str, Any]], array: bool) -> bytes:
    """UTF-8. Half a surrogate pair, which JSON can hold and UTF-8 cannot, comes out as the escape it came in as."""
    lines = [json.dumps(message, ensure_ascii=False) for message in messages]
    text = "[\n" + ",\n".join(lines) + "\n]\n" if array else "\n".join(lines) + "\n"
    return text.encode("utf-8", "backslashreplace")
