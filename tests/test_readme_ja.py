"""README.ja.md says what README.md says: its blocks, its names and its links are the same."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READMES = ["README.md", "README.ja.md"]
ENGLISH, JAPANESE = ((ROOT / name).read_text("utf-8") for name in READMES)
BLOCK = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def prose(text: str) -> str:
    return BLOCK.sub("", text)


def anchors(text: str) -> set[str]:
    """The links GitHub makes of a text's headings."""
    headings = re.findall(r"^#+ (.*)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_blocks_are_the_same_one_by_one() -> None:
    for english, japanese in zip(BLOCK.findall(ENGLISH), BLOCK.findall(JAPANESE), strict=True):
        assert japanese == english


def test_every_name_and_setting_is_in_both() -> None:
    code = re.compile(r"`([^`]+)`")
    assert set(code.findall(prose(JAPANESE))) == set(code.findall(prose(ENGLISH)))


def test_sections_tables_and_links_correspond() -> None:
    for part in (r"^(#+) ", r"^\|", r"^(?:- |\d\. )", r"\]\(([^#)][^)]*)\)"):
        english, japanese = (re.findall(part, prose(text), re.MULTILINE) for text in (ENGLISH, JAPANESE))
        swapped = [{"README.ja.md": "README.md"}.get(found, found) for found in english]
        assert Counter(japanese) == Counter(swapped), part


@pytest.mark.parametrize("name", READMES)
def test_every_link_leads_somewhere(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", prose(text)):
        path, _, anchor = target.partition("#")
        assert not path or (ROOT / path).is_file(), target
        assert not anchor or anchor in anchors(text), target
