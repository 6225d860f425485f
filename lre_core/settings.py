"""What can be set about eviction, and what is said of a setting that is wrong."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from lre_core.errors import InvalidSetting
from lre_core.messages import Message
from lre_core.scorer import Scorer
from lre_core.tokens import TokenCounter

if TYPE_CHECKING:
    from lre_core.view import Eviction

__all__ = ["BudgetScope", "NoteMaker", "Pin", "Settings", "asks_to_keep", "check_callable", "names", "whole_number"]

BudgetScope = Literal["view", "history"]
Pin: TypeAlias = Callable[[Any], bool] | Collection[str]
NoteMaker: TypeAlias = Callable[[int, int], Any]


class Settings(TypedDict, total=False):
    """Every setting of an `Evictor` but its budget, for what hands them on: `**settings: Unpack[Settings]`."""

    scorer: Scorer | str
    keep_recent: int
    budget_scope: BudgetScope
    token_counter: TokenCounter | str
    message_counter: Callable[[Any], int] | None
    pin: Pin | None
    message_overhead: int
    whole_turn: bool
    reader: Callable[[Any], Message] | None
    keep_tools: Collection[str]
    exclude_tools: Collection[str]
    note: NoteMaker | bool | None
    on_evict: Callable[[Eviction], object] | None


def asks_to_keep(pin: Pin, given: Any, message: Message) -> bool:
    """Whether a pin asks to keep a message.

    Args:
        pin: a predicate of the caller's own object, or a set of ids.
        given: the message as the caller gave it. Its id is its `id` field or attribute, or LlamaIndex's `id_`.
        message: the same as read; where it came without an id, its `key` is its id.
    """
    if callable(pin):
        return bool(pin(given))
    own = given.get("id") if isinstance(given, Mapping) else getattr(given, "id", None) or getattr(given, "id_", None)
    return (own if isinstance(own, str) else message.key) in pin


def whole_number(name: str, value: object, least: int, unit: str) -> int:
    """A setting as an int; numpy's integers are taken.

    Raises:
        InvalidSetting: it is of another type (True counts as such), or less than `least`.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or number < least:
        raise InvalidSetting(f"{name} is {value!r}; it must be a whole number of {unit}, {least} or more")
    return number


def names(name: str, value: object, of: str) -> frozenset[str]:
    """A setting that is a collection of texts, as a set.

    Raises:
        InvalidSetting: it is one text instead of a collection, or holds anything but texts.
    """
    if isinstance(value, Collection) and not isinstance(value, str | bytes) and all(isinstance(v, str) for v in value):
        return frozenset(value)
    raise InvalidSetting(f"{name} is {value!r}; it must be a collection of {of}")


def check_callable(name: str, value: object, expected: str) -> None:
    """Checks a setting that is a callable or None.

    Raises:
        InvalidSetting: it is neither.
    """
    if value is not None and not callable(value):
        raise InvalidSetting(f"{name} is {value!r}; it must be {expected}")
