"""Small agent runs of our own making, of three families that public tool-calling runs lack.

What a needed identifier looks like differs by family: a session token that every later call takes, a path that comes
up again and again, a cart that is named once and taken once, at the end. A scorer that has only seen customer service
ranks such steps wrongly; these runs are there to train on, and to test on what was not trained on. They are seeded
and share nothing with the demo's world.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["FAMILIES", "histories"]

NOUNS = (
    "queue mirror ledger harbour lantern meadow signal orchard anvil cedar bridge quartz falcon saddle tunnel".split()
)
FILLER = (
    "checked without findings",
    "no change since the last look",
    "retried once and went through",
    "see the runbook for the meaning of this line",
    "the value lies within the usual range",
    "nothing else was waiting",
)

Step = tuple[str, dict[str, Any], object]


def histories(family: str, runs: int = 40) -> list[dict[str, Any]]:
    """Runs of a family as OpenAI chat histories.

    Args:
        family: a name in `FAMILIES`.
        runs: how many; run k is the same whatever their number.

    Returns:
        Mappings with `id`, `task` and `messages`.
    """
    rows = []
    for run in range(runs):
        chance = random.Random(f"{family} {run}")
        task = f"{family}-{run}"
        rows.append({"id": task, "task": task, "messages": _messages(chance, FAMILIES[family](chance))})
    return rows


def _messages(chance: random.Random, turns: Iterator[tuple[str, list[Step]]]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Work through the requests with the tools given."}]
    for request, steps in turns:
        messages.append({"role": "user", "content": request})
        for name, arguments, observation in steps:
            call = {"name": name, "arguments": json.dumps(arguments)}
            identity = f"call_{chance.getrandbits(48):012x}"
            messages.append(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": identity, "type": "function", "function": call}],
                }
            )
            content = observation if isinstance(observation, str) else json.dumps(observation)
            messages.append({"role": "tool", "tool_call_id": identity, "name": name, "content": content})
        messages.append({"role": "assistant", "content": f"That is done: {request[0].lower()}{request[1:]}"})
    return messages


def _code(chance: random.Random, prefix: str, digits: int = 6) -> str:
    return f"{prefix}{chance.getrandbits(4 * digits):0{digits}x}"


def _noise(chance: random.Random, lines: int) -> str:
    return "\n".join(
        f"12:{chance.randrange(60):02}:{chance.randrange(60):02} {chance.choice(NOUNS)} {_code(chance, 'req_')}: "
        f"{chance.choice(FILLER)}"
        for _ in range(lines)
    )


def _operations(chance: random.Random) -> Iterator[tuple[str, list[Step]]]:
    """Hosts behind a session token that every call takes, and that now and then runs out."""
    token, hosts = "", [f"{chance.choice(NOUNS)}-{chance.randrange(10, 99)}" for _ in range(12)]
    for turn in range(chance.randrange(3, 6)):
        steps: list[Step] = []
        if not token or chance.random() < 0.15:
            token = _code(chance, "st_", 16)
            steps.append(("open_session", {"account": "ops"}, {"session": token, "expires_in": 3600}))
        if turn == 0 or chance.random() < 0.3:
            listing = [{"host": host, "id": _code(chance, "i-", 8), "load": chance.random()} for host in hosts]
            steps.append(("list_hosts", {"session": token}, listing))
        worked_on = chance.sample(hosts, chance.randrange(1, 4))
        for host in worked_on:
            steps.append(("read_log", {"session": token, "host": host}, _noise(chance, chance.randrange(3, 20))))
            ticket = _code(chance, "chg-", 5)
            steps.append(("open_change", {"session": token, "host": host}, {"change": ticket, "state": "open"}))
            if chance.random() < 0.7:
                steps.append(("restart", {"session": token, "host": host, "change": ticket}, {"state": "restarted"}))
            if chance.random() < 0.5:
                steps.append(("close_change", {"session": token, "change": ticket}, {"state": "closed"}))
        yield f"Look after {' and '.join(worked_on)}.", steps


def _coding(chance: random.Random) -> Iterator[tuple[str, list[Step]]]:
    """A repository: a few files come up again and again, most once, and a branch is needed at the end."""
    files = [f"src/{chance.choice(NOUNS)}/{chance.choice(NOUNS)}_{k}.py" for k in range(14)]
    central = files[: chance.randrange(2, 4)]
    branch = f"fix/{chance.choice(NOUNS)}-{chance.randrange(100, 999)}"
    yield (
        f"The {chance.choice(NOUNS)} import fails now and then; find out why.",
        [
            ("create_branch", {"from": "main"}, {"branch": branch, "commit": _code(chance, "", 10)}),
            ("search", {"pattern": "import_batch"}, "\n".join(f"{file}:{chance.randrange(400)}" for file in files)),
        ],
    )
    for _ in range(chance.randrange(3, 6)):
        steps: list[Step] = [
            ("read_file", {"path": file}, f"def {chance.choice(NOUNS)}():\n" + _noise(chance, 8))
            for file in chance.sample(central, 1) + chance.sample(files, 2)
        ]
        target = chance.choice(central)
        steps.append(("edit_file", {"path": target, "line": chance.randrange(400)}, {"ok": True}))
        failing = f"tests/test_{chance.choice(NOUNS)}_{chance.randrange(9)}.py"
        steps.append(("run_tests", {}, f"FAILED {failing}\nTraceback: {target}\n" + _noise(chance, 5)))
        if chance.random() < 0.6:
            steps.append(("run_test", {"path": failing}, "passed"))
        yield f"The test of {chance.choice(NOUNS)} is still red.", steps
    yield "Push it.", [("push", {"branch": branch}, {"pull_request": chance.randrange(1000, 9999)})]


def _browsing(chance: random.Random) -> Iterator[tuple[str, list[Step]]]:
    """Pages whose links are good for the next click only, and a cart that is paid at the very end."""
    cart, voucher = _code(chance, "cart_", 8), _code(chance, "V", 6).upper()
    yield (
        "Open a basket; there is a voucher in my inbox.",
        [
            ("new_cart", {}, {"cart": cart}),
            ("read_inbox", {}, f"Your voucher code is {voucher}.\n" + _noise(chance, 6)),
        ],
    )
    for _ in range(chance.randrange(4, 8)):
        links = [_code(chance, "item_", 6) for _ in range(10)]
        wanted = chance.choice(links)
        results = [{"link": link, "title": chance.choice(NOUNS), "price": chance.randrange(5, 90)} for link in links]
        steps: list[Step] = [
            ("search_shop", {"query": chance.choice(NOUNS)}, results),
            ("open_page", {"link": wanted}, {"stock": chance.randrange(9), "reviews": _noise(chance, 9)}),
        ]
        if chance.random() < 0.5:
            steps.append(("add_to_cart", {"cart": cart, "link": wanted}, {"items": chance.randrange(1, 9)}))
        yield f"Find me a {chance.choice(NOUNS)}.", steps
    yield "Pay.", [("pay", {"cart": cart, "voucher": voucher}, {"receipt": _code(chance, "rcp-", 8)})]


FAMILIES: dict[str, Callable[[random.Random], Iterator[tuple[str, list[Step]]]]] = {
    "operations": _operations,
    "coding": _coding,
    "browsing": _browsing,
}
"""Name of a family to what its runs are made of: the turns of one run, each a request and the steps it takes."""
