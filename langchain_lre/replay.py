"""The view that follows from a history alone, however and whenever views were asked for."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_lre.settings import Settings, evictor
from lre_core import Evictor, View

__all__ = ["Replay", "Replays", "replays"]

HISTORIES = 32
"""How many histories are remembered for each combination of settings; the least recently seen are forgotten."""
COMBINATIONS = 16


class Replay:
    """A history as read so far, and its view.

    Every message is a moment of decision, whether or not a view was asked for just then. So the view follows from the
    messages and the settings alone: it is the same in another process, after a restart, and asked for once or often.
    While a history grows, a new message costs its own length. Not safe to use from several threads at once.
    """

    def __init__(self, evictor: Evictor) -> None:
        self._session = evictor.session()
        self._messages: list[BaseMessage] = []

    def follows(self, messages: list[BaseMessage]) -> bool:
        """Whether a history begins with all that was read before."""
        read = len(self._messages)
        if read > len(messages):
            return False
        return not read or (messages[read - 1] == self._messages[-1] and messages[:read] == self._messages)

    def view(self, messages: list[BaseMessage]) -> View:
        """The view of a history that `follows`, oldest message first.

        Raises:
            lre_core.InvalidMessage: a message that no provider takes. Then none of the new ones is read.
        """
        new = messages[len(self._messages) :]
        view = self._session.advance(new)
        self._messages += new
        return view


class Replays:
    """The histories lately seen under the same settings. Safe to use from several threads."""

    def __init__(self, evictor: Evictor) -> None:
        self._evictor = evictor
        self._known: list[Replay] = []
        self._lock = threading.Lock()

    def view(self, messages: list[BaseMessage]) -> View:
        """The view of a whole history, oldest message first; it holds the very objects given.

        Raises:
            lre_core.InvalidMessage: a message that no provider takes.
        """
        # Whoever reads a history has taken it out; another at the same moment reads it anew, and comes to the same end.
        with self._lock:
            known = next((replay for replay in reversed(self._known) if replay.follows(messages)), None)
            if known is not None:
                self._known.remove(known)
        replay = known or Replay(self._evictor)
        view = replay.view(messages)
        with self._lock:
            self._known = [*self._known, replay][-HISTORIES:]
        # As the caller gave them now, not as an equal history gave them before.
        return replace(view, messages=view.with_note([messages[index] for index in view.kept]))


def replays(max_tokens: int, settings: Settings) -> Replays:
    """The histories of these settings, the same for all who ask: an object made for one request finds what is known.

    Raises:
        lre_core.InvalidSetting: a budget under 1 or a setting out of range.
        lre_core.UnknownScorer: no bundled scorer of that name, and no file.
    """
    key = (max_tokens, *((name, _identity(value)) for name, value in sorted(settings.items())))
    with _lock:
        found = _combinations.pop(key, None)
        if found is None:
            # The settings stay with it: while they live, no other object has their identity.
            found = (Replays(evictor(max_tokens, **settings)), settings)
        _combinations[key] = found
        while len(_combinations) > COMBINATIONS:
            del _combinations[next(iter(_combinations))]
        return found[0]


_combinations: dict[tuple[Any, ...], tuple[Replays, Settings]] = {}
_lock = threading.Lock()


def _identity(value: object) -> object:
    """What two equal settings share: plain values and collections by value, everything else by the object itself."""
    if isinstance(value, str) and os.path.isfile(value):  # a scorer, which may have been trained again since
        return value, os.stat(value).st_mtime_ns
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return frozenset(value)
    return id(value)
