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

BUDGET = 8000
MARGIN = 12
"""Pixels shown above and below."""

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
    drawn.write_text(page.render([play(policy, BUDGET, 0) for policy in POLICIES], BUDGET), "utf-8")
    tab.open(drawn, width=1280)
    top = tab.evaluate("document.querySelector('.legend').getBoundingClientRect().top")
    bottom = tab.evaluate("document.querySelector('.runs').getBoundingClientRect().bottom")
    tab.screenshot(picture, between=(top - MARGIN, bottom + MARGIN))


def _report(tab: Page, folder: Path, picture: Path) -> None:
    """The first run of the week's Sunday, with a scorer trained on the other days, one row pointed at."""
    week.write(folder / "logs")
    sunday = (folder / "logs" / "sunday.jsonl").rename(folder / "sunday.jsonl")
    scorer, drawn = folder / "scorer.json", folder / "page.html"
    lre(["train", str(folder / "logs"), "-o", str(scorer), "--quiet"], standalone_mode=False)
    under = ["--budget", str(BUDGET), "--scorer", str(scorer)]
    lre(["report", str(sunday), "--history", "1", *under, "-o", str(drawn), "--quiet"], standalone_mode=False)
    tab.open(drawn, width=1100, height=1020)
    tab.point("[data-unit='1'] .step")
    tab.evaluate("document.querySelector('h2').scrollIntoView()")
    tab.screenshot(picture)


app.command()(main)

if __name__ == "__main__":
    app()
