"""Histories for the tests: as providers, crashes and users make them; and what a provider refuses, told slowly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lre_core import Evictor, Scorer, Unit, View, group
from lre_core.features import FEATURES
from lre_core.grams import WORD_BUCKETS
from lre_core.messages import as_message
from lre_core.tokens import message_tokens

Chat = dict[str, Any]

CALL_BLOCKS = ("tool_use", "tool_call", "function_call")
RESULT_BLOCKS = ("tool_result", "function_call_output")
TEXT = "the order of 14 books for Mara was refunded why? ORD_2291 error: token tk-77f1 denied, see a@b.io 注文は明日"
VOCABULARY = TEXT.split()
TOOLS = ("look_up", "search", "sign_in")
BY_TOOL: list[dict[str, Any]] = [{}, {}, {"keep_tools": ["sign_in"], "exclude_tools": ["search"]}]


def system(text: str, role: str = "system") -> Chat:
    return {"role": role, "content": text}


def human(text: str) -> Chat:
    return {"role": "user", "content": text}


def assistant(text: str) -> Chat:
    return {"role": "assistant", "content": text}


def calling(*ids: str | None, text: str | None = None, arguments: str = "{}") -> Chat:
    """An assistant message with one call an id; None stands for a call to which the provider gave none."""
    function = {"name": "look_up", "arguments": arguments}
    calls = [{"type": "function", "function": dict(function)} | ({} if id is None else {"id": id}) for id in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(id: str | None, text: str) -> Chat:
    return {"role": "tool", "content": text} | ({} if id is None else {"tool_call_id": id})


def words(n: int, size: int) -> str:
    """`size` words of a few languages, others for every `n`; every fifth text asks to be remembered (`pin`)."""
    if not size:
        return ""
    chosen = [VOCABULARY[(7 * n + 3 * k) % len(VOCABULARY)] for k in range(size)]
    return " ".join([*chosen, f"ref_{n // 3}"] + ["remember"] * (n % 5 == 4))


def shape(notation: str, size: int = 5) -> list[Chat]:
    """Messages in the notation of bug reports: `S` system, `H` human, `AI`, `AI*a,b` calls a and b, `Ta` a's result.

    `AI*` and `T` alone have no id. All texts differ.
    """
    messages = []
    for n, word in enumerate(notation.split()):
        text = f"{n} {words(n, size)}"
        if word.startswith("AI*"):
            messages.append(calling(*(id or None for id in word[3:].split(",")), text=text))
        elif word.startswith("T"):
            messages.append(result(word[1:] or None, text))
        else:
            messages.append({"S": system, "H": human, "AI": assistant}[word](text))
    return messages


def problems(messages: Sequence[Chat], *, human_first: bool = True) -> list[str]:
    """Why a provider would refuse these messages; empty if none would. Slow and obvious; it shares no code with ours.

    Args:
        messages: OpenAI chat dicts, or with Anthropic's blocks.
        human_first: whether there was a human message to open with.
    """
    found = []
    spoken = [message for message in messages if message["role"] not in ("system", "developer")]
    if not spoken:
        found.append("nothing is said but by the system")
    elif human_first and (spoken[0]["role"] != "user" or answers_of(spoken[0])):
        found.append("the first message after the system's is not human")
    at = 0
    while at < len(messages):
        calls: list[str | None] = []
        answers: list[str | None] = []
        start = at
        while at < len(messages) and calls_of(messages[at]):
            calls += calls_of(messages[at])
            at += 1
        while at < len(messages) and answers_of(messages[at]):
            answers += answers_of(messages[at])
            at += 1
        unanswered, unasked = unpaired(calls, answers)
        if unasked:
            found.append(f"messages {start} to {at}: results {unasked} without calls directly before them")
        if unanswered and at < len(messages):
            found.append(f"messages {start} to {at}: calls {unanswered} without results directly behind them")
        at = max(at, start + 1)
    return found


def calls_of(message: Chat) -> list[str | None]:
    """The id of every call a message makes."""
    if message.get("tool_calls"):
        return [call.get("id") for call in message["tool_calls"]]
    if message.get("function_call"):
        return [None]
    return [block.get("id") for block in blocks_of(message) if block["type"] in CALL_BLOCKS]


def answers_of(message: Chat) -> list[str | None]:
    """For every result a message carries, the id of its call."""
    if message["role"] in ("tool", "function"):
        return [message.get("tool_call_id")]
    return [block.get("tool_use_id") for block in blocks_of(message) if block["type"] in RESULT_BLOCKS]


def blocks_of(message: Chat) -> list[Chat]:
    return message["content"] if isinstance(message["content"], list) else []


def unpaired(calls: list[str | None], answers: list[str | None]) -> tuple[list[str | None], list[str | None]]:
    """The calls and answers left over when as many are paired as can be: by id where both have one."""
    calls, answers = list(calls), list(answers)
    rules: list[Callable[[str | None, str | None], bool]] = [
        lambda call, answer: call == answer,
        lambda call, answer: answer is not None and call is None,
        lambda call, answer: answer is None,
    ]
    for may_pair in rules:
        for answer in list(answers):
            fitting = [index for index, call in enumerate(calls) if may_pair(call, answer)]
            if fitting:
                del calls[fitting[0]]
                answers.remove(answer)
    return calls, answers


class Facts:
    """What the promises speak of, as sets of indexes into a history; told from `group` alone.

    Given an evictor, with what its `exclude_tools` leave out.

    Attributes:
        units: the history's units.
        human: whether it holds a human message.
        systems: system and developer messages.
        waiting: calls at the very end that lack a result.
        open: the run of calls and results at the very end, if it lacks a result: the next may make one step of it all.
        refused: what no provider takes: orphan results, and calls without all results unless they wait.
        greeting: what is said before the first human message, by anyone but the system.
        spent: steps of nothing but excluded tools, once the model has seen their results.
        sendable: all the rest, which may be sent.
        turn: the current turn, from the last human message on; nothing where no human message is.
    """

    def __init__(self, history: list[Chat], evictor: Evictor | None = None) -> None:
        self._history = history
        self.units = group(history)
        self.systems = {unit.start for unit in self.units if unit.role == "system"}
        humans = [unit.start for unit in self.units if unit.role == "human"]
        self.human = bool(humans)
        self.open = self._open()
        ends = [unit for unit in self.units if unit.start in self.open]
        while ends and any(unit.complete for unit in ends):
            ends.pop(0)
        self.waiting = indexes(ends)
        self.refused = indexes(unit for unit in self.units if not unit.complete) - self.waiting
        self.greeting = set(range(humans[0] if humans else 0)) - self.systems
        self.spent = indexes(self._spent(evictor, max(humans, default=-1))) if evictor else set()
        self.sendable = set(range(len(history))) - self.refused - self.greeting - self.spent
        self.turn = {index for index in self.sendable if humans and index >= humans[-1]}

    def _open(self) -> set[int]:
        if not self.units or self.units[-1].kind != "step":
            return set()
        start = self.units[-1].start
        while start and calls_of(self._history[start - 1]):
            start -= 1
        tail = [unit for unit in self.units if unit.start >= start]
        return set() if all(unit.complete for unit in tail) else indexes(tail)

    def _spent(self, evictor: Evictor, last_human: int) -> Iterator[Unit]:
        asked = self._asked(evictor)
        for unit in self.units[:-1]:
            called = {call.name for message in self._messages(unit) for call in as_message(message).calls}
            seen = not evictor.whole_turn or last_human < 0 or unit.start < last_human
            if called and called <= set(evictor.exclude_tools) and seen and not {unit.start} & (asked | self.open):
                yield unit

    def _messages(self, unit: Unit) -> list[Chat]:
        return self._history[unit.start : unit.stop]

    def _asked(self, evictor: Evictor) -> set[int]:
        """What the caller pins, by message or by tool."""
        pin = evictor.pin if callable(evictor.pin) else lambda message: False
        return indexes(
            unit
            for unit in self.units
            if any(map(pin, self._messages(unit)))
            or any(call.name in evictor.keep_tools for m in self._messages(unit) for call in as_message(m).calls)
        )

    def pinned(self, evictor: Evictor) -> set[int]:
        """System messages, what the caller pins, the current turn, calls that wait; as far as they can be sent."""
        turn = self.turn if evictor.whole_turn else self._essence()
        return (self.systems | self.waiting | turn | self._asked(evictor)) & self.sendable

    def _essence(self) -> set[int]:
        """Of the current turn: the question, the first unit behind it if it thinks, and the newest."""
        turn = [unit for unit in self.units if self.turn and unit.start >= min(self.turn) and unit.role != "system"]
        thinking = [unit for unit in turn[1:2] if "thinking" in str(blocks_of(self._history[unit.start]))]
        return indexes([*turn[:1], *thinking, *turn[-1:]])

    def cost(self, chosen: Iterable[int]) -> int:
        """Tokens of these messages under `quarter`."""
        return sum(message_tokens(as_message(self._history[index]), quarter) for index in chosen)


def indexes(units: Iterable[Unit]) -> set[int]:
    """The messages of these units."""
    return {index for unit in units for index in range(unit.start, unit.stop)}


Episode = Callable[[int, str], list[Chat]]


def _blocks(n: int, text: str) -> list[Chat]:
    """Anthropic's form: thinking, a call among the blocks, its result in a user message."""
    said: list[Chat] = [{"type": "thinking", "thinking": text, "signature": "c2ln"}, {"type": "text", "text": text}]
    use = {"type": "tool_use", "id": f"use_{n}", "name": "look_up", "input": {"n": n}}
    found = {"type": "tool_result", "tool_use_id": f"use_{n}", "content": [{"type": "text", "text": text}]}
    return [{"role": "assistant", "content": [*said, use]}, {"role": "user", "content": [found]}]


