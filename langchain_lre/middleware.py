"""Learned eviction for `langchain.agents.create_agent`: the model sees less, the graph's state keeps everything."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any, NotRequired, Unpack

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from langchain_lre.messages import to_message
from langchain_lre.recall import recall_tool
from langchain_lre.settings import Settings, evictor
from langchain_lre.threads import STATE_KEY, Threads, shown
from lre_core import Evictor, InvalidSetting, View

try:
    from langchain.agents.middleware.types import ExtendedModelResponse
except ImportError:  # langchain before 1.2: a model call cannot return state, so it follows from the messages alone
    ExtendedModelResponse = None  # type: ignore[assignment,misc]
try:
    from langchain_core.exceptions import ContextOverflowError
except ImportError:  # langchain-core before 1.2 has no one name for it

    class ContextOverflowError(Exception):  # type: ignore[no-redef]
        """Raised by no model."""


__all__ = ["LREMiddleware"]

RETRY_SHARE = 2 / 3
"""How much of a prompt that was too long for the model is sent when it is tried again."""
RECALLED_SHARE, RECALLED_TOKENS = 1 / 4, 2_000
"""What one answer of the recall tool may take: a share of the budget, and not more than that many tokens."""
KNOWN_DEFINITIONS = 1_024


class LREState(AgentState[Any]):
    """The agent's state, and what eviction has decided so far in this thread; plain JSON, for every checkpointer."""

    lre_state: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class LREMiddleware(AgentMiddleware[Any, Any]):
    """Sends the model the messages it most likely still needs, verbatim, within a token budget.

    The system prompt, the tool definitions and the schema of a structured answer count against the budget. Only the
    model's view shrinks: the state, and with it the checkpointer, keeps every message. One middleware serves any
    number of threads, and a restarted process goes on with what was decided.

        agent = create_agent(model, tools, middleware=[LREMiddleware(max_tokens=8_000)])

    A model that finds the prompt too long all the same (`ContextOverflowError`) is asked once more, with two thirds of
    it. Put it before a prompt-caching middleware in the list, so that what is marked for the cache is what is sent.
    Where the provider keeps the conversation (`ChatOpenAI(use_previous_response_id=True)`) it saves nothing.

    Verbatim but for one thing: Claude's thinking blocks are left out of messages of earlier turns when something before
    them has left, since they are signed for the prompt they were thought in. The model then sees a copy of the message
    without them; the state keeps the message as it was.

    Args:
        max_tokens: tokens a prompt may take, or a fraction of the model's `profile["max_input_tokens"]`.
        recall: give the model a tool, `recall`, that searches what has left its view in this thread, and answers with
            it word for word, in at most a quarter of the budget. Needs the `recall` extra.
        name: of this middleware in the graph.
        **settings: `token_counter` and the other settings of `langchain_lre.Settings`.

    Raises:
        lre_core.InvalidSetting: a budget or a setting out of range; on a call, that the model has no profile to take
            a fraction of.
        lre_core.UnknownScorer: no bundled scorer of that name, and no file.
        lre_core.MissingExtra: `recall` without bm25s.
    """

    state_schema = LREState

    def __init__(
        self, max_tokens: float, *, recall: bool = False, name: str = "LREMiddleware", **settings: Unpack[Settings]
    ) -> None:
        super().__init__()
        if isinstance(max_tokens, float) and not 0 < max_tokens < 1:
            raise InvalidSetting(f"max_tokens is {max_tokens}; it must be a whole number or a fraction between 0 and 1")
        self.max_tokens = max_tokens
        self._name = name
        # Where the budget is a fraction this one only checks the settings and counts.
        self._evictor = evictor(max_tokens if isinstance(max_tokens, int) else 1, **settings)
        self._evictors = {self._evictor.budget: self._evictor}
        self._threads = Threads()
        room = int(RECALLED_SHARE * max_tokens) if isinstance(max_tokens, int) else RECALLED_TOKENS
        self.tools = [recall_tool(self._threads, self._evictor, min(room, RECALLED_TOKENS))] if recall else []
        self._definitions: dict[int, tuple[object, int]] = {}

    @property
    def name(self) -> str:
        """The name it has in the graph."""
        return self._name

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:
        """Calls the model with the messages in view."""
        view = self._view(request)
        try:
            response = handler(self._shown(request, view))
        except ContextOverflowError:
            smaller = self._smaller(request, view)
            if smaller is None:
                raise
            view = smaller
            response = handler(self._shown(request, view))
        return self._with_state(request, response, view)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        """Calls the model with the messages in view."""
        view = self._view(request)
        try:
            response = await handler(self._shown(request, view))
        except ContextOverflowError:
            smaller = self._smaller(request, view)
            if smaller is None:
                raise
            view = smaller
            response = await handler(self._shown(request, view))
        return self._with_state(request, response, view)

    def _view(self, request: ModelRequest[Any]) -> View:
        state: Any = request.state.get(STATE_KEY)
        return self._threads.view(self._evictor_for(request.model), request.messages, state, self._reserved(request))

    def _smaller(self, request: ModelRequest[Any], view: View) -> View | None:
        """The view to try after one that was too long; None if nothing more can leave."""
        evictor, reserved = self._evictor_for(request.model), self._reserved(request)
        spare = max(0, evictor.budget - int(RETRY_SHARE * (view.tokens + reserved)))
        smaller = self._threads.view(evictor, request.messages, view.state, reserved + spare)
        return smaller if len(smaller.kept) < len(view.kept) else None

    @staticmethod
    def _shown(request: ModelRequest[Any], view: View) -> ModelRequest[Any]:
        return request.override(messages=shown(request.messages, view))  # type: ignore[arg-type]

    @staticmethod
    def _with_state(request: ModelRequest[Any], response: ModelResponse[Any] | AIMessage, view: View) -> Any:
        """Hands the decision back to the graph, which keeps it with the thread."""
        if ExtendedModelResponse is None or view.state == request.state.get(STATE_KEY):
            return response
        if isinstance(response, AIMessage):
            response = ModelResponse(result=[response])
        return ExtendedModelResponse(response, command=Command(update={STATE_KEY: view.state}))

    def _evictor_for(self, model: BaseChatModel) -> Evictor:
        if isinstance(self.max_tokens, int):
            return self._evictor
        limit = (getattr(model, "profile", None) or {}).get("max_input_tokens")
        if limit is None:
            raise InvalidSetting(
                f"max_tokens is the fraction {self.max_tokens}, but {type(model).__name__} has no profile with "
                "'max_input_tokens'; give a number of tokens, or the model profile={'max_input_tokens': ...}"
            )
        budget = int(self.max_tokens * limit)
        if budget not in self._evictors:
            self._evictors[budget] = replace(self._evictor, budget=budget)
        return self._evictors[budget]

    def _reserved(self, request: ModelRequest[Any]) -> int:
        """Tokens the prompt spends beside its messages."""
        tokens = sum(map(self._tokens_of, request.tools))
        if request.response_format is not None:
            tokens += self._tokens_of(request.response_format)
        if request.system_message is not None:
            tokens += self._evictor.message_cost(to_message(request.system_message), request.system_message)
        return tokens

    def _tokens_of(self, definition: Any) -> int:
        """What the definition of a tool or of a structured answer costs, counted once: it is the same on every call."""
        known = self._definitions.get(id(definition))
        if known is None or known[0] is not definition:
            if len(self._definitions) >= KNOWN_DEFINITIONS:
                self._definitions.clear()
            text = json.dumps(_schemas(definition), ensure_ascii=False, default=str)
            known = self._definitions[id(definition)] = (definition, self._evictor.count(text))
        return known[1]


def _schemas(definition: Any) -> Any:
    """The JSON that describes a tool or a structured answer to the model."""
    if isinstance(definition, dict):
        return definition
    if isinstance(definition, BaseTool):
        return convert_to_openai_tool(definition)
    answer = definition.schema if isinstance(definition, AutoStrategy | ProviderStrategy | ToolStrategy) else definition
    return [[spec.name, spec.description, spec.json_schema] for spec in ToolStrategy(answer).schema_specs]
