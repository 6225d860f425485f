"""Three ways to choose what the model sees. Each leaves the graph's state as it is.

Both ways that keep a budget always keep the system message and every human message: the person's own words are the
task, and email and password stand nowhere else.
"""

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, trim_messages

from benchmarks.demo.tokens import PromptCounter
from langchain_lre import LREMiddleware

Middleware = AgentMiddleware[Any, Any, Any]

EVERYTHING, RECENCY, LRE = POLICIES = ("everything", "recency", "LRE")


def middleware(policy: str, budget: int, count: PromptCounter) -> list[Middleware]:
    """What stands between the history and the model under a policy.

    Args:
        policy: One of `POLICIES`.
        budget: Tokens a prompt may take, tool definitions and system message included.
        count: Counts tokens.
    """
    if policy == EVERYTHING:
        return []
    if policy == RECENCY:
        return [Recency(budget, count)]
    return [LREMiddleware(budget, pin=_is_human)]


def _is_human(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage)


class Recency(Middleware):
    """The newest steps that fit, by LangChain's `trim_messages`, set up as a careful user would: steps stay whole.

    Args:
        budget: Tokens a prompt may take, tool definitions and system message included.
        count: Counts tokens.
    """

    def __init__(self, budget: int, count: PromptCounter) -> None:
        super().__init__()
        self.budget = budget
        self.count = count

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model the trimmed history."""
        fixed = self.count.tools(request.tools)
        if request.system_message is not None:
            fixed += self.count.message(request.system_message)
        return handler(request.override(messages=self._trimmed(request.messages, self.budget - fixed)))

    def _trimmed(self, messages: Sequence[AnyMessage], room: int) -> list[AnyMessage]:
        asked = [message for message in messages if _is_human(message)]
        work = [message for message in messages if not _is_human(message)]
        recent: list[BaseMessage] = trim_messages(
            work,
            strategy="last",
            max_tokens=max(0, room - self.count.messages(asked)),
            token_counter=self.count.messages,
            start_on="ai",
        )
        kept = {message.id for message in [*asked, *recent]}
        return [message for message in messages if message.id in kept]