def _picture(text: str) -> Chat:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    return {"role": "user", "content": [{"type": "text", "text": text}, picture]}


def _function(n: int, text: str) -> list[Chat]:
    called = {"role": "assistant", "content": None, "function_call": {"name": "look_up", "arguments": text}}
    return [called, {"role": "function", "name": "look_up", "content": text}]


WHOLE: list[Episode] = [
    lambda n, text: [human(text)],
    lambda n, text: [human(text), assistant(text)],
    lambda n, text: [assistant(text)],
    lambda n, text: [calling(f"call_{n}", arguments=text), result(f"call_{n}", text)],
    lambda n, text: [calling(f"{n}a", f"{n}b", text=text), result(f"{n}b", text), result(f"{n}a", "")],
    lambda n, text: [calling(f"{n}a"), calling(f"{n}b"), result(f"{n}a", text), result(f"{n}b", text)],
    lambda n, text: [calling(f"{n}a"), calling(f"{n}b"), result(f"{n}b", text), result(f"{n}a", text)],
    lambda n, text: [calling(None, None, text=text), result(None, text), result(None, "")],
    lambda n, text: [calling("call_0", text=text), result("call_0", text)],
    lambda n, text: [system(text)],
    lambda n, text: [human("")],
    lambda n, text: [_picture(text)],
    _blocks,
    _function,
]
BROKEN: list[Episode] = [
    lambda n, text: [result(f"call_{n}", text)],
    lambda n, text: [result(None, text)],
    lambda n, text: [calling(f"call_{n}", text=text)],
    lambda n, text: [calling(f"{n}a", f"{n}b"), result(f"{n}a", text)],
    lambda n, text: [result(f"call_{n}", text), calling(f"call_{n}")],
    lambda n, text: [calling(f"call_{n}"), human(text), result(f"call_{n}", text)],
    lambda n, text: [calling(f"call_{n}"), system(text), result(f"call_{n}", text)],
    lambda n, text: [calling("call_0"), calling("call_0"), result("call_0", text)],
    lambda n, text: [calling(f"call_{n}"), result(f"call_{n}", text), result(f"call_{n}", text)],
    lambda n, text: [calling(f"call_{n}"), result("call_x", text)],
    lambda n, text: [{"role": "assistant", "content": None}],
]
EDITS: list[Callable[[list[Chat], int], None]] = [
    lambda history, at: history.insert(at + 1, history.pop(at)),
    lambda history, at: history.insert(at, history[at]),
    lambda history, at: history.__delitem__(at),
]
SIZES = [0, 1, 4, 12, 40]
WHOLE_EPISODES = list(product(WHOLE, SIZES))
ALL_EPISODES = list(product(WHOLE + BROKEN, SIZES))
ALL_EDITS = list(product(EDITS, range(20)))
OPENINGS = st.sampled_from([[], [system("Be brief.")], [system("Be brief.", "developer")]])


