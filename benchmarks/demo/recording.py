"""What the model saw, prompt by prompt."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.demo.tokens import PromptCounter

CACHED_SHARE = 0.1
"""What providers bill for a token of an unchanged prefix, as a share of a fresh one."""


class OutOfSteps(Exception):
    """The run reached its step limit."""


@dataclass(frozen=True)
class ModelCall:
    """One prompt.

    Attributes:
        view: Indexes into the history of the messages in view, ascending.
        tokens: Tokens of the prompt: tool definitions, system message and messages in view.
        shared: Those of the longest prefix it shares with the prompt before.
    """

    view: tuple[int, ...]
    tokens: int
    shared: int

    @property
    def cost(self) -> float:
        """Tokens, those of the shared prefix at the price of cached ones."""
        return self.tokens - (1 - CACHED_SHARE) * self.shared


class Recorder(AgentMiddleware[Any, Any, Any]):
    """Sits next to the model, inside every policy, and writes down each prompt.

    Args:
        count: Counts tokens.
        limit: Model calls allowed.
        report: Called with the recorder after every recorded prompt.

    Attributes:
        history: All messages so far, in view or not.
        calls: One record a prompt.
    """

    def __init__(self, count: PromptCounter, limit: int, report: "Callable[[Recorder], None]") -> None:
        super().__init__()
        self.count = count
        self.limit = limit
        self.report = report
        self.history: list[BaseMessage] = []
        self.calls: list[ModelCall] = []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Record the prompt, then let the model answer it.

        Raises:
            OutOfSteps: The model was called `limit` times already.
        """
        self.history = list(request.state["messages"])
        if len(self.calls) == self.limit:
            raise OutOfSteps
        index = {message.id: at for at, message in enumerate(self.history)}
        fixed = self.count.tools(request.tools)
        if request.system_message is not None:
            fixed += self.count.message(request.system_message)
        self._record(tuple(index[message.id] for message in request.messages), fixed)
        self.report(self)
        response = handler(request)
        self.history += [message for message in response.result if isinstance(message, AIMessage)]
        return response

    def _record(self, view: tuple[int, ...], fixed: int) -> None:
        tokens = fixed + self.count.messages(self.history[at] for at in view)
        shared = 0
        if self.calls:
            same = takewhile(lambda pair: pair[0] == pair[1], zip(self.calls[-1].view, view, strict=False))
            shared = fixed + self.count.messages(self.history[at] for at, _ in same)
        self.calls.append(ModelCall(view, tokens, shared))
