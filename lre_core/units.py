"""From messages to units: what stands or falls together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from lre_core.messages import ChatMessage, Kind, Message, ToolCall, as_messages

__all__ = ["Unit", "group"]


class Unit(NamedTuple):
    """A run of messages that stands or falls together.

    Attributes:
        start: index of its first message.
        stop: index after its last message.
        kind: `turn` is one human, assistant or system message; `step` is an assistant message with tool calls and
            every tool message that answers it (several such messages where a provider made all calls before all
            results); `orphan` is a tool message that answers nothing before it.
        role: whose message comes first: `system`, `human`, `assistant` or `tool`.
        complete: whether a provider would accept it: false for an orphan and for a step that lacks a result.
    """

    start: int
    stop: int
    kind: Literal["turn", "step", "orphan"]
    role: Kind
    complete: bool = True


def group(messages: Sequence[ChatMessage]) -> list[Unit]:
    """Groups a history into units, which cover it without gap or overlap.

    A result belongs to the calls directly before it: by id where both sides have one, else by order, since some
    providers repeat ids and some have none. A result that comes after another message answers nothing any more.

    Args:
        messages: the history, oldest first.

    Returns:
        The units, oldest first. A last step that still waits for results is there with `complete` false.

    Raises:
        InvalidMessage: a message that cannot be read.
    """
    return group_from(as_messages(messages), 0)


def group_from(messages: Sequence[Message], start: int) -> list[Unit]:
    """Groups `messages[start:]`; `start` must be where a unit begins."""
    units: list[Unit] = []
    at = start
    while at < len(messages):
        message = messages[at]
        kind = message.kind
        if kind == "tool":
            units.append(Unit(at, at + 1, "orphan", "tool", complete=False))
            at += 1
        elif kind == "assistant" and message.calls:
            run = _steps(messages, at)
            units += run
            at = run[-1].stop
        else:
            units.append(Unit(at, at + 1, "turn", kind))
            at += 1
    return units


def _steps(messages: Sequence[Message], start: int) -> list[Unit]:
    """The units of a run of calling messages from `start` on and the results directly after it.

    Providers that make parallel calls in separate messages give `call a, call b, result a, result b`: one step. A
    call before it that nothing answers (a retry, a crash) stays outside, so that it cannot drag the answered one down.
    """
    middle = start
    while middle < len(messages) and messages[middle].kind == "assistant" and messages[middle].calls:
        middle += 1
    stop = middle
    waiting = [list(message.calls) for message in messages[start:middle]]
    first = len(waiting)
    while stop < len(messages) and messages[stop].kind == "tool":
        claimed = _claim(messages[stop], waiting)
        if claimed is None:
            break
        first = min(first, claimed)
        stop += 1
    first = min(first, len(waiting) - 1)
    units = [Unit(start + i, start + i + 1, "step", "assistant", complete=False) for i in range(first)]
    return [*units, Unit(start + first, stop, "step", "assistant", complete=not any(waiting[first:]))]


def _claim(result: Message, waiting: list[list[ToolCall]]) -> int | None:
    """Ticks off the calls a tool message answers; the earliest message among them, None if it answers none."""
    touched: list[int] = []
    for answer in result.answers:
        # The message nearest to the results first: an id used twice means the call just made.
        open_calls = [(index, call) for index in reversed(range(len(waiting))) for call in waiting[index]]
        same_id = (pair for pair in open_calls if answer is not None and pair[1].id == answer)
        by_order = (pair for pair in open_calls if answer is None or pair[1].id is None)
        found = next(same_id, None) or next(by_order, None)
        if found is not None:
            waiting[found[0]].remove(found[1])
            touched.append(found[0])
    return min(touched) if touched else None


def open_units(units: Sequence[Unit]) -> int:
    """How many units at the end a later result may still change.

    That is a last step and the calls without a result right before it: parallel results come in any order, and the
    last of them makes one step of all their calls.
    """
    if not units or units[-1].kind != "step":
        return 0
    calls = _bare_calls(units)
    return calls + 1 if calls or not units[-1].complete else 0


def waiting_units(units: Sequence[Unit]) -> int:
    """How many units at the end wait for a result, with nothing behind them."""
    if not units or units[-1].kind != "step" or units[-1].complete:
        return 0
    return _bare_calls(units) + 1


def _bare_calls(units: Sequence[Unit]) -> int:
    """How many units right before the last are calls without any result."""
    count = 0
    for unit in units[-2::-1]:
        if unit.kind != "step" or unit.complete or unit.stop - unit.start > 1:
            break
        count += 1
    return count