@st.composite
def histories(draw: st.DrawFn, *, least: int = 2, most: int = 9, broken: bool = True) -> list[Chat]:
    """Histories of `least` to `most` episodes; with `broken`, half of them may hold what a provider refuses."""
    broken = broken and draw(st.booleans())
    episodes = ALL_EPISODES if broken else WHOLE_EPISODES
    history = list(draw(OPENINGS))
    # A byte an episode, all in one draw: hypothesis is slow by the draw.
    for n, byte in enumerate(draw(st.binary(min_size=least, max_size=most))):
        make, size = episodes[byte % len(episodes)]
        history += with_tools(make(n, words(n, size)), n)
    for byte in draw(st.binary(max_size=2)) if broken else b"":
        edit, at = ALL_EDITS[byte % len(ALL_EDITS)]
        if at < len(history):
            edit(history, at)
    return history or [human("")]


def with_tools(messages: list[Chat], n: int) -> list[Chat]:
    """The same messages, whose calls go to the tools in turn."""
    for message in messages:
        blocks = [block for block in blocks_of(message) if block["type"] in CALL_BLOCKS]
        functions = [call["function"] for call in message.get("tool_calls", ())]
        for k, call in enumerate([*functions, *blocks, *filter(None, [message.get("function_call")])]):
            call["name"] = TOOLS[(n + k) % len(TOOLS)]
    return messages


