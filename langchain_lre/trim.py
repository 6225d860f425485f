"""Learned eviction in the place of `langchain_core.messages.trim_messages`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Unpack, overload

from langchain_core.messages import BaseMessage, HumanMessage, MessageLikeRepresentation
from langchain_core.messages.utils import convert_to_messages
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_lre.replay import replays
from langchain_lre.settings import Settings
from lre_core import InvalidSetting

__all__ = ["lre_trim_messages"]

MessageType = str | type[BaseMessage]
MessageTypes = MessageType | Sequence[MessageType] | None
Messages = Iterable[MessageLikeRepresentation] | PromptValue


@overload
def lre_trim_messages(
    messages: None = None,
    *,
    max_tokens: int,
    strategy: Literal["last"] = "last",
    allow_partial: Literal[False] = False,
    end_on: MessageTypes = None,
    start_on: MessageTypes = None,
    include_system: Literal[True] = True,
    text_splitter: object = None,
    **settings: Unpack[Settings],
) -> Runnable[Messages, list[BaseMessage]]: ...


@overload
def lre_trim_messages(
    messages: Messages,
    *,
    max_tokens: int,
    strategy: Literal["last"] = "last",
    allow_partial: Literal[False] = False,
    end_on: MessageTypes = None,
    start_on: MessageTypes = None,
    include_system: Literal[True] = True,
    text_splitter: object = None,
    **settings: Unpack[Settings],
) -> list[BaseMessage]: ...


def lre_trim_messages(
    messages: Messages | None = None,
    *,
    max_tokens: int,
    strategy: str = "last",
    allow_partial: bool = False,
    end_on: MessageTypes = None,
    start_on: MessageTypes = None,
    include_system: bool = True,
    text_splitter: object = None,
    **settings: Unpack[Settings],
) -> list[BaseMessage] | Runnable[Messages, list[BaseMessage]]:
    """The messages worth sending, in place of the last that fit; takes what `trim_messages` takes.

        chain = prompt | lre_trim_messages(max_tokens=2_048) | model

    The result follows from the messages and the settings alone, and is stable while a history grows: what has left
    stays out, and the beginning mostly stays as it was, so that the provider's prompt cache goes on hitting. The
    histories lately trimmed are remembered, so that a new message costs its own length.

    Args:
        messages: the whole history, oldest first; anything `trim_messages` takes. Without them, the result is a
            `Runnable` that takes them.
        max_tokens: tokens the result may take. System messages, the last human message and what follows it are always
            kept and can exceed it on their own.
        strategy: `last`. The newest messages are kept for being new; the older compete.
        allow_partial: False. Messages are kept word for word.
        end_on: drop everything after the last message of these types (`"human"`, `HumanMessage`, or several) first.
        start_on: the first message after the system's is always human, so `human` must be among these types.
        include_system: True. System messages are always kept.
        text_splitter: ignored, as by `trim_messages` without partial messages.
        settings: `token_counter` and the other settings of `langchain_lre.Settings`.

    Returns:
        The message objects given, fewer of them, in their order (converted first, where they were dicts or tuples).

    Raises:
        lre_core.InvalidSetting: an option that eviction cannot honour, a budget under 1, or a setting out of range.
        lre_core.InvalidMessage: a message that no provider takes, such as a `RemoveMessage`.
    """
    if strategy != "last":
        raise InvalidSetting(f"strategy is {strategy!r}; eviction keeps the newest messages and the best of the older")
    if allow_partial:
        raise InvalidSetting("allow_partial is true; eviction keeps a message word for word or leaves it out")
    if not include_system:
        raise InvalidSetting("include_system is false; system messages are always kept: take them out beforehand")
    if start_on is not None and not any(kind in ("human", HumanMessage) for kind in _types(start_on)):
        raise InvalidSetting(f"start_on is {start_on!r}; the first message after the system's is always human")
    histories = replays(max_tokens, settings)

    def trim(messages: Messages) -> list[BaseMessage]:
        history = _as_messages(messages)
        if end_on is not None:
            while history and not _is_one_of(history[-1], _types(end_on)):
                history.pop()
        return histories.view(history).messages

    if messages is not None:
        return trim(messages)
    return RunnableLambda(trim, name="lre_trim_messages")


def _as_messages(messages: Messages) -> list[BaseMessage]:
    """A list of one's own; LangChain's conversion looks at every message and costs more than the rest of a turn."""
    given: Any = messages if isinstance(messages, PromptValue) else list(messages)
    if isinstance(given, list) and all(issubclass(kind, BaseMessage) for kind in set(map(type, given))):
        return given
    return convert_to_messages(given)


def _types(types: MessageType | Sequence[MessageType]) -> Sequence[MessageType]:
    return [types] if isinstance(types, str | type) else types


def _is_one_of(message: BaseMessage, types: Sequence[MessageType]) -> bool:
    names = {kind for kind in types if isinstance(kind, str)}
    return message.type in names or isinstance(message, tuple(kind for kind in types if isinstance(kind, type)))
