"""The floors that pyproject.toml promises are those that `make test-oldest` installs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent
ADAPTERS = ("langchain", "langchain-classic", "llamaindex")
PINS = [
    Requirement(line)
    for line in (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def floors(*extras: str) -> dict[str, str]:
    """The floor of each requirement without an extra, and of those of these extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    found: dict[str, str] = {}
    for requirement in map(Requirement, listed):
        if requirement.name != project["name"]:
            (bound,) = requirement.specifier
            assert bound.operator == ">=", requirement
            assert found.setdefault(requirement.name, bound.version) == bound.version, requirement
    return found


def test_what_the_adapters_need_is_tested_at_its_floor() -> None:
    assert floors(*ADAPTERS).keys() <= {pin.name for pin in PINS}


def test_what_is_pinned_is_a_floor() -> None:
    """A floor of two numbers, 1.26 say, is tested with any third one."""
    promised = floors(*ADAPTERS, "dev")
    for pin in PINS:
        (bound,) = pin.specifier
        floor = Version(promised[pin.name]).release
        assert bound.operator == "=="
        assert Version(bound.version).release[: len(floor)] == floor, pin


def test_the_readme_states_the_floors_of_the_frameworks() -> None:
    paragraphs = (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n")
    (stated,) = [paragraph for paragraph in paragraphs if "make test-oldest" in paragraph]
    promised = floors(*ADAPTERS)
    for name in ("langchain", "langchain-core", "langchain-classic", "langgraph", "llama-index-core"):
        assert re.search(rf"\b{name} (and \S+ )?from {re.escape(promised[name])}\b(?!\.\d)", stated), name