def quarter(text: str) -> int:
    """A token counter that costs nothing."""
    return len(text) // 4 + 1


def remember(message: Chat) -> bool:
    """The caller's pin: a message that asks to be remembered."""
    return "remember" in str(message["content"])


SCORER = Scorer.quantised(
    bias=0.1,
    mean=np.zeros(len(FEATURES)),
    scale=np.ones(len(FEATURES)),
    weights=np.cos(np.arange(len(FEATURES))) / 3,
    words=np.sin(np.arange(WORD_BUCKETS)) * (np.arange(WORD_BUCKETS) % 3),
)
"""Scores that depend on every feature and on the words; whether they are good does not matter here."""


def evictors(**fixed: Any) -> st.SearchStrategy[Evictor]:
    """Evictors of all kinds, with budgets from nothing to more than enough; `fixed` settings are as given."""
    choices: dict[str, list[Any]] = {
        "budget": [100_000, 500, 250, 120, 60, 30, 12, 1],
        "keep_recent": [0, 1, 2, 5],
        "pin": [None, remember],
        "whole_turn": [True, False],
    }
    choices |= {name: [value] for name, value in fixed.items()}
    combinations = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    return st.sampled_from(
        [
            Evictor(scorer=SCORER, token_counter=quarter, **tools | chosen)
            for tools in BY_TOOL
            for chosen in combinations
        ]
    )


def growing(evictor: Evictor, history: list[Chat]) -> Iterator[tuple[list[Chat], View]]:
    """Every prefix of a history, with the view of a session that has grown up to it message by message."""
    session = evictor.session()
    for stop in range(1, len(history) + 1):
        session.append(history[stop - 1 : stop])
        yield history[:stop], session.view()


def same(one: View, other: View) -> bool:
    """Whether two views say the same (scores apart, which cost more to read than a view)."""
    parts = [(v.kept, v.evicted, v.tokens, v.budget, v.over_budget, v.state, list(v.units)) for v in (one, other)]
    return parts[0] == parts[1]
