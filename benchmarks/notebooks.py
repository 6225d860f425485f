"""Executes the notebooks and keeps their outputs: an error in a cell is an error here.

python -m benchmarks.notebooks
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import nbformat
import typer
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"

app = typer.Typer(add_completion=False)


def main(
    paths: Annotated[list[Path] | None, typer.Argument(help="Notebooks; by default all there are.")] = None,
) -> None:
    """Execute notebooks in place."""
    for path in paths or sorted(FOLDER.glob("*.ipynb")):
        typer.echo(path.name, err=True)
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": str(path.parent)}}).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # when each cell ran: a change on every run that says nothing
        nbformat.write(notebook, path)


app.command()(main)

if __name__ == "__main__":
    app()
