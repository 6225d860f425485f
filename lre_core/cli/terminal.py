"""What people see while a command works: tables and progress on stderr; results for machines go to stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from lre_core.logs import Histories, History

__all__ = ["console", "counted", "plural", "printable", "reading", "tell_reading", "waiting", "write_json"]

WIDTH_OF_A_FILE = 120
Item = TypeVar("Item")


def console(width_of_a_file: int = WIDTH_OF_A_FILE) -> Console:
    """For stderr; plain where that is no terminal or NO_COLOR is set. Nothing in a log can colour or move it."""
    width = None if sys.stderr.isatty() else width_of_a_file
    return Console(stderr=True, width=width, markup=False, highlight=False, emoji=False)


def reading(histories: Histories, quiet: bool) -> Iterator[History]:
    """The histories, with a bar of the bytes read."""
    with _progress(quiet, TimeRemainingColumn(compact=True)) as progress:
        task = progress.add_task("reading", total=histories.size)
        for history in histories:
            progress.update(task, completed=histories.position, description=f"reading, {histories.count:,} histories")
            yield history


def counted(items: Iterable[Item], total: int, what: str, quiet: bool) -> Iterator[Item]:
    """The items, with a bar of how many are done."""
    with _progress(quiet, TimeRemainingColumn(compact=True)) as progress:
        task = progress.add_task(what, total=total)
        for item in items:
            yield item
            progress.advance(task)


@contextmanager
def waiting(what: str, quiet: bool) -> Iterator[None]:
    """A bar for work that does not say how far it is."""
    with _progress(quiet, TimeElapsedColumn()) as progress:
        progress.add_task(what, total=None)
        yield


def tell_reading(histories: Histories) -> None:
    """What was read, in which formats, and what was skipped and why."""
    formats = ", ".join(f"{format} {count:,}" for format, count in sorted(histories.formats.items()))
    files = len(histories.sources)
    screen = console()
    screen.print(
        f"Read {histories.count:,} {plural('history', 'histories', histories.count)} ({formats or 'none'}) "
        f"from {files:,} {plural('file', 'files', files)}.",
        soft_wrap=True,
    )
    if histories.skipped:
        screen.print(f"Skipped {histories.skipped:,} that could not be read:", soft_wrap=True)
        for problem in histories.problems:
            screen.print(f"  {printable(problem)}", soft_wrap=True)
        if histories.skipped > len(histories.problems):
            screen.print(f"  and {histories.skipped - len(histories.problems):,} more")


def write_json(result: Any) -> None:
    """One JSON document on stdout, UTF-8."""
    text = json.dumps(result, ensure_ascii=False, indent=2) + "\n"
    typer.echo(text.encode("utf-8", "backslashreplace"), nl=False)


def printable(text: str) -> str:
    """The text in one line, without anything that could move the cursor or colour the terminal."""
    return "".join(character if character.isprintable() else "?" for character in " ".join(text.split()))


def plural(one: str, many: str, count: int) -> str:
    """The word for so many."""
    return one if count == 1 else many


def _progress(quiet: bool, *last: Any) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), *last)
    return Progress(*columns, console=console(), transient=True, disable=quiet or not sys.stderr.isatty())
