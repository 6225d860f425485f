"""The commands put together, and how they fail: in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated

import typer

from lre_core.cli.evaluate import evaluate
from lre_core.cli.evict import evict
from lre_core.cli.explain import explain
from lre_core.cli.report import report
from lre_core.cli.scorers import scorers
from lre_core.cli.simulate import simulate
from lre_core.cli.train import train
from lre_core.errors import InvalidSetting, LREError, MissingExtra, UnknownScorer

__all__ = ["app"]

app = typer.Typer(name="lre", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """What this package raises on purpose becomes one line on stderr; Ctrl-C is quiet.

    Exit codes: 2 where the command was asked for something there is not, as typer does; 1 where its input or output
    fails it.
    """
    try:
        yield
    except (InvalidSetting, MissingExtra, UnknownScorer) as error:
        typer.echo(f"lre: {error}", err=True)
        raise typer.Exit(2) from None
    except LREError as error:
        typer.echo(f"lre: {error}", err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        typer.echo(f"lre: {error.filename or ''}: {error.strerror}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


for command in (train, evaluate, simulate, evict, explain, report, scorers):
    name = "eval" if command is evaluate else command.__name__
    app.command(name)(one_line_errors()(command))


def show_version(wanted: bool) -> None:
    """Prints the version and ends."""
    if wanted:
        typer.echo(f"lre {version('lre-memory')}")
        raise typer.Exit


@app.callback()
def lre(
    _version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Learned relevance eviction: keep what a chat or an agent still needs, verbatim, under a token budget.

    Example: lre evict run.jsonl --budget 2048 > view.jsonl
    """
