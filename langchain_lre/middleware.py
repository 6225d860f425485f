"""Learned eviction for `langchain.agents.create_agent`: the model sees less, the graph's state keeps everything."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from langchain_lre.messages import to_message
from lre_core import Evictor, Scorer, View

try:
    from langchain.agents.middleware.types import ExtendedModelResponse
except ImportError:  # langchain before 1.2: no state can be returned from a model call, so each view stands alone
    ExtendedModelResponse = None  # type: ignore[assignment,misc]

__all__ = ["LREMiddleware"]

STATE_KEY = "lre_state"


class LREState(AgentState[Any]):
    """The agent's state, and what eviction has decided so far in this thread; plain JSON, for every checkpointer."""

    lre_state: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class LREMiddleware(AgentMiddleware[Any, Any, Any]):
    """Sends the model the messages it most likely still needs, verbatim, within a token budget.

    The system prompt and the tool definitions count against the budget. Only the model's view shrinks: the state, and
    with it the checkpointer, keeps every message. Put it outside a prompt-caching middleware.

        agent = create_agent(model, tools, middleware=[LREMiddleware(max_tokens=8_000)])

    Args:
        max_tokens: tokens a prompt may take, system prompt and tool definitions included.
        scorer: a `lre_core.Scorer`, the name of a bundled one, a path, or `auto`.
        keep_recent: the last units kept without asking the scorer, while they fit. A unit is a message, or a call with
            its results.
        token_counter: the name of a tiktoken encoding, or a callable from text to tokens.
        pin: says of a LangChain message whether it is always kept.
        whole_turn: keep everything since the last human message. By default finished tool steps older than the recent
            window compete for the budget, since an agent's run is one long turn.
        name: of this middleware in the graph, where one agent has several.

    Raises:
        lre_core.InvalidSetting: a budget under 1 or a setting out of range.
        lre_core.UnknownScorer: no bundled scorer of that name, and no file.
    """

    state_schema = LREState

    def __init__(
        self,
        max_tokens: int,
        *,
        scorer: Scorer | str = "auto",
        keep_recent: int = 5,
        token_counter: Callable[[str], int] | str = "o200k_base",
        pin: Callable[[BaseMessage], bool] | None = None,
        whole_turn: bool = False,
        name: str = "LREMiddleware",
    ) -> None:
        super().__init__()
        self.tools = []
        self._name = name
        self._tool_tokens: dict[int, tuple[object, int]] = {}
        self.evictor = Evictor(
            max_tokens,
            scorer=scorer,
            keep_recent=keep_recent,
            token_counter=token_counter,
            pin=pin,
            whole_turn=whole_turn,
            reader=to_message,
        )

    @property
    def name(self) -> str:
        """The name it has in the graph."""
        return self._name

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:
        """Calls the model with the messages in view."""
        view = self._view(request)
        return self._respond(handler(request.override(messages=view.messages)), view)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        """Calls the model with the messages in view."""
        view = self._view(request)
        return self._respond(await handler(request.override(messages=view.messages)), view)

    def _view(self, request: ModelRequest[Any]) -> View:
        reserved = sum(map(self._tokens_of_tool, request.tools))
        if request.system_message is not None:
            reserved += self.evictor.message_cost(to_message(request.system_message))
        state: Any = request.state.get(STATE_KEY, {}) if ExtendedModelResponse is not None else None
        return self.evictor.view(request.messages, state, reserved=reserved)

    def _respond(self, response: ModelResponse[Any] | AIMessage, view: View) -> Any:
        """Hands the decision back to the graph, which keeps it with the thread."""
        if ExtendedModelResponse is None:
            return response
        if isinstance(response, AIMessage):
            response = ModelResponse(result=[response])
        return ExtendedModelResponse(response, command=Command(update={STATE_KEY: view.state}))

    def _tokens_of_tool(self, tool: BaseTool | dict[str, Any]) -> int:
        """What a tool's definition costs, counted once: an agent offers the same tools on every call."""
        known = self._tool_tokens.get(id(tool))
        if known is None or known[0] is not tool:
            definition = json.dumps(convert_to_openai_tool(tool), ensure_ascii=False)
            known = self._tool_tokens[id(tool)] = (tool, self.evictor.count(definition))
        return known[1]
