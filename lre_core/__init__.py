"""Learned relevance eviction: keep what an LLM agent still needs, verbatim, under its token budget."""

from lre_core import labels, logs
from lre_core.errors import (
    InvalidMessage,
    InvalidScorer,
    InvalidSetting,
    LogError,
    LREError,
    MissingExtra,
    ScorerError,
    TrainingError,
    UnknownScorer,
)
from lre_core.eviction import Eviction, Evictor, Session, Settings, View, evict
from lre_core.messages import ChatMessage, Message, ToolCall
from lre_core.recall import Recalled
from lre_core.scorer import Scorer, bundled_scorers
from lre_core.units import Unit, group

__all__ = [
    "ChatMessage",
    "Eviction",
    "Evictor",
    "InvalidMessage",
    "InvalidScorer",
    "InvalidSetting",
    "LREError",
    "LogError",
    "Message",
    "MissingExtra",
    "Recalled",
    "Scorer",
    "ScorerError",
    "Session",
    "Settings",
    "ToolCall",
    "TrainingError",
    "Unit",
    "UnknownScorer",
    "View",
    "bundled_scorers",
    "evict",
    "group",
    "labels",
    "logs",
]
