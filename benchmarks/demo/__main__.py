"""The command line of the demo: `python -m benchmarks.demo --help`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from rich.console import Console

from benchmarks.demo import page, terminal
from benchmarks.demo.policies import POLICIES
from benchmarks.demo.run import Run, play

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Unusable(Exception):
    """The chat model that was asked for cannot be used here."""


@app.command()
def main(
    budget: Annotated[int, typer.Option(min=1, help="Tokens a prompt may take, tool definitions included.")] = 8000,
    seed: Annotated[int, typer.Option(help="Decides the household and the errands.")] = 0,
    out: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("demo.html"),
    model: Annotated[
        str | None, typer.Option(metavar="PROVIDER:NAME", help="A real chat model, such as openai:gpt-5.5.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="No live bars.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON on stdout.")] = False,
) -> None:
    """One agent does the same errands three times: with everything in view, by recency, and with LRE."""
    console = Console(stderr=as_json, highlight=False)
    if not out.parent.is_dir():
        _stop(f"--out {out}: there is no folder {out.parent}")
    try:
        chat_model = None if model is None else _chat_model(model)
        runs = _play_all(console, budget, seed, chat_model, live=not plain and console.is_terminal)
    except Unusable as error:
        _stop(f"--model {model}: {error}")
    out.write_text(page.render(runs, budget), encoding="utf-8")
    console.print(terminal.table(runs, budget))
    console.print(f"What was in view at every call: {out.resolve()}", soft_wrap=True)
    if as_json:
        Console(soft_wrap=True).print_json(json.dumps([terminal.row(played) for played in runs]))


def _play_all(console: Console, budget: int, seed: int, model: BaseChatModel | None, live: bool) -> list[Run]:
    runs = []
    with terminal.bars(console, POLICIES, budget, live) as reporter:
        for policy in POLICIES:
            try:
                played = play(policy, budget, seed, model, reporter(policy))
            except Exception as error:
                if model is None:
                    raise
                # Every provider has its own errors for a missing key, a wrong name, a refused request.
                raise Unusable(_first_line(error)) from error
            runs.append(played)
            if not live:
                console.print(f"{policy}: {played.errands_done} of {played.errands} errands, {played.steps} steps")
    return runs


def _chat_model(name: str) -> BaseChatModel:
    try:
        return init_chat_model(name)
    except Exception as error:
        raise Unusable(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0]


def _stop(message: str) -> None:
    Console(stderr=True, highlight=False).print(message, markup=False, soft_wrap=True)
    raise typer.Exit(2)


if __name__ == "__main__":
    app()
