"""A growing history and what of it is in view."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lre_core.alive import Alive, Gathered
from lre_core.generations import Decision, decide
from lre_core.moment import Moment
from lre_core.note import Left, place
from lre_core.reading import Entry, Reading
from lre_core.recall import Recall, Recalled
from lre_core.settings import whole_number
from lre_core.state import State
from lre_core.view import Eviction, View

if TYPE_CHECKING:
    from lre_core.eviction import Evictor

__all__ = ["Session"]

logger = logging.getLogger(__name__)

NEVER_SHOWN = ("invalid", "excluded")


class Session:
    """A growing history and what of it is in view. Safe to use from several threads.

    Messages are read once, when they are added: they must not be changed afterwards. A history that has been changed
    needs a new session, to which the state of this one may be given.
    """

    def __init__(self, evictor: Evictor, state: Mapping[str, Any] | None = None) -> None:
        self._evictor = evictor
        self._state = State.from_json(state)
        self._history = Reading(evictor)
        self._alive = Alive(self._history)
        self._left = Left()
        self._recall = Recall(self._history)
        self._resumed = self._state.messages == 0
        self._view: View | None = None
        # A view costs no more than this: the last one and all that came since.
        self._at_most = 0
        self._lock = threading.RLock()

    @property
    def state(self) -> dict[str, Any]:
        """What has been decided, as plain JSON. With the same messages it resumes the session."""
        with self._lock:
            return self._state.to_json()

    def append(self, messages: Iterable[Any]) -> None:
        """Adds messages at the end.

        Raises:
            InvalidMessage: a message that cannot be read. Then none of them is added, and so it is whatever else the
                reader, the token counter or the pin raises.
        """
        with self._lock:
            self._add(self._history.read(list(messages)))

    def advance(self, messages: Iterable[Any], reserved: int = 0) -> View:
        """Adds messages, each of them a moment of decision, and gives the view after the last.

        So what has left follows from the messages and the reserve alone, whether they came one by one or all at once,
        after a restart for instance. (After `append`, something leaves only when a view is asked for.)

        Args:
            messages: the next ones, oldest first.
            reserved: as in `view`.

        Raises:
            InvalidMessage: a message that cannot be read. Then none of them is added.
            InvalidSetting: `reserved` is not a whole number of 0 or more.
        """
        room = self._room(self._evictor.budget - whole_number("reserved", reserved, 0, "tokens"))
        with self._lock:
            entries = self._history.read(list(messages))
        added = 0
        tokens = self._at_most
        for count, entry in enumerate(entries, 1):
            tokens += entry.cost
            if tokens > room:  # before that, nothing has to leave
                self._add(entries[added:count])
                self.view(reserved)
                added, tokens = count, self._at_most
        self._add(entries[added:])
        return self.view(reserved)

    def view(self, reserved: int = 0) -> View:
        """The messages to send now. Until the next `append` it is the same view.

        Args:
            reserved: tokens of the budget that the prompt spends elsewhere, on tool definitions for instance.

        Raises:
            InvalidSetting: `reserved` is not a whole number of 0 or more.
        """
        budget = self._evictor.budget - whole_number("reserved", reserved, 0, "tokens")
        with self._lock:
            if self._view is not None and self._view.budget == budget:
                return self._view
            self._resume()
            view, eviction = self._look(budget)
            self._view, self._at_most = view, view.tokens
        # Not under the lock: what is called may use the session, or wait for a thread that does.
        self._report(eviction)
        return view

    def recall(self, query: str, k: int = 5) -> list[Recalled]:
        """Finds again what has left the view; needs the `recall` extra. It decides nothing and changes nothing.

        Args:
            query: words of what is looked for, in any script. Nothing else in a session reads a query.
            k: how many units at most.

        Returns:
            The units that share words with the query, best first by BM25; of equals the newer first.

        Raises:
            MissingExtra: bm25s is not installed.
            InvalidSetting: the query is not text, or k is not a whole number of 1 or more.
        """
        with self._lock:
            history = self._history
            if len(history.messages) >= self._state.messages:
                self._resume()
            there = {*history.sendable(self._alive.units), *range(history.settled, len(history.units))}
            return self._recall.search(
                [unit for index, unit in enumerate(history.units) if index not in there], query, k
            )

    def _add(self, entries: Sequence[Entry]) -> None:
        with self._lock:
            self._alive.extend(self._history.extend(entries))
            self._at_most += sum(entry.cost for entry in entries)
            self._view = None

    def _best(self, reserved: int) -> View:
        """The best set for this moment alone; see `Evictor.view`."""
        budget = self._evictor.budget - whole_number("reserved", reserved, 0, "tokens")
        with self._lock:
            decision = decide(self._history, self._alive.units, self._evictor, self._room(budget), None)
            staying = self._staying(decision)
            left = self._left
            if decision.cause:
                left = left.plus(self._history, sorted(set(self._alive.units).difference(decision.kept)))
            # Digesting the whole history is left to whoever asks for the state.
            view = self._chosen(decision, budget, left, lambda: self._settled(decision, staying))
            eviction = self._eviction(decision, view)
        self._report(eviction)
        return view

    def _resume(self) -> None:
        """On the first view of a restored session: what had left stays out, if the messages are the same."""
        if self._resumed:
            return
        self._resumed = True
        state, history = self._state, self._history
        if not history.is_of(state):
            logger.warning("The history is not the one its state was made from; what is in view is chosen afresh.")
            self._state = State()
            return
        decided = next((i for i, unit in enumerate(history.units) if unit.start >= state.messages), len(history.units))
        kept = {message for start, stop in state.kept for message in range(start, stop)}
        alive = [unit for unit in range(decided) if history.units[unit].start in kept]
        self._state = state.with_units(decided)
        self._leave([*alive, *range(decided, len(history.units))])

    def _look(self, budget: int) -> tuple[View, Eviction | None]:
        """The view under a budget, and what leaves for it."""
        evictor, history, room, state = self._evictor, self._history, self._room(budget), self._state
        everything = self._alive.everything(room)
        if everything is not None:
            alive = tuple(self._alive.units)
            moment = self._moment(lambda now: decide(now, alive, evictor, room, state.units))
            return self._show(everything, everything.tokens, budget, self._left, lambda: state, moment), None
        decision = decide(history, self._alive.units, evictor, room, state.units)
        if decision.evicted:
            staying = self._staying(decision)
            self._state = state = self._settled(decision, staying)
            self._leave(staying)
        view = self._chosen(decision, budget, self._left, lambda: state)
        return view, self._eviction(decision, view)

    def _leave(self, staying: Sequence[int]) -> None:
        """Only these units are alive from now on."""
        self._left = self._left.plus(self._history, set(self._alive.units).difference(staying))
        self._alive = Alive(self._history, staying)

    def _staying(self, decision: Decision) -> list[int]:
        """The units still alive after an eviction."""
        kept = set(decision.kept)
        return [unit for unit in self._alive.units if unit in kept or unit >= decision.settled]

    def _settled(self, decision: Decision, staying: Sequence[int]) -> State:
        """The state after an eviction."""
        history, state = self._history, self._state
        stop = history.units[decision.settled - 1].stop if decision.settled else 0
        start, chained = (state.messages, state.digest) if state.messages <= stop else (0, "")
        spans = [history.units[unit] for unit in staying if unit < decision.settled]
        return State.of(spans, stop, history.digest(stop, start, chained), decision.settled)

    def _room(self, budget: int) -> int:
        """What of a budget the caller's messages may take: all but the longest note."""
        return budget - self._evictor.note_room

    def _moment(self, decision: Callable[[Reading], Decision]) -> Moment:
        return Moment(self._history, self._evictor, self._recall, self._lock, decision)

    def _chosen(self, decision: Decision, budget: int, left: Left, state: Callable[[], State]) -> View:
        """The view of a decision."""
        history = self._history
        kept = [index for unit in decision.kept for index in range(history.units[unit].start, history.units[unit].stop)]
        shown = Gathered([history.messages[index] for index in kept], kept, decision.tokens)
        return self._show(shown, decision.spent, budget, left, state, self._moment(lambda _: decision))

    def _show(
        self,
        shown: Gathered,
        spent: int,
        budget: int,
        left: Left,
        state: Callable[[], State],
        moment: Moment,
    ) -> View:
        """A view of what is shown, with a note among it if one is asked for and fits."""
        messages, kept, tokens = shown
        note = self._evictor.note_of(left) if left.messages else None
        if note is not None:
            at = place(self._history, kept, left)
            if at is None or spent + note.tokens > budget:
                note = None
            else:
                messages.insert(at, note.message)
                tokens += note.tokens
        return View(messages, kept, tokens, budget, spent > budget, note and note.message, state, moment)

    def _eviction(self, decision: Decision, view: View) -> Eviction | None:
        """What a decision made leave, if anything."""
        history = self._history
        # A step that a late result may still change is left out for now, and competes again.
        final = [unit for unit in decision.evicted if unit < decision.settled]
        leaving = [unit for unit in final if decision.reasons[unit] not in NEVER_SHOWN]
        if not leaving:
            return None
        units = [history.units[unit] for unit in leaving]
        return Eviction(
            units,
            [message for unit in units for message in history.messages[unit.start : unit.stop]],
            [decision.reasons[unit] for unit in leaving],
            view.tokens + sum(history.costs[unit] for unit in leaving),
            view.tokens,
            view.budget,
            decision.cause,
        )

    def _report(self, eviction: Eviction | None) -> None:
        if eviction is None:
            return
        logger.info(
            "%d units left the view (%s): %d tokens before, %d after, budget %d",
            len(eviction.units),
            eviction.cause,
            eviction.tokens_before,
            eviction.tokens_after,
            eviction.budget,
            extra={"eviction": eviction},
        )
        if self._evictor.on_evict is not None:
            try:
                self._evictor.on_evict(eviction)
            except Exception:
                logger.exception("on_evict raised. The eviction stands, and the view is given all the same.")
