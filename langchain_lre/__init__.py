"""Learned relevance eviction for LangChain and LangGraph.

Each name is imported when it is first used, and needs only what it is made of: `langchain-core` for most,
`langchain` for agents, `langchain-classic` for `LREConversationMemory`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lre_core import MissingExtra

if TYPE_CHECKING:
    from langchain_lre.edit import LREEdit
    from langchain_lre.history import LREChatMessageHistory
    from langchain_lre.hook import lre_pre_model_hook
    from langchain_lre.memory import LREConversationMemory
    from langchain_lre.messages import to_message
    from langchain_lre.middleware import LREMiddleware
    from langchain_lre.settings import Settings
    from langchain_lre.trim import lre_trim_messages

__all__ = [
    "LREChatMessageHistory",
    "LREConversationMemory",
    "LREEdit",
    "LREMiddleware",
    "Settings",
    "lre_pre_model_hook",
    "lre_trim_messages",
    "to_message",
]

_HOMES = {
    "LREChatMessageHistory": "history",
    "LREConversationMemory": "memory",
    "LREEdit": "edit",
    "LREMiddleware": "middleware",
    "Settings": "settings",
    "lre_pre_model_hook": "hook",
    "lre_trim_messages": "trim",
    "to_message": "messages",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"langchain_lre.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if not missing.startswith(("langchain", "langgraph")) or missing.startswith(__name__):
            raise
        extra = "langchain-classic" if missing.startswith("langchain_classic") else "langchain"
        raise MissingExtra(f"langchain_lre.{name}", extra) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
