"""The README's pictures: the demo's page and a report, as Chromium shows them.

python -m benchmarks.pictures
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import week
from benchmarks.browser import CHROMIUM, MISSING, Page, browser
from benchmarks.demo import page
from benchmarks.demo.policies import POLICIES
from benchmarks.demo.run import play
from lre_core.cli.app import app as lre

DEMO_BUDGET, REPORT_BUDGET = 8000, 1024
BELOW = 24
"""Pixels shown below the last thing on a page."""

app = typer.Typer(add_completion=False)


def main(out: Annotated[Path, typer.Option(help="The folder the pictures go to.")] = Path("results")) -> None:
    """Draw the pictures."""
    if CHROMIUM is None:
        typer.echo(MISSING, err=True)
        raise typer.Exit(2)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, browser() as tab:
        folder = Path(name)
        _demo(tab, folder / "demo.html", out / "demo.png")
        _report(tab, folder, out / "report.png")


def _demo(tab: Page, drawn: Path, picture: Path) -> None:
    drawn.write_text(page.render([play(policy, DEMO_BUDGET, 0) for policy in POLICIES], DEMO_BUDGET), "utf-8")
    tab.open(drawn, width=1280)
    end = tab.evaluate("[...document.querySelectorAll('main > *')].at(-2).getBoundingClientRect().bottom")
    tab.screenshot(picture, height=round(end) + BELOW)


def _report(tab: Page, folder: Path, picture: Path) -> None:
    """The first run of the week's Sunday, with a scorer trained on the other days, one row pointed at."""
    week.write(folder / "logs")
    sunday = (folder / "logs" / "sunday.jsonl").rename(folder / "sunday.jsonl")
    scorer, drawn = folder / "scorer.json", folder / "page.html"
    lre(["train", str(folder / "logs"), "-o", str(scorer), "--quiet"], standalone_mode=False)
    under = ["--budget", str(REPORT_BUDGET), "--scorer", str(scorer)]
    lre(["report", str(sunday), "--history", "1", *under, "-o", str(drawn), "--quiet"], standalone_mode=False)
    tab.open(drawn, width=1100, height=1020)
    tab.point("[data-unit='2'] .step")
    tab.evaluate("document.querySelector('h2').scrollIntoView()")
    tab.screenshot(picture)


app.command()(main)

if __name__ == "__main__":
    app()
