"""What a prompt shows: its errands, the sign-in it names, and what its tool results say."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from benchmarks.demo.errands import KINDS, Errand
from benchmarks.demo.world import TOKEN_ERRORS, Json

CREDENTIALS = re.compile(r"email (?P<email>\S+) and the password (?P<password>\S+?)\.\s")
LISTED = re.compile(r"^(?P<number>\d+)\. (?P<sentence>.+)$", re.MULTILINE)
WORKING_ON = re.compile(r"Errand (\d+):")
CHECKING = "Last check:"
ALL_DONE = "All of these errands are done."


@dataclass(frozen=True)
class Observation:
    """One tool call in the prompt and the JSON it was answered with."""

    tool: str
    arguments: Mapping[str, Any]
    result: Json

    @property
    def refused(self) -> bool:
        """Whether the service said no."""
        return "error" in self.result


@dataclass(frozen=True)
class Reading:
    """How to read a value off a JSON object in a tool result.

    Attributes:
        field: The field to read.
        where: Fields the object must have with these values, or the object is about something else.
        pattern: Where the value is a part of a longer text: a regular expression with one group.
    """

    field: str
    where: Mapping[str, str]
    pattern: str = "(.+)"

    def read(self, record: Json) -> str | None:
        """The value, or None when this object does not show it."""
        if any(record.get(name) != value for name, value in self.where.items()) or not record.get(self.field):
            return None
        match = re.search(self.pattern, str(record[self.field]))
        return match[1] if match else None


class Evidence:
    """All that the messages of one prompt say.

    Args:
        messages: The prompt, oldest message first; nothing else is looked at.
    """

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self._messages = messages

    @cached_property
    def errands(self) -> dict[int, Errand]:
        """Errands by their number, without those that the agent itself reported done further down."""
        listed: dict[int, Errand] = {}
        for message in self._messages:
            if isinstance(message, HumanMessage):
                listed |= _listed_errands(message.text)
            elif isinstance(message, AIMessage) and message.text == ALL_DONE:
                listed.clear()
        return listed

    @cached_property
    def current(self) -> float:
        """Number of the errand that the agent's newest message is about; 0 for none, infinity for the last check."""
        newest = next((message.text for message in reversed(self._messages) if isinstance(message, AIMessage)), "")
        match = WORKING_ON.match(newest)
        return inf if newest.startswith(CHECKING) else int(match[1]) if match else 0

    @cached_property
    def credentials(self) -> dict[str, str]:
        """Email and password, from the person's own words."""
        texts = (message.text for message in self._messages if isinstance(message, HumanMessage))
        return next((match.groupdict() for text in texts if (match := CREDENTIALS.search(text))), {})

    @cached_property
    def observations(self) -> list[Observation]:
        """Calls with their results, newest first."""
        calls = {
            call["id"]: call
            for message in self._messages
            if isinstance(message, AIMessage)
            for call in message.tool_calls
        }
        answered = (
            (calls[message.tool_call_id], message.text)
            for message in self._messages
            if isinstance(message, ToolMessage) and message.tool_call_id in calls
        )
        return [Observation(call["name"], call["args"], _parsed(text)) for call, text in answered][::-1]

    @cached_property
    def records(self) -> list[Json]:
        """Every JSON object in the results, newest first, without sign-ins whose token was refused since."""
        dead = {seen.arguments.get("token") for seen in self.observations if seen.result.get("error") in TOKEN_ERRORS}
        every = (record for seen in self.observations if not seen.refused for record in _objects(seen.result))
        return [record for record in every if record.get("token") is None or record["token"] not in dead]

    def read(self, reading: Reading) -> str | None:
        """The newest value that a visible result gives, or None."""
        values = (reading.read(record) for record in self.records)
        return next((value for value in values if value is not None), None)

    def shows(self, facts: Mapping[str, str]) -> bool:
        """Whether one JSON object in view has all these fields with these values."""
        return any(all(str(record.get(name)) == value for name, value in facts.items()) for record in self.records)

    def answered(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether this call, by whatever token, stands in the prompt with a result that is not a refusal."""
        wanted = _without_token(arguments)
        return any(
            seen.tool == tool and not seen.refused and _without_token(seen.arguments) == wanted
            for seen in self.observations
        )

    def next_page(self, tool: str) -> int:
        """The first page of a listing that is not in the prompt; the first again when all are."""
        seen = {s.result["page"]: s.result["pages"] for s in self.observations if s.tool == tool and not s.refused}
        page = next(page for page in range(1, len(seen) + 2) if page not in seen)
        return 1 if seen and page > max(seen.values()) else page


def _listed_errands(text: str) -> dict[int, Errand]:
    errands: dict[int, Errand] = {}
    for line in LISTED.finditer(text):
        for name, kind in KINDS.items():
            parameters = kind.read(line["sentence"])
            if parameters is not None:
                errands[int(line["number"])] = Errand(name, parameters)
    return errands


def _without_token(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "token"}


def _parsed(text: str) -> Json:
    try:
        parsed = json.loads(text)
    except ValueError:
        # LangChain words a call with bad arguments itself, in plain text.
        return {"error": "not_json", "message": text}
    return parsed if isinstance(parsed, dict) else {"value": parsed}


def _objects(value: object) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from _objects(child)
