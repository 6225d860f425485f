"""What a prompt costs: its messages, and the definitions of the tools it offers."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_lre import to_message
from lre_core.tokens import counter, message_tokens


class PromptCounter:
    """Counts tokens for every policy and every figure of the demo, each message once.

    Args:
        encoding: Name of a tiktoken encoding.
    """

    def __init__(self, encoding: str = "o200k_base") -> None:
        self._count = counter(encoding)
        self._messages: dict[str, int] = {}
        self._tools: dict[str, int] = {}

    def message(self, message: BaseMessage) -> int:
        """Tokens of a message: its text, its calls with their arguments, and a message's overhead."""
        key = message.id
        if key is None:
            return message_tokens(to_message(message), self._count)
        if key not in self._messages:
            self._messages[key] = message_tokens(to_message(message), self._count)
        return self._messages[key]

    def messages(self, messages: Iterable[BaseMessage]) -> int:
        """Tokens of several messages, as `trim_messages` wants its counter."""
        return sum(map(self.message, messages))

    def tools(self, tools: Sequence[BaseTool | dict[str, Any]]) -> int:
        """Tokens of tool definitions, in the JSON that providers are sent."""
        return sum(map(self._tool, tools))

    def _tool(self, tool: BaseTool | dict[str, Any]) -> int:
        definition = convert_to_openai_tool(tool)
        name = definition["function"]["name"]
        if name not in self._tools:
            self._tools[name] = self._count(json.dumps(definition, ensure_ascii=False))
        return self._tools[name]
