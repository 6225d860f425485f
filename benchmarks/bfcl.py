"""Executed agent runs of the Berkeley function-calling benchmark, as chat histories.

    pip install --no-deps bfcl-eval==2026.3.23 mpmath
    python -m benchmarks.bfcl --out base.jsonl.gz
    python -m benchmarks.bfcl --out long.jsonl.gz --variant long-context

The benchmark (PyPI `bfcl-eval`, made with version 2026.3.23, Apache-2.0, Patil et al., UC Berkeley) has 200
multi-turn tasks over eight services: file system, travel, trading, vehicle, messages, posts, tickets and arithmetic.
Each task carries a starting state, what the user says turn by turn, and the calls that a right answer makes. This
module makes those calls on the benchmark's own in-process backends and writes down what they answer. The
long-context variant is the same tasks with services that answer at length. Nothing of the benchmark's text is kept
in this repository; `--no-deps` because it pins packages, an old numpy among them, that its backends never import.

A history is `{"id", "source", "task", "classes", "messages"}`. `task` is the same in both variants, so that folds by
task stay apart when the two are mixed. There is no system message and no assistant text: the benchmark has neither.
"""

import ast
import gzip
import inspect
import io
import json
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from importlib import import_module, metadata, resources
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import track

MISSING = "the benchmark is not installed: pip install --no-deps bfcl-eval==2026.3.23 mpmath"

app = typer.Typer(add_completion=False)


class Variant(StrEnum):
    """The two sets of multi-turn tasks whose calls can all be made."""

    BASE = "base"
    LONG_CONTEXT = "long-context"


class Call(NamedTuple):
    """A parsed call: the function's name, its positional and its keyword arguments."""

    name: str
    args: list[Any]
    kwargs: dict[str, Any]


class Task(NamedTuple):
    """A task: its scenario (questions, services, starting state) and the calls to make, one list a turn."""

    scenario: dict[str, Any]
    calls: list[list[str]]


def parse_call(source: str) -> Call:
    """Parse one call as the benchmark writes it, such as `cd(folder='document')`, without evaluating it.

    Args:
        source: a Python call of a plain name with literal arguments.

    Raises:
        ValueError: `source` is anything else: another expression, a nested call, unpacking, or not Python.
    """
    try:
        call = ast.parse(source.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("not the call of a plain name")
        args = [ast.literal_eval(value) for value in call.args]
        kwargs = {}
        for keyword in call.keywords:
            if keyword.arg is None:
                raise ValueError("** unpacks a mapping")
            kwargs[keyword.arg] = ast.literal_eval(keyword.value)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"expected a call with literal arguments, found {source!r}: {error}") from error
    return Call(call.func.id, args, kwargs)


def named_arguments(call: Call, function: Callable[..., object]) -> dict[str, Any]:
    """Give every argument of `call` the name of the parameter of `function` that takes it, in the order declared.

    Raises:
        TypeError: `function` does not take these arguments.
    """
    return dict(inspect.signature(function).bind(*call.args, **call.kwargs).arguments)


def histories(variant: str = "base") -> list[dict[str, Any]]:
    """Make the calls of every task and return the runs as chat histories, in the order of the tasks.

    Args:
        variant: "base", or "long-context" for services that answer at length.

    Returns:
        200 histories; two calls return equal ones.

    Raises:
        ModuleNotFoundError: bfcl-eval or mpmath is not installed; the message says how to install them.
        ValueError: there is no such variant.
    """
    if variant not in list(Variant):
        known = ", ".join(f"'{name}'" for name in Variant)
        raise ValueError(f"unknown variant {variant!r}; there are {known}")
    chosen = Variant(variant)
    return [_history(task, chosen) for task in _tasks(chosen)]


def compressed(rows: Iterable[Mapping[str, object]]) -> bytes:
    """Return `rows` as gzipped JSON lines: equal rows give equal bytes, wherever and whenever they are written."""
    buffer = io.BytesIO()
    # A gzip header holds a file's name and time unless told otherwise.
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return buffer.getvalue()


