"""The code of the LangChain notebooks runs, each as one program, and its checks hold; nothing in it warns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"


def cells(notebook: str) -> list[dict[str, Any]]:
    text = (NOTEBOOKS / notebook).read_text(encoding="utf-8")
    return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def run(notebook: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for number, cell in enumerate(cells(notebook), 1):
        exec(compile("".join(cell["source"]), f"{notebook}, code cell {number}", "exec"), names)
    return names


def test_the_chain_forgets_the_booking_before_and_knows_it_after(capsys: pytest.CaptureFixture[str]) -> None:
    names = run("langchain.ipynb")
    printed = capsys.readouterr().out
    assert "What is your booking code?" in printed
    assert "Changed under KX93J-7Q." in printed
    assert len(names["before"]) < len(names["chat"]) / 4


def test_the_agent_is_signed_out_before_and_goes_on_after_a_restart(capsys: pytest.CaptureFixture[str]) -> None:
    names = run("langgraph.ipynb")
    printed = capsys.readouterr().out
    assert "I am not signed in. -" in printed
    assert printed.count("Done: svc-17 restarted. -") == 2
    assert "ai: req_bb56e0 failed." in printed
    prompts = [*names["first"].prompts, *names["second"].prompts]
    assert max(map(names["tokens"], prompts)) <= names["BUDGET"] < names["tokens"](names["after"]["messages"]) / 2


@pytest.mark.parametrize("notebook", ["langchain.ipynb", "langgraph.ipynb"])
def test_what_is_kept_of_a_run_is_complete_and_shows_no_warning(notebook: str) -> None:
    executed = cells(notebook)
    assert [cell["execution_count"] for cell in executed] == list(range(1, len(executed) + 1))
    outputs = [output for cell in executed for output in cell["outputs"]]
    assert outputs
    assert {(output["output_type"], output.get("name")) for output in outputs} == {("stream", "stdout")}
