"""Runs what the README's console blocks show, and writes what really comes out into them.

    python -m benchmarks.transcript

A line that begins with `$ ` is a command; what follows it, up to the next, is its output. All commands of a file run
one after the other in one empty folder.
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


def main(file: Annotated[Path, typer.Argument(help="The Markdown file to renew.")] = ROOT / "README.md") -> None:
    """Renew the outputs in a Markdown file's console blocks."""
    with tempfile.TemporaryDirectory() as folder:
        text = BLOCK.sub(lambda block: f"```console\n{_run(block[1], Path(folder))}```", file.read_text("utf-8"))
    file.write_text(text, encoding="utf-8")


def _run(block: str, folder: Path) -> str:
    """The block with the outputs its commands have in this folder."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    shown = []
    for command in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
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
        output = "\n".join(line.rstrip() for line in done.stdout.splitlines())
        shown.append(f"$ {command}\n{output}\n" if output else f"$ {command}\n")
    return "".join(shown)


app.command()(main)

if __name__ == "__main__":
    app()
