"""The README's Python blocks run, in order, as one program would, and it names nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import langchain_lre
import llamaindex_lre
import lre_core

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


def test_every_name_of_ours_is_there() -> None:
    packages = [lre_core, langchain_lre, llamaindex_lre]
    modules = {package.__name__ for package in packages}
    text = README.read_text(encoding="utf-8")
    names = set(re.findall(r"\b(?:LRE[A-Z]\w+|lre_\w+)\b", text)) - modules
    names |= set(re.findall(r"\blre_core\.(\w+)", text))
    assert len(names) > 12
    assert [name for name in sorted(names) if not any(hasattr(package, name) for package in packages)] == []
