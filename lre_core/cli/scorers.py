"""`lre scorers`: the scorers that come with the package."""

from __future__ import annotations

from importlib import resources

import typer

from lre_core.scorer import bundled_scorers

__all__ = ["scorers"]


def scorers() -> None:
    """List the bundled scorers and the size of their weights.

    Example: lre scorers
    """
    for name in bundled_scorers():
        size = len(resources.files("lre_core.scorers").joinpath(f"{name}.json").read_bytes())
        typer.echo(f"{name:12} {size:6,} bytes")
