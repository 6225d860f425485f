"""How the agent thinks: an errand needs facts, and each fact has a tool that yields it.

The two tables are the whole of what the agent knows. Their templates are filled with the values of the errand's own
sentence: `{item}` is the item it names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.demo.evidence import CHECKING, Evidence, Reading

Values = Mapping[str, str]


@dataclass(frozen=True)
class Fact:
    """An argument that must be looked up: a key of `SOURCES`."""

    name: str


@dataclass(frozen=True)
class Number:
    """An argument that a sentence gives as text and a tool takes as a number."""

    template: str


@dataclass(frozen=True)
class NextPage:
    """An argument that walks through the pages of a listing."""


Argument = str | int | Fact | Number | NextPage


class Call:
    """A tool call whose arguments are templates, or facts that must be known first."""

    def __init__(self, tool: str, **arguments: Argument) -> None:
        self.tool = tool
        self.arguments = arguments


@dataclass(frozen=True)
class Source:
    """Where a fact is read, and the call that brings it into view when it is not there."""

    reading: Reading
    call: Call


@dataclass(frozen=True)
class Goal:
    """What makes an errand done.

    Attributes:
        act: The call that finishes it.
        proof: Fields of a JSON object in a result that shows it is done.
        look: A call that shows whether it is done, made before acting.
    """

    act: Call
    proof: Values
    look: Call | None = None


@dataclass(frozen=True)
class Step:
    """The next tool call, and the agent's one line about it."""

    tool: str
    arguments: Mapping[str, Any]
    thought: str


class CannotGoOn(Exception):
    """Only the person could say what the agent does not see any more."""


TOKEN = Fact("token")


def _mail(subject: str) -> Source:
    name = subject[subject.index("{") :]
    return Source(Reading("mail_id", {"subject": subject}), Call("search_mail", query=name, token=TOKEN))


def _in_mail(subject: str, pattern: str, mail: str) -> Source:
    return Source(Reading("body", {"subject": subject}, pattern), Call("read_mail", mail_id=Fact(mail), token=TOKEN))


SOURCES: dict[str, Source] = {
    "token": Source(Reading("token", {}), Call("sign_in", email="{email}", password="{password}")),
    "order_id": Source(Reading("order_id", {"item": "{item}"}), Call("search_orders", query="{item}", token=TOKEN)),
    "tracking_number": Source(
        Reading("tracking_number", {"item": "{item}"}),
        Call("track_shipment", order_id=Fact("order_id"), token=TOKEN),
    ),
    "return_id": Source(Reading("return_id", {"item": "{item}"}), Call("list_returns", token=TOKEN)),
    "address_id": Source(Reading("address_id", {"label": "{label}"}), Call("list_addresses", token=TOKEN)),
    "payment_method_id": Source(
        Reading("payment_method_id", {"label": "{method}"}), Call("list_payment_methods", token=TOKEN)
    ),
    "charge_id": Source(
        Reading("charge_id", {"merchant": "{merchant}", "day": "{day}"}),
        Call("list_transactions", page=NextPage(), token=TOKEN),
    ),
    "sku": Source(Reading("sku", {"name": "{item}"}), Call("search_catalog", query="{item}")),
    "invoice_mail": _mail("Invoice from {vendor}"),
    "invoice_number": _in_mail("Invoice from {vendor}", r"invoice number is (\S+)\.", "invoice_mail"),
    "gift_mail": _mail("A gift card from {sender}"),
    "gift_code": _in_mail("A gift card from {sender}", r"gift card is (\S+)\.", "gift_mail"),
    "newsletter_mail": Source(
        Reading("mail_id", {"sender": "{newsletter}"}), Call("search_mail", query="{newsletter}", token=TOKEN)
    ),
    "code_mail": Source(
        Reading("mail_id", {"phone_to_confirm": "{phone}"}),
        Call("request_phone_change", phone="{phone}", token=TOKEN),
    ),
    "phone_code": _in_mail("Confirm {phone}", r"code is (\d+)\.", "code_mail"),
}

ACTIVITY = Call("recent_activity", token=TOKEN)
ORDER_STATUS = Call("order_status", order_id=Fact("order_id"), token=TOKEN)


def _mailed(fact: str, named: str) -> Goal:
    subject = f"{named} of the {{item}}"
    return Goal(
        look=Call("list_mail", folder="sent", page=1, token=TOKEN),
        act=Call("send_mail", to="{recipient}", subject=subject, body=Fact(fact), token=TOKEN),
        proof={"recipient": "{recipient}", "subject": subject},
    )


