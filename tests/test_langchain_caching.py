"""Prompt caching behind LRE: what is marked for the provider's cache is what is sent, and the cache goes on hitting.

The model is langchain-anthropic's own, and what it sends goes over HTTP to a server of the test's.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from agents import look, stored
from anthropic_api import anthropic_api
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr

from langchain_lre import LREMiddleware

BUDGET = 3_000
STEPS = 24
TURNS = 2
THREAD: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 100}


def script() -> Iterator[list[dict[str, Any]]]:
    for turn in range(TURNS):
        for step in range(STEPS):
            shelf = turn * STEPS + step
            yield [{"type": "tool_use", "id": f"toolu_{shelf}", "name": "look", "input": {"shelf": shelf}}]
        yield [{"type": "text", "text": f"Done, turn {turn}."}]


def run(*middleware: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """The requests of an agent's two turns, and the messages its state holds in the end."""
    with anthropic_api(script()) as (address, requests):
        model = ChatAnthropic(
            model_name="claude-of-the-test",
            base_url=address,
            api_key=SecretStr("none"),
            timeout=10,
            stop=None,
            max_retries=0,
        )
        graph = create_agent(
            model, [look], system_prompt="Keep the store room.", middleware=middleware, checkpointer=InMemorySaver()
        )
        for turn in range(TURNS):
            result = graph.invoke({"messages": [HumanMessage(f"Turn {turn}: what is there?")]}, THREAD)
    return requests, stored(result)


def marked(request: dict[str, Any]) -> list[int]:
    """Which messages of a request are marked for the cache; a mark on the request means its last message."""
    messages = request["messages"]
    found = {len(messages) - 1} if "cache_control" in request else set()
    for n, message in enumerate(messages):
        if any("cache_control" in block for block in message["content"] if isinstance(block, dict)):
            found.add(n)
    return sorted(found)


def unmarked(request: dict[str, Any]) -> list[Any]:
    """The messages of a request without marks, a text as a block."""
    return [
        [
            message["role"],
            [
                {name: value for name, value in block.items() if name != "cache_control"}
                for block in (
                    [{"type": "text", "text": message["content"]}]
                    if isinstance(message["content"], str)
                    else message["content"]
                )
            ],
        ]
        for message in request["messages"]
    ]


def test_what_is_marked_for_the_cache_is_the_end_of_what_is_sent() -> None:
    requests, kept = run(LREMiddleware(BUDGET), AnthropicPromptCachingMiddleware())
    assert len(requests) == TURNS * (STEPS + 1)
    assert len(requests[-1]["messages"]) < len(kept) / 2
    for request in requests:
        assert marked(request) == [len(request["messages"]) - 1]
    assert not any("cache_control" in str(message.content) for message in kept)
    assert sum(isinstance(message, ToolMessage) for message in kept) == TURNS * STEPS


def test_marks_change_nothing_in_what_is_kept() -> None:
    with_marks, _ = run(LREMiddleware(BUDGET), AnthropicPromptCachingMiddleware())
    without, _ = run(LREMiddleware(BUDGET))
    assert list(map(unmarked, with_marks)) == list(map(unmarked, without))


def test_promise_5_most_of_a_request_is_what_the_one_before_began_with() -> None:
    """Trimmed on every call, nothing but the question would be once the budget is reached."""
    requests, _ = run(LREMiddleware(BUDGET), AnthropicPromptCachingMiddleware())
    sent = list(map(unmarked, requests))
    same = [[one == other for one, other in zip(before, after, strict=False)] for before, after in pairwise(sent)]
    shared = [[*alike, False].index(False) / len(before) for alike, before in zip(same, sent, strict=False)]
    after_the_first_eviction = shared[next(at for at, share in enumerate(shared) if share < 1) :]
    assert len(after_the_first_eviction) > STEPS
    assert sum(after_the_first_eviction) >= 0.6 * len(after_the_first_eviction)


def test_the_order_decides_whether_the_view_or_the_state_is_what_the_caching_middleware_counts() -> None:
    evicting, caching = LREMiddleware(BUDGET), AnthropicPromptCachingMiddleware(min_messages_to_cache=40)
    requests, kept = run(evicting, caching)
    assert max(len(request["messages"]) for request in requests) < 40 < len(kept)
    assert not any(map(marked, requests))
    requests, _ = run(caching, evicting)
    assert any(map(marked, requests))
