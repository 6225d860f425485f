"""Eviction: which messages of a history go to the model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

from lre_core.errors import InvalidSetting
from lre_core.messages import ChatMessage, Message, as_message
from lre_core.note import LARGEST, Left, Note, chat_note
from lre_core.reading import Reading
from lre_core.recall import Recall, Recalled, quoted
from lre_core.scorer import Scorer
from lre_core.session import Session
from lre_core.settings import BudgetScope, NoteMaker, Pin, Settings, check_callable, names, whole_number
from lre_core.state import State
from lre_core.tokens import MESSAGE_OVERHEAD, TokenCounter, counter, message_tokens, remembering
from lre_core.view import Eviction, View

__all__ = ["Eviction", "Evictor", "Session", "Settings", "View", "evict"]


@dataclass(frozen=True)
class Evictor:
    """Keeps the messages most likely to be needed, verbatim, within a token budget.

    1. Verbatim: a view holds the caller's own objects, unchanged.
    2. Within budget: `view.tokens <= budget`, unless what is pinned exceeds it alone; then `over_budget` is true.
    3. Valid for providers: a step is whole or absent, the first message after the system's is human, the view is
       never empty, the current turn is untouched; on every input, however broken.
    4. Query-blind and causal: nothing after the last message is known.
    5. Prefix-stable: a session, or a view given the state of the one before, evicts rarely and mostly at the back.
    6. Cheap: a new message costs its own length.

    An evictor is immutable and may be shared between threads. Each eviction leaves a log record (level INFO, with the
    `Eviction` as its attribute `eviction`); nothing is printed.

    Args:
        budget: tokens the view may take.
        scorer: a `Scorer`, the name of a bundled one, a path to a saved one, or `auto`: `agent` where the history
            holds tool calls, else `assistant`.
        keep_recent: the last units kept without asking the scorer, newest first while they fit; in a session those
            beyond two thirds of the budget beside what earlier evictions kept, which would not come back.
        budget_scope: `view`, or `history`, the paper's reading: the budget covers only what is older than the recent
            window, system messages left out.
        token_counter: the name of a tiktoken encoding, or a callable from text to tokens.
        message_counter: tokens of a message, as the caller gave it, in place of what `token_counter` makes of its
            text and of the overhead; asked once a message.
        pin: what is always kept, with the rest of its step: a callable that is asked of each message, as the caller
            gave it, once; or a collection of message ids. A message's id is its `id` field or attribute (LlamaIndex's
            `id_`); one that came without has its `Message.key` for an id.
        message_overhead: tokens a message costs beside its text.
        whole_turn: keep the current turn (from the last human message on) whole even over the budget. False suits an
            agent whose run is one long turn: then its finished steps older than the recent window compete like others,
            but for the newest, and for the first if it holds the thinking of the model.
        reader: turns a message of another framework into a `Message`, so that its objects can be given as they are.
        keep_tools: names of tools. A step that calls any of them is pinned.
        exclude_tools: names of tools whose results are of use once. A step that calls nothing but these leaves the
            view when it is done with: once another message follows it, with `whole_turn` once the next turn begins.
            One that is pinned stays.
        note: a message that says how much was left out, placed where the newest of it stood, so that the prompt changes
            there only when something leaves. True makes it a chat dict, a callable makes it from the number of
            messages left out and their tokens; it must be a human message, for providers want one first. Room for the
            longest is set aside from the budget.
        on_evict: called with an `Eviction` after each eviction that a view shows for the first time; a view without a
            state is chosen afresh, and so is an eviction of all it leaves out. What it raises is logged and goes no
            further: the messages, the view and the session are as if it had not.

    Raises:
        InvalidSetting: a setting of another type or outside its range, a tool both kept and excluded.
        UnknownScorer: no bundled scorer of that name, and no file.
        InvalidScorer: the file is not a scorer.
    """

    budget: int
    scorer: Scorer | str = "auto"
    keep_recent: int = 5
    budget_scope: BudgetScope = "view"
    token_counter: TokenCounter | str = "o200k_base"
    message_counter: Callable[[Any], int] | None = None
    pin: Pin | None = None
    message_overhead: int = MESSAGE_OVERHEAD
    whole_turn: bool = True
    reader: Callable[[Any], Message] | None = None
    keep_tools: Collection[str] = frozenset()
    exclude_tools: Collection[str] = frozenset()
    note: NoteMaker | bool | None = None
    on_evict: Callable[[Eviction], object] | None = None
    note_room: int = field(init=False, repr=False, compare=False)
    _count: TokenCounter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("budget", whole_number("budget", self.budget, 1, "tokens"))
        put("keep_recent", whole_number("keep_recent", self.keep_recent, 0, "units"))
        put("message_overhead", whole_number("message_overhead", self.message_overhead, 0, "tokens"))
        if self.budget_scope not in ("view", "history"):
            raise InvalidSetting(f"budget_scope is {self.budget_scope!r}; it must be 'view' or 'history'")
        if not isinstance(self.whole_turn, bool):
            raise InvalidSetting(f"whole_turn is {self.whole_turn!r}; it must be True or False")
        if self.pin is not None and not callable(self.pin):
            put("pin", names("pin", self.pin, "message ids, or a callable"))
        put("keep_tools", names("keep_tools", self.keep_tools, "tools' names"))
        put("exclude_tools", names("exclude_tools", self.exclude_tools, "tools' names"))
        both = sorted(set(self.keep_tools).intersection(self.exclude_tools))
        if both:
            raise InvalidSetting(f"keep_tools and exclude_tools both name {', '.join(map(repr, both))}")
        check_callable("reader", self.reader, "a callable from a message to a lre_core.Message, or None")
        check_callable("message_counter", self.message_counter, "a callable from a message to tokens, or None")
        check_callable("on_evict", self.on_evict, "a callable that takes an Eviction, or None")
        if not isinstance(self.scorer, Scorer | str):
            raise InvalidSetting(f"scorer is {self.scorer!r}; it must be a Scorer, its name or its path, or 'auto'")
        if isinstance(self.scorer, str) and self.scorer != "auto":
            put("scorer", Scorer.named(self.scorer))
        if not isinstance(self.token_counter, str) and not callable(self.token_counter):
            expected = "an encoding's name, or a callable from text to tokens"
            raise InvalidSetting(f"token_counter is {self.token_counter!r}; it must be {expected}")
        put("_count", remembering(counter(self.token_counter)))
        put("note_room", self._checked_note_room())

    def _checked_note_room(self) -> int:
        """Tokens to set aside for the note; 0 where none is asked for."""
        if self.note is True and self.reader is not None:
            raise InvalidSetting(
                "note is True, which makes a chat dict; beside a reader give a callable that makes yours"
            )
        if not isinstance(self.note, bool):
            check_callable(
                "note", self.note, "True, None, or a callable from messages and tokens left out to a message"
            )
        note = self.note_of(Left(*LARGEST))
        if note is not None and self._read(note.message).kind != "human":
            raise InvalidSetting(
                f"note makes a message of role {self._read(note.message).role!r}; it must be a human one"
            )
        return 0 if note is None else note.tokens

    def view(self, messages: Sequence[Any], state: Mapping[str, Any] | None = None, *, reserved: int = 0) -> View:
        """The messages to send now. Pure: the same messages and state give the same view, and nothing is changed.

        Args:
            messages: the whole history, oldest first, what left earlier views included.
            state: `View.state` of the view before, or `Session.state`, to keep the prompt's prefix stable. Without
                it, the view is the best set for this moment alone. `{}` starts a new one.
            reserved: tokens of the budget that the prompt spends elsewhere, on tool definitions for instance.

        Raises:
            InvalidMessage: a message that cannot be read.
            InvalidSetting: a state that is damaged or none, a reserve that is not a whole number of 0 or more.
        """
        session = Session(self, state)
        session.append(messages)
        return session.view(reserved) if state is not None else session._best(reserved)

    def session(self, state: Mapping[str, Any] | None = None) -> Session:
        """A history that grows: each new message costs its own length, and the prompt's prefix stays stable.

        Args:
            state: of a session that is to go on; give it the same messages again. If they are not the same, a log
                record says so and the view is chosen afresh; `resumes` tells beforehand.

        Raises:
            InvalidSetting: the state is damaged, or none.
        """
        return Session(self, state)

    def resumes(self, messages: Sequence[Any], state: Mapping[str, Any] | None) -> bool:
        """Whether `view` and `session`, given these messages, go on from a state; if not, they choose afresh.

        It reads the messages that the state was made from, and counts no token.

        Args:
            messages: the whole history, oldest first.
            state: `View.state` or `Session.state`. None and `{}`, a session that has not begun, suit any history.

        Raises:
            InvalidMessage: a message that cannot be read.
            InvalidSetting: the state is damaged, or none.
        """
        decided = State.from_json(state)
        return decided.made_from(list(map(self._read, messages[: decided.messages])))

    def search(self, messages: Sequence[Any], query: str, k: int = 5) -> list[Recalled]:
        """Finds units of a history, in view or not, by BM25; needs the `recall` extra. It decides nothing.

        It reads and indexes the whole history. `Session.recall` and `View.recall`, which find what has left, read it
        once, and `Session.recall` keeps the index.

        Args:
            messages: the whole history, oldest first.
            query: words of what is looked for, in any script.
            k: how many units at most.

        Returns:
            The units that share words with the query, best first; of equals the newer first.

        Raises:
            MissingExtra: bm25s is not installed.
            InvalidMessage: a message that cannot be read.
            InvalidSetting: the query is not text, or k is not a whole number of 1 or more.
        """
        history = Reading(self)
        history.extend(history.read(messages))
        return Recall(history).search(history.units, query, k)

    def quote(self, found: Iterable[Recalled], max_tokens: int) -> str:
        """What was found as text for a model: where it stood, who said it, word for word, and the calls it made.

        Args:
            found: what `search` or a `recall` gave, best first.
            max_tokens: as many as fit are quoted, and the last one is cut there and says so.
        """
        return "\n\n".join(quoted(found, self._read, self.count, max_tokens))

    def count(self, text: str) -> int:
        """Tokens of a text under this evictor's counter; a text lately seen is not counted again.

        Raises:
            InvalidSetting: the counter returned something else than a number of tokens.
        """
        return _tokens("token_counter", self._count(text))

    def note_of(self, left: Left) -> Note | None:
        """The message that says what has left; None unless one is asked for."""
        if not self.note:
            return None
        message = chat_note(left.messages, left.tokens) if self.note is True else self.note(left.messages, left.tokens)
        return Note(message, self.message_cost(self._read(message), message))

    def message_cost(self, message: Message, given: Any = None) -> int:
        """Tokens a message costs under this evictor's counter.

        Args:
            message: the message as read.
            given: the caller's own object it was read from, which a `message_counter` counts.

        Raises:
            InvalidSetting: the counter returned something else than a number of tokens.
        """
        if self.message_counter is not None:
            return _tokens("message_counter", self.message_counter(message if given is None else given))
        return message_tokens(message, self.count, self.message_overhead)

    def _read(self, message: Any) -> Message:
        return as_message(message if self.reader is None else self.reader(message))

    def scorer_for(self, history: Reading) -> Scorer:
        """The scorer that suits a history."""
        if isinstance(self.scorer, Scorer):
            return self.scorer
        return Scorer.from_pretrained("agent" if history.has_calls else "assistant")


def _tokens(counter: str, given: object) -> int:
    """What a counter gave, which is the caller's own and may give anything."""
    return given if type(given) is int and given >= 0 else whole_number(f"what {counter} gave", given, 0, "tokens")


def evict(messages: Sequence[ChatMessage], budget: int, **settings: Unpack[Settings]) -> View:
    """The messages worth sending under a token budget; see `Evictor` for the settings and the errors."""
    return Evictor(budget, **settings).view(messages)
