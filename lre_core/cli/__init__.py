"""The `lre` command. Each of its commands is a file here; they need the `cli` extra, importing `main` does not."""

from __future__ import annotations

import sys

from lre_core.errors import MissingExtra

__all__ = ["main"]


def main() -> None:
    """Runs `lre` with the process's arguments and exits: 0, 2 for input it cannot use, 130 after Ctrl-C."""
    try:
        from lre_core.cli.app import app

        app()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.stderr.write(f"lre: {MissingExtra('the lre command', 'cli')}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
