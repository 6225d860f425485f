"""Learned eviction for `langgraph.prebuilt.create_react_agent(pre_model_hook=...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NotRequired, TypedDict, Unpack

from langchain_core.messages import AnyMessage

from langchain_lre.settings import Settings, evictor
from langchain_lre.threads import Threads, shown

__all__ = ["lre_pre_model_hook"]


class HookState(TypedDict):
    """What the hook reads of the graph's state. LangGraph adds `lre_state` to the graph for it, as private state."""

    messages: list[AnyMessage]
    lre_state: NotRequired[dict[str, Any]]


def lre_pre_model_hook(max_tokens: int, **settings: Unpack[Settings]) -> Callable[[HookState], dict[str, Any]]:
    """A hook after which the model sees the messages it most likely still needs, verbatim, within a token budget.

    The graph's state keeps every message, and what was decided, as plain JSON for every checkpointer. One hook serves
    any number of threads, called synchronously or not. Thinking blocks are treated as by `LREMiddleware`.

        agent = create_react_agent(model, tools, pre_model_hook=lre_pre_model_hook(8_000))

    Args:
        max_tokens: tokens the messages may take. A hook sees neither the prompt nor the tools of the agent: they come
            on top.
        **settings: `token_counter` and the other settings of `langchain_lre.Settings`.

    Returns:
        A function from the graph's state to `llm_input_messages`, which are there on every call and never empty
        (langgraph#8925), and `lre_state`.

    Raises:
        lre_core.InvalidSetting: a budget or a setting out of range.
        lre_core.UnknownScorer: no bundled scorer of that name, and no file.
    """
    chosen, threads = evictor(max_tokens, **settings), Threads()

    def evict_messages(state: HookState) -> dict[str, Any]:
        view = threads.view(chosen, state["messages"], state.get("lre_state"))
        return {
            "llm_input_messages": shown(state["messages"], view),
            "lre_state": view.state,
        }

    return evict_messages
