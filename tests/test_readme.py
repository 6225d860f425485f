"""The README's Python blocks run, in order, as one program would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


# A workflow of LlamaIndex looks at every attribute of its agents, at those that pydantic deprecates too.
@pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20", "ignore::pydantic.PydanticDeprecatedSince211")
def test_the_code_blocks_run(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(README.read_text(encoding="utf-8"))
    assert len(blocks) >= 3
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"README.md, block {number}", "exec"), names)
