"""From one JSON value of a log to the histories in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeGuard

from lre_core.logs.dialects import Chat, Unreadable, dialect, is_message
from lre_core.logs.records import kind_of

__all__ = ["Found", "elements", "histories_in"]

GROUP_KEYS = ("group", "thread_id", "conversation_id", "session_id", "trace_id", "task")
REQUEST_KEYS = ("request", "body", "kwargs", "inputs", "input")
RESPONSE_KEYS = ("response", "completion", "outputs", "output")
ENVELOPE_KEYS = ("runs", "data")
EXPECTED = "expected an array of messages or an object with 'messages'"


@dataclass(slots=True)
class Found:
    """A history as a log's value holds it.

    Attributes:
        messages: the logged messages, in their framework's words.
        format: which format it was found in.
        id: the log's own id of it.
        group: what it belongs to: a thread, a session, a trace, a task.
        questions: what was asked of it afterwards.
        grows: whether it is one call to a model, which the next call may repeat and extend.
    """

    messages: list[Any]
    format: str
    id: object = None
    group: object = None
    questions: list[Any] = field(default_factory=list)
    grows: bool = False


def elements(value: object) -> list[Any] | None:
    """The parts of a document that holds several histories: an array of them, or what a runs query answers."""
    for key in ENVELOPE_KEYS:
        if isinstance(value, dict) and _is_list(value.get(key)) and "messages" not in value:
            value = value[key]
    several = _is_list(value) and value and isinstance(value[0], dict | list) and not is_message(value[0])
    return value if several and _is_list(value) else None


def histories_in(value: object) -> Iterator[Found]:
    """The histories a JSON value holds: none for what belongs to a log without being one, such as a tool's run.

    Raises:
        Unreadable: it is nothing a log holds.
    """
    if isinstance(value, list):
        yield Found(value, _format(value))
    elif not isinstance(value, dict):
        raise Unreadable(f"{EXPECTED}, found {kind_of(value)}")
    elif isinstance(value.get("run_type"), str):
        yield from _langsmith(value)
    elif isinstance(value.get("steps"), list) and ("agent" in value or "schema_version" in value):
        yield from _atif(value)
    elif isinstance(value.get("chat_store", value.get("store")), dict):
        yield from _llamaindex(value)
    else:
        yield _call(value)


def _format(messages: object) -> str:
    """The dialect of most weight: a plain chat message is OpenAI's as well as anyone's."""
    spoken = [dialect(message) for message in messages if isinstance(message, dict)] if _is_list(messages) else []
    return next((name for name in spoken if name not in ("", "openai")), "openai")


def _call(record: Chat) -> Found:
    """A history, or one call to a model: `messages` with or without a response, or a request with its response."""
    request, response = _request(record), _response(record)
    if request is None:
        raise Unreadable(f"{EXPECTED}, found {kind_of(record)}")
    messages = _opening(request) + (request["messages"] if "messages" in request else _items(request["input"]))
    answer = [] if response is None else _answer(response)
    written = _format(messages + answer)
    if (isinstance(response, dict) and response.get("type") == "message") or "system" in request:
        written = "anthropic"
    elif "messages" not in request:
        written = "openai-responses"
    return Found(
        messages + answer,
        written,
        record.get("id", record.get("custom_id")),
        _group(record) or _group(request),
        _list(record.get("questions") or [], "questions"),
        grows=response is not None or request is not record,
    )


def _request(record: Chat) -> Chat | None:
    if "messages" in record:
        _list(record["messages"], "messages")
        if not record["messages"]:
            raise Unreadable("a history without messages")
        return record
    if "input" in record and ("output" in record or "model" in record) and _is_items(record["input"]):
        return record
    for key in REQUEST_KEYS:
        inner = _unpacked(record.get(key))
        if isinstance(inner, dict):
            found = _request(inner)
            if found is not None:
                return found
    return None


def _response(record: Chat) -> Any:
    if "choices" in record:
        return record
    for key in RESPONSE_KEYS:
        if record.get(key) is not None and not (isinstance(record[key], str) and key.startswith("output")):
            inner = _unpacked(record[key])
            return _unpacked(inner["body"]) if isinstance(inner, dict) and "body" in inner else inner
    return None


def _unpacked(value: object) -> object:
    """JSON that was logged as text, as bodies of requests often are."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        parsed: object = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed


def _opening(request: Chat) -> list[Any]:
    """The system message that Anthropic's and the Responses API's requests keep beside the others."""
    system = request.get("system", request.get("instructions"))
    return [{"role": "system", "content": system}] if isinstance(system, str | list) and system else []


def _is_items(value: object) -> bool:
    return isinstance(value, str) or (_is_list(value) and all(map(is_message, value)))


def _items(value: str | list[Any]) -> list[Any]:
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


