"""The LangChain notebook's code runs as one program; its last check is that the booking code is in the prompt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "langchain.ipynb"


def test_the_chain_forgets_the_booking_before_and_knows_it_after(capsys: pytest.CaptureFixture[str]) -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for number, source in enumerate(code, 1):
        exec(compile(source, f"langchain.ipynb, code cell {number}", "exec"), names)
    printed = capsys.readouterr().out
    assert "What is your booking code?" in printed
    assert "Changed under KX93J-7Q." in printed
    assert len(names["before"]) < len(names["chat"]) / 4