def _tasks(variant: Variant) -> list[Task]:
    """Read the tasks from the installed package, sorted by number."""
    try:
        import_module("mpmath")  # the arithmetic backend's only dependency: better missed here than at task 100
        folder = resources.files("bfcl_eval") / "data"
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(MISSING) from error
    name = f"BFCL_v4_multi_turn_{variant.replace('-', '_')}.json"
    rows = []
    for path in (folder / name, folder / "possible_answer" / name):
        with path.open(encoding="utf-8") as lines:
            rows.append({row["id"]: row for row in map(json.loads, lines)})
    scenarios, answers = rows
    return [Task(scenarios[key], answers[key]["ground_truth"]) for key in sorted(scenarios, key=_number)]


def _number(scenario_id: str) -> int:
    return int(scenario_id.rpartition("_")[2])


def _tools(scenario: Mapping[str, Any], variant: Variant) -> dict[str, Callable[..., object]]:
    """Start the task's services in its starting state; return their functions by name."""
    config = import_module("bfcl_eval.constants.executable_backend_config")
    tools: dict[str, Callable[..., object]] = {}
    for name in scenario["involved_classes"]:
        backend = getattr(import_module(config.CLASS_FILE_PATH_MAPPING[name]), name)()
        if name not in config.STATELESS_CLASSES:
            state = scenario["initial_config"].get(name, {})
            backend._load_scenario(state, long_context=variant is Variant.LONG_CONTEXT)
        methods = inspect.getmembers(backend, inspect.ismethod)
        tools |= {tool: method for tool, method in methods if not tool.startswith("_")}
    return tools


def _history(task: Task, variant: Variant) -> dict[str, Any]:
    """Run one task from its starting state: each turn's user message, then its calls with their results."""
    scenario, calls = task
    tools = _tools(scenario, variant)
    messages: list[dict[str, Any]] = []
    made = 0
    for question, sources in zip(scenario["question"], calls, strict=True):
        messages += question
        for source in sources:
            made += 1
            messages += _step(parse_call(source), tools, f"call_{made}")
    return {
        "id": scenario["id"],
        "source": f"bfcl-eval {metadata.version('bfcl-eval')}",
        "task": f"bfcl-{_number(scenario['id'])}",
        "classes": scenario["involved_classes"],
        "messages": messages,
    }


def _step(call: Call, tools: Mapping[str, Callable[..., object]], call_id: str) -> list[dict[str, Any]]:
    """Make one call; return the assistant message that asks for it and the tool message that answers."""
    arguments = named_arguments(call, tools[call.name])
    function = {"name": call.name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    # mpmath's numbers, and an Ellipsis that one long watch list ends in, have no JSON: they become their text.
    result = json.dumps(tools[call.name](**arguments), ensure_ascii=False, default=str)
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call_id, "name": call.name, "content": result},
    ]


@app.command()
def main(
    out: Annotated[Path, typer.Option(help="Where to write the histories: gzipped JSON lines.", dir_okay=False)],
    variant: Annotated[Variant, typer.Option(help="Services that answer briefly, or at length.")] = Variant.BASE,
) -> None:
    """Make the calls of 200 agent tasks on the benchmark's own backends and write the runs as chat histories."""
    console = Console(stderr=True)
    try:
        tasks = _tasks(variant)
        watched = track(tasks, "Running tasks", console=console, transient=True, disable=not console.is_terminal)
        rows = [_history(task, variant) for task in watched]
        out.write_bytes(compressed(rows))
    except (ModuleNotFoundError, OSError) as error:
        console.print(f"bfcl: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2) from error
    messages = sum(len(row["messages"]) for row in rows)
    console.print(f"{out}: {len(rows)} histories, {messages:,} messages", markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    app()
