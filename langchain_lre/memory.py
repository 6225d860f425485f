"""Learned eviction in the place of the classic `ConversationBufferMemory` and `ConversationTokenBufferMemory`."""

from __future__ import annotations

from typing import Any

from langchain_classic.memory.chat_memory import BaseChatMemory
from langchain_core.chat_history import BaseChatMessageHistory, InMemoryChatMessageHistory
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage, get_buffer_string
from pydantic import ConfigDict, Field, PrivateAttr

from langchain_lre.replay import Replays, replays
from langchain_lre.settings import Settings
from lre_core import View

__all__ = ["LREConversationMemory"]


class InMemoryHistory(InMemoryChatMessageHistory):
    """LangChain's history in memory, which warns of its deprecation unless it is a subclass."""


class LREConversationMemory(BaseChatMemory):
    """A conversation of which the chain sees the messages worth keeping, while `chat_memory` keeps every one.

        chain = ConversationChain(llm=llm, memory=LREConversationMemory(max_token_limit=2_048))

    Takes what `ConversationBufferMemory` and `ConversationTokenBufferMemory` take. What the chain sees follows from
    what is stored and the settings alone: over a stored `chat_memory` it is the same after a restart.

    Args:
        max_token_limit: tokens the history may take in the prompt.
        llm: a model that counts the tokens, as for `ConversationTokenBufferMemory`; in place of `token_counter`.
        chat_memory: where messages are stored; any `BaseChatMessageHistory`, in memory by default.
        memory_key: the prompt's variable for the history.
        return_messages: give the prompt messages, not one text.
        human_prefix: whose words they are in the text.
        ai_prefix: the same for the assistant.
        input_key: which of a chain's inputs is the question, where there are several.
        output_key: which of its outputs is the answer, where there are several.
        settings: `token_counter` and the other settings of `langchain_lre.Settings`, by name.

    Raises:
        lre_core.InvalidSetting: a budget under 1 or a setting out of range.
        lre_core.UnknownScorer: no bundled scorer of that name, and no file.
        pydantic.ValidationError: a name or value that is none of these.
    """

    model_config = ConfigDict(extra="forbid")

    chat_memory: BaseChatMessageHistory = Field(default_factory=InMemoryHistory)
    max_token_limit: int = 2_048
    llm: BaseLanguageModel | None = None  # type: ignore[type-arg]
    memory_key: str = "history"
    human_prefix: str = "Human"
    ai_prefix: str = "AI"
    _replays: Replays = PrivateAttr()

    def __init__(self, **fields: Any) -> None:
        settings: Settings = {}
        for name in Settings.__annotations__.keys() & fields.keys():
            settings[name] = fields.pop(name)  # type: ignore[literal-required]
        super().__init__(**fields)
        if self.llm is not None:
            settings.setdefault("token_counter", self.llm)
        self._replays = replays(self.max_token_limit, settings)

    @property
    def memory_variables(self) -> list[str]:
        """The prompt's variable for the history."""
        return [self.memory_key]

    @property
    def view(self) -> View:
        """What is in view and why: which messages left, their scores, what they cost."""
        return self._replays.view(list(self.chat_memory.messages))

    @property
    def buffer(self) -> str | list[BaseMessage]:
        """The history as the prompt gets it."""
        return self._buffer(self.view)

    @property
    def buffer_as_str(self) -> str:
        """The history as one text."""
        return self._text(self.view.messages)

    @property
    def buffer_as_messages(self) -> list[BaseMessage]:
        """The messages in view."""
        return list(self.view.messages)

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The history as the prompt gets it, under `memory_key`."""
        return {self.memory_key: self.buffer}

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """The history as the prompt gets it, under `memory_key`."""
        stored = await self.chat_memory.aget_messages()
        return {self.memory_key: self._buffer(self._replays.view(list(stored)))}

    def _buffer(self, view: View) -> str | list[BaseMessage]:
        return list(view.messages) if self.return_messages else self._text(view.messages)

    def _text(self, messages: list[BaseMessage]) -> str:
        return get_buffer_string(messages, human_prefix=self.human_prefix, ai_prefix=self.ai_prefix)
