"""Runs what the READMEs' console blocks show, and writes what really comes out into them.

    python -m benchmarks.transcript

A line that begins with `$ ` is a command; what follows it, up to the next, is its output. All commands run one after
the other in one empty folder. A block that stands in several files, as in a translation, runs once.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)

app = typer.Typer(add_completion=False)


def main(
    files: Annotated[list[Path] | None, typer.Argument(help="Markdown files; by default both READMEs.")] = None,
) -> None:
    """Renew the outputs in the console blocks of Markdown files."""
    ran: dict[tuple[str, ...], str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in files or [ROOT / "README.md", ROOT / "README.ja.md"]:
            text = BLOCK.sub(lambda block: f"```console\n{_run(block[1], folder, ran)}```", file.read_text("utf-8"))
            file.write_text(text, encoding="utf-8")


def _run(block: str, folder: Path, ran: dict[tuple[str, ...], str]) -> str:
    """The block with the outputs its commands have in this folder, or had before."""
    commands = tuple(re.findall(r"^\$ (.*)$", block, re.MULTILINE))
    if commands not in ran:
        ran[commands] = "".join(_shown(command, folder) for command in commands)
    return ran[commands]


def _shown(command: str, folder: Path) -> str:
    """A command with its output."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    typer.echo(f"$ {command}", err=True)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    output = "\n".join(line.rstrip() for line in done.stdout.replace(f"{folder}{os.sep}", "").splitlines())
    return f"$ {command}\n{output}\n" if output else f"$ {command}\n"


app.command()(main)

if __name__ == "__main__":
    app()