GOALS: dict[str, Goal] = {
    "redirect": Goal(
        look=ORDER_STATUS,
        act=Call("change_delivery_address", order_id=Fact("order_id"), address_id=Fact("address_id"), token=TOKEN),
        proof={"item": "{item}", "deliver_to": "{label}"},
    ),
    "note": Goal(
        look=ORDER_STATUS,
        act=Call("add_gift_note", order_id=Fact("order_id"), note="{note}", token=TOKEN),
        proof={"item": "{item}", "gift_note": "{note}"},
    ),
    "cancel": Goal(
        look=ORDER_STATUS,
        act=Call("cancel_order", order_id=Fact("order_id"), reason="{reason}", token=TOKEN),
        proof={"item": "{item}", "status": "cancelled"},
    ),
    "place": Goal(
        look=Call("list_orders", page=1, token=TOKEN),
        act=Call(
            "place_order",
            sku=Fact("sku"),
            quantity=Number("{quantity}"),
            address_id=Fact("address_id"),
            payment_method_id=Fact("payment_method_id"),
            token=TOKEN,
        ),
        proof={"item": "{item}", "quantity": "{quantity}", "paid_with": "{method}"},
    ),
    "return": Goal(
        look=Call("list_returns", token=TOKEN),
        act=Call("start_return", order_id=Fact("order_id"), reason="{reason}", token=TOKEN),
        proof={"item": "{item}", "return_status": "open"},
    ),
    "pickup": Goal(
        look=Call("list_returns", token=TOKEN),
        act=Call("book_return_pickup", return_id=Fact("return_id"), address_id=Fact("address_id"), token=TOKEN),
        proof={"item": "{item}", "pickup_from": "{label}"},
    ),
    "mail tracking": _mailed("tracking_number", "Tracking number"),
    "mail order": _mailed("order_id", "Order number"),
    "mail return": _mailed("return_id", "Return number"),
    "address": Goal(
        look=Call("list_addresses", token=TOKEN),
        act=Call("add_address", label="{label}", street="{street}", postcode="{postcode}", city="{city}", token=TOKEN),
        proof={"label": "{label}", "street": "{street}"},
    ),
    "invoice": Goal(
        look=Call("invoice_details", invoice_number=Fact("invoice_number"), token=TOKEN),
        act=Call(
            "pay_invoice",
            invoice_number=Fact("invoice_number"),
            payment_method_id=Fact("payment_method_id"),
            token=TOKEN,
        ),
        proof={"vendor": "{vendor}", "status": "paid"},
    ),
    "gift card": Goal(
        look=Call("gift_card_balance", code=Fact("gift_code"), token=TOKEN),
        act=Call("redeem_gift_card", code=Fact("gift_code"), token=TOKEN),
        proof={"sender": "{sender}", "status": "redeemed"},
    ),
    "default card": Goal(
        act=Call("set_default_payment_method", payment_method_id=Fact("payment_method_id"), token=TOKEN),
        proof={"label": "{method}", "is_default": "1"},
    ),
    "phone": Goal(
        look=Call("account_profile", token=TOKEN),
        act=Call("confirm_phone_change", code=Fact("phone_code"), token=TOKEN),
        proof={"phone": "{phone}"},
    ),
    "refund": Goal(
        act=Call("request_refund", charge_id=Fact("charge_id"), token=TOKEN),
        proof={"merchant": "{merchant}", "day": "{day}", "status": "refund requested"},
    ),
    "unsubscribe": Goal(
        act=Call("unsubscribe", mail_id=Fact("newsletter_mail"), token=TOKEN),
        proof={"newsletter": "{newsletter}", "status": "unsubscribed"},
    ),
}


def next_step(evidence: Evidence) -> Step | None:
    """Choose the next tool call: go on with the errand at hand or a later one, and check at the end what was skipped.

    Args:
        evidence: What the prompt shows; the choice rests on nothing else.

    Returns:
        The call, or None when results in the prompt prove every errand done.

    Raises:
        CannotGoOn: The agent must sign in, and email and password stand nowhere in the prompt.
    """
    unproven = [
        number
        for number, errand in evidence.errands.items()
        if not evidence.shows(_filled(GOALS[errand.kind].proof, errand.parameters))
    ]
    if not unproven:
        return None
    ahead = [number for number in unproven if number >= evidence.current]
    if not ahead and not evidence.answered(ACTIVITY.tool, {}):
        step = _towards(ACTIVITY, "let me see what has been done today.", evidence.credentials, evidence)
        return replace(step, thought=f"{CHECKING} {step.thought}")
    number = (ahead or unproven)[0]
    errand = evidence.errands[number]
    step = _pursue(GOALS[errand.kind], errand.parameters | evidence.credentials, evidence)
    return replace(step, thought=f"Errand {number}: {step.thought}")


def _pursue(goal: Goal, values: Values, evidence: Evidence) -> Step:
    if goal.look is not None:
        step = _towards(goal.look, "first I look how it stands.", values, evidence)
        if not evidence.answered(step.tool, step.arguments):
            return step
    return _towards(goal.act, "I have what it takes, so I do it.", values, evidence)


def _towards(call: Call, thought: str, values: Values, evidence: Evidence) -> Step:
    """The call itself if its facts are in view, else the call that brings the first missing one nearer."""
    arguments: dict[str, str | int] = {}
    for name, argument in call.arguments.items():
        match argument:
            case Fact():
                source = SOURCES[argument.name]
                reading = replace(source.reading, where=_filled(source.reading.where, values))
                value = evidence.read(reading)
                if value is None:
                    return _towards(source.call, f"I need the {argument.name.replace('_', ' ')}.", values, evidence)
                arguments[name] = value
            case NextPage():
                arguments[name] = evidence.next_page(call.tool)
            case Number():
                arguments[name] = int(argument.template.format_map(values))
            case str():
                arguments[name] = _fill(argument, values)
            case int():
                arguments[name] = argument
    return Step(call.tool, arguments, thought)


def _fill(template: str, values: Values) -> str:
    try:
        return template.format_map(values)
    except KeyError as missing:
        raise CannotGoOn(f"I no longer see the {missing.args[0]}. Please tell me again.") from None


def _filled(templates: Values, values: Values) -> dict[str, str]:
    return {name: _fill(template, values) for name, template in templates.items()}
