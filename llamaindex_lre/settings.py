"""The settings of an `Evictor` as an adapter's: what LlamaIndex needs by default, and how they are written down."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from llama_index.core.base.llms.types import ChatMessage

from llamaindex_lre.messages import to_message
from lre_core import Evictor, Message, Scorer, Settings

__all__ = ["NAMES", "dump_settings", "evictor_of", "load_settings", "take_settings"]

logger = logging.getLogger(__name__)

NAMES = frozenset(Settings.__annotations__)


def take_settings(arguments: dict[str, Any]) -> dict[str, Any]:
    """Takes those of the keyword arguments that are an evictor's settings."""
    return {name: arguments.pop(name) for name in NAMES.intersection(arguments)}


def evictor_of(
    budget: int, settings: Mapping[str, Any], reader: Callable[[Any], Message] = to_message, **defaults: Any
) -> Evictor:
    """An evictor for LlamaIndex's messages.

    A run of an agent is often one long turn, so finished steps compete too unless `whole_turn` is set.

    Raises:
        lre_core.InvalidSetting: a budget under 1 or a setting out of range.
        lre_core.UnknownScorer: no bundled scorer of that name, and no file.
    """
    settings = {"whole_turn": False, "reader": reader, **defaults, **settings}
    if settings.get("note") is True:
        settings["note"] = _note
    return Evictor(budget, **settings)


def _note(messages: int, tokens: int) -> ChatMessage:
    return ChatMessage(role="user", content=f"[{messages:,} earlier messages were left out here, {tokens:,} tokens]")


def dump_settings(settings: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as plain JSON.

    A callable cannot be written and is left out; a log record says so unless it is in the default.
    """
    written: dict[str, Any] = {}
    for name, setting in settings.items():
        if isinstance(setting, Scorer):
            written[name] = json.loads(setting.to_json())
        elif isinstance(setting, Collection) and not isinstance(setting, str):
            written[name] = sorted(setting)
        elif not callable(setting):
            written[name] = setting
        elif setting is not default.get(name):
            logger.warning("A %s cannot be written down; give it again: from_dict(..., %s=...)", name, name)
    return written


def load_settings(written: Mapping[str, Any]) -> dict[str, Any]:
    """Reads `dump_settings`.

    Raises:
        lre_core.InvalidScorer: a scorer that was written by a version this one cannot read.
    """
    settings = dict(written)
    if isinstance(settings.get("scorer"), Mapping):
        settings["scorer"] = Scorer.from_json(json.dumps(settings["scorer"]))
    return settings
