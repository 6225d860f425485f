"""The code of every notebook runs, each as one program, and shows what it is there to show; nothing in it warns."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
every_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)


def cells(notebook: Path) -> list[dict[str, Any]]:
    text = notebook.read_text(encoding="utf-8")
    return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def run(notebook: Path) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for number, cell in enumerate(cells(notebook), 1):
        name = f"{notebook.name}, code cell {number}"
        code = compile("".join(cell["source"]), name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(code, names)
        if inspect.iscoroutine(running):
            asyncio.run(running)
    return names


def langchain(names: dict[str, Any], printed: str) -> None:
    """The chain forgets the booking before and knows it after."""
    assert "What is your booking code?" in printed
    assert "Changed under KX93J-7Q." in printed
    assert len(names["before"]) < len(names["chat"]) / 4


def langgraph(names: dict[str, Any], printed: str) -> None:
    """The agent is signed out before and goes on after a restart."""
    assert "I am not signed in. -" in printed
    assert printed.count("Done: svc-17 restarted. -") == 2
    assert "ai: req_bb56e0 failed." in printed
    prompts = [*names["first"].prompts, *names["second"].prompts]
    assert max(map(names["tokens"], prompts)) <= names["BUDGET"] < names["tokens"](names["after"]["messages"]) / 2


def llamaindex(names: dict[str, Any], printed: str) -> None:
    """The engine forgets the booking before and knows it after; the agent gets as far with prompts half as long."""
    assert "before: I do not know your booking.\nafter:  KX93J\n" in printed
    assert len(names["memory"].get()) < len(names["memory"].get_all()) == 84
    assert "before Booked. largest prompt" in printed
    assert "after  Booked. largest prompt" in printed
    assert max(names["sizes"]) <= 900
    assert len(names["sizes"]) == names["STEPS"] + 1


def train(names: dict[str, Any], printed: str) -> None:
    """A scorer learns from a folder of logs and is compared with what is simpler before it is believed."""
    assert "histories in 6 files: {'langchain'" in printed
    assert names["comparison"].verdict() in printed
    assert names["comparison"].auc["lre"].low > names["comparison"].auc["recency"].high
    at = dict(zip(names["budgets"], names["outcomes"], strict=True))[8_000]
    assert at["lre"].evidence[0] > at["recency"].evidence[0]
    assert at["lre"].cost < at["recency"].cost
    assert names["view"].tokens <= names["view"].budget


SHOWS: dict[str, Callable[[dict[str, Any], str], None]] = {
    "langchain": langchain,
    "langgraph": langgraph,
    "llamaindex": llamaindex,
    "train": train,
}


@every_notebook
def test_a_notebook_runs_and_shows_what_it_is_there_to_show(
    notebook: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(notebook.parent)
    monkeypatch.syspath_prepend("")  # what a notebook adds to the path is taken away again
    if notebook.stem == "train":
        monkeypatch.setattr("benchmarks.week.RUNS_A_DAY", 2)  # a third of its logs; all of them take a minute
    plt.switch_backend("template")
    with plt.rc_context():
        names = run(notebook)
    plt.close("all")
    SHOWS[notebook.stem](names, capsys.readouterr().out)


@every_notebook
def test_what_is_kept_of_a_run_is_complete_and_shows_no_warning(notebook: Path) -> None:
    executed = cells(notebook)
    assert [cell["execution_count"] for cell in executed] == list(range(1, len(executed) + 1))
    outputs = [(output["output_type"], output.get("name")) for cell in executed for output in cell["outputs"]]
    assert ("stream", "stdout") in outputs
    assert set(outputs) <= {("stream", "stdout"), ("display_data", None)}