def _answer(response: object) -> list[Any]:
    """The messages a response holds; a failed one, or one of another kind, holds none."""
    if isinstance(response, str):
        return [{"role": "assistant", "content": response}]
    if isinstance(response, list):
        return response if response and all(map(is_message, response)) else []
    if not isinstance(response, dict):
        return []
    choices = response.get("choices")
    if isinstance(choices, list):
        message = choices[0].get("message") if choices and isinstance(choices[0], dict) else None
        return [message] if isinstance(message, dict) else []
    if isinstance(response.get("output"), list):
        return [item for item in response["output"] if is_message(item)]
    for inner in (response, response.get("message"), response.get("output")):
        if isinstance(inner, dict) and is_message(inner):
            return [inner]
    return []


def _langsmith(run: Chat) -> Iterator[Found]:
    """The model calls and the root of a trace; other runs hold no history of their own."""
    inputs, outputs = _unpacked(run.get("inputs")), _unpacked(run.get("outputs"))
    kind = run["run_type"]
    if (kind == "llm" or (kind == "chain" and not run.get("parent_run_id"))) and isinstance(inputs, dict):
        asked = _messages_of(inputs)
        answered = _generated(outputs) if isinstance(outputs, dict) else []
        # A LangGraph run gives back the whole state, which begins with what it was given.
        whole = answered if kind == "chain" and len(answered) >= len(asked) else asked + answered
        if whole:
            extra = run.get("extra")
            metadata = extra.get("metadata") if isinstance(extra, dict) else None
            thread = _group(metadata) if isinstance(metadata, dict) else None
            yield Found(whole, "langsmith", run.get("id"), thread or _group(run), grows=True)
    for child in run.get("child_runs") or ():
        if isinstance(child, dict) and isinstance(child.get("run_type"), str):
            yield from _langsmith(child)


def _messages_of(state: Chat) -> list[Any]:
    """`messages` of a run's inputs or outputs, which LangChain keeps in a batch of one."""
    for key in ("messages", "input", "output"):
        messages = state.get(key)
        if _is_list(messages) and len(messages) == 1 and _is_list(messages[0]):
            messages = messages[0]
        if _is_list(messages) and messages and all(map(is_message, messages)):
            return _opening(state) + messages
    return []


def _generated(outputs: Chat) -> list[Any]:
    generations = outputs.get("generations")
    while _is_list(generations) and generations:
        generations = generations[0]
    if isinstance(generations, dict):
        message = generations.get("message")
        text = generations.get("text")
        return [message] if isinstance(message, dict) else [{"role": "assistant", "content": text}] if text else []
    return _messages_of(outputs) or _answer(outputs)


def _llamaindex(value: Chat) -> Iterator[Found]:
    """A `SimpleChatStore`, or a memory that holds one: a history a key."""
    store = value.get("chat_store", value)
    store = store.get("store") if isinstance(store, dict) else None
    if not isinstance(store, dict):
        raise Unreadable(f"a chat store without 'store': found {kind_of(value.get('chat_store', value))}")
    for key, messages in store.items():
        if _list(messages, key):
            yield Found(messages, "llamaindex", key)


def _atif(trajectory: Chat) -> Iterator[Found]:
    """A trajectory, and those of its subagents."""
    messages: list[Any] = []
    for step in trajectory["steps"]:
        if not isinstance(step, dict):
            raise Unreadable(f"a step is {kind_of(step)}; expected an object")
        messages += _atif_step(step)
    identity = trajectory.get("trajectory_id") or trajectory.get("session_id")
    yield Found(messages, "atif", identity, _group(trajectory))
    for child in trajectory.get("subagent_trajectories") or ():
        if isinstance(child, dict) and isinstance(child.get("steps"), list):
            for found in _atif(child):
                found.group = _group(trajectory) or found.group
                yield found


def _atif_step(step: Chat) -> Iterator[Chat]:
    source = step.get("source")
    said = {"role": "assistant" if source == "agent" else source, "content": step.get("message")}
    seconds = _seconds(step.get("timestamp"))
    calls = _list(step.get("tool_calls") or [], "tool_calls")
    if calls:
        said["tool_calls"] = [
            {
                "id": call.get("tool_call_id"),
                "type": "function",
                "function": {"name": call.get("function_name"), "arguments": json.dumps(call.get("arguments") or {})},
            }
            for call in calls
            if isinstance(call, dict)
        ]
    yield said | ({} if seconds is None else {"timestamp": seconds})
    observation = step.get("observation")
    results = observation.get("results") if isinstance(observation, dict) else None
    for result in _list(results or [], "results"):
        if not isinstance(result, dict):
            raise Unreadable(f"a result is {kind_of(result)}; expected an object")
        content = result.get("content")
        if not calls:
            # What the environment shows an agent that calls no tools, such as a terminal's screen.
            yield {"role": "user", "content": content}
        else:
            call = result.get("source_call_id")
            yield {"role": "tool", "content": content} | ({} if call is None else {"tool_call_id": call})


def _seconds(stamp: object) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp() if isinstance(stamp, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def _group(record: Mapping[str, Any]) -> object:
    metadata = record.get("metadata")
    for fields in (record, metadata if isinstance(metadata, dict) else {}):
        for key in GROUP_KEYS:
            if isinstance(fields.get(key), str | int):
                return fields[key]
    return None


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _list(value: object, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise Unreadable(f"{key!r} is {kind_of(value)}; expected an array")
    return value
