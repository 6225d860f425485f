"""The page: one self-contained HTML file that draws which part of the history was in view at which model call."""

import json
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from benchmarks.demo.run import Run

TEMPLATE = Path(__file__).with_name("page.html")
EXCERPT = 260
"""Characters of a unit's text that the page shows."""

FIGURES: dict[str, Callable[[Run], str]] = {
    "finished": lambda run: "yes" if run.finished else f"no, {run.errands_done}/{run.errands}",
    "model calls": lambda run: f"{run.steps}",
    "sign-ins": lambda run: f"{len(run.sign_ins)}",
    "calls made before": lambda run: f"{len(run.repeats)}",
    "peak tokens": lambda run: f"{run.peak_tokens:,}",
    "prompt cost*": lambda run: f"{run.prompt_cost:,}",
}


def render(runs: Sequence[Run], budget: int) -> str:
    """Draw runs of the same task.

    Args:
        runs: One run a policy.
        budget: Tokens a prompt was allowed.

    Returns:
        A whole HTML document that loads nothing; text from messages is shown as text, whatever it holds.
    """
    drawn = json.dumps({"budget": budget, "runs": [_drawn(played) for played in runs]}, ensure_ascii=False)
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        errands=runs[0].errands,
        budget=f"{budget:,}",
        policies="".join(f"<th scope=col>{escape(played.policy)}</th>" for played in runs),
        figures="".join(_row(name, [figure(played) for played in runs]) for name, figure in FIGURES.items()),
        # Inside a script element only "</" and "<!--" mean something to HTML; JSON reads the escape as the same text.
        drawn=drawn.replace("<", "\\u003c"),
    )


def _row(name: str, figures: Sequence[str]) -> str:
    return f"<tr><th scope=row>{name}</th>{''.join(f'<td>{escape(figure)}</td>' for figure in figures)}</tr>"


def _drawn(played: Run) -> dict[str, Any]:
    starts = [at for at, message in enumerate(played.history) if not isinstance(message, ToolMessage)]
    stops = [*starts[1:], len(played.history)]
    return {
        "policy": played.policy,
        "finished": played.finished,
        "prompts": [call.tokens for call in played.calls],
        "units": [_unit(played, start, stop) for start, stop in zip(starts, stops, strict=True)],
    }


def _unit(played: Run, start: int, stop: int) -> dict[str, Any]:
    message = played.history[start]
    calls = [number for number, call in enumerate(played.calls) if start in call.view]
    return {
        "kind": _kind(played, start),
        "name": _name(message),
        "tokens": sum(played.tokens[start:stop]),
        "text": " ".join(" ".join(map(_text, played.history[start:stop])).split())[:EXCERPT],
        # Each model call adds one assistant message: so many have been made when this unit can first be in view.
        "born": sum(isinstance(before, AIMessage) for before in played.history[: start + 1]),
        "seen": _stretches(calls),
    }


def _stretches(calls: Sequence[int]) -> list[list[int]]:
    """Half-open ranges that cover these ascending numbers."""
    stretches: list[list[int]] = []
    for call in calls:
        if stretches and stretches[-1][1] == call:
            stretches[-1][1] = call + 1
        else:
            stretches.append([call, call + 1])
    return stretches


def _kind(played: Run, at: int) -> str:
    if isinstance(played.history[at], HumanMessage):
        return "person"
    return "sign-in" if at in played.sign_ins else "repeat" if at in played.repeats else "step"


def _name(message: BaseMessage) -> str:
    if isinstance(message, AIMessage):
        return ", ".join(call["name"] for call in message.tool_calls) or "answer"
    return "the person"


def _text(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    made = (f"{call['name']}({json.dumps(call['args'], ensure_ascii=False)})" for call in calls)
    return " ".join([message.text, *made])
