"""What the packages export, and what importing the core must not load."""

import ast
import dataclasses
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lre_core

PACKAGES = ["lre_core", "langchain_lre", "llamaindex_lre"]
HEAVY = ("sklearn", "scipy", "bm25s", "langchain", "langgraph", "llama_index", "rich", "typer", "tiktoken", "pydantic")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a module, within its `if` and `try` too, but not within its functions."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from statements(child)


def defined(package: str) -> set[str]:
    """Public names that the package's `__init__` defines or takes from its own modules."""
    source = Path(str(importlib.import_module(package).__file__)).read_text(encoding="utf-8")
    names = set()
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.level or str(node.module).split(".")[0] == package):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_complete_and_sorted(package: str) -> None:
    exported = importlib.import_module(package).__all__
    assert list(exported) == sorted(set(exported))
    assert set(exported) == defined(package)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_is_there_and_documented(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__doc__
    for name in module.__all__:
        assert getattr(module, name).__doc__ or name == "ChatMessage", name


@pytest.mark.parametrize("package", PACKAGES)
def test_types_are_shipped(package: str) -> None:
    assert Path(str(importlib.import_module(package).__file__)).with_name("py.typed").is_file()


def modules_after(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after a statement."""
    script = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in json.loads(finished.stdout)}


def test_importing_the_core_loads_no_framework_no_trainer_and_no_terminal() -> None:
    loaded = modules_after("import lre_core")
    assert "lre_core" in loaded
    assert [name for name in sorted(loaded) if name.startswith(HEAVY)] == []


def test_evicting_loads_no_framework_and_no_trainer() -> None:
    history = "[{'role': 'user', 'content': 'hello'}] * 9"
    loaded = modules_after(f"import lre_core; lre_core.evict({history}, 10, token_counter=len).scores")
    assert [name for name in sorted(loaded) if name.startswith(HEAVY)] == []


def test_settings_name_every_setting_of_an_evictor() -> None:
    settings = {field.name for field in dataclasses.fields(lre_core.Evictor) if field.init} - {"budget"}
    assert settings == set(lre_core.Settings.__annotations__)
