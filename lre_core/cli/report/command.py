"""The command `lre report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lre_core import labels
from lre_core.cli.options import Budget, Encoding, File, KeepRecent, Quiet, ScorerName, Which, choose, evictor_of
from lre_core.cli.report.page import render
from lre_core.cli.terminal import console, waiting
from lre_core.errors import InvalidSetting
from lre_core.evaluation import Replay

__all__ = ["report"]


def report(
    file: File,
    budget: Budget,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The page to write.", dir_okay=False, show_default=True)
    ] = Path("report.html"),
    keep_recent: KeepRecent = 5,
    scorer: ScorerName = "auto",
    encoding: Encoding = "o200k_base",
    history: Which = None,
    quiet: Quiet = False,
) -> None:
    """Draw a history under a budget as one HTML page: what was in view at which call of the model, and why.

    The page loads nothing and can be mailed. It holds excerpts of the messages: who may read the log may read the page.

    Example: lre report run.jsonl --budget 2048 -o page.html
    """
    if not out.parent.is_dir():
        raise InvalidSetting(f"{out}: there is no folder {out.parent}")
    evictor = replace(evictor_of(budget, scorer, keep_recent, encoding), whole_turn=False)
    log = choose(file, history)
    with waiting("replaying", quiet):
        replay = Replay(log.messages, evictor)
        page = render(log, replay, replay.moments(labels.from_log(log.messages)), evictor, scorer)
    out.write_text(page, encoding="utf-8", errors="backslashreplace")
    if not quiet:
        console().print(f"Wrote {out} ({out.stat().st_size:,} bytes).", soft_wrap=True)
