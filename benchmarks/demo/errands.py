"""The errands: how a person words them, and how to tell from the world that one is done."""

import re
from dataclasses import dataclass

from benchmarks.demo.population import TODAY
from benchmarks.demo.world import World

Parameters = dict[str, str]


@dataclass(frozen=True)
class Kind:
    """A kind of errand.

    Attributes:
        sentence: Its wording; `{name}` stands for a parameter.
        truth: SQL that gives a row exactly when the errand is done; `:name` stands for a parameter.
    """

    sentence: str
    truth: str

    def read(self, text: str) -> Parameters | None:
        """Take the parameters out of a sentence worded like this kind; None for any other sentence."""
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(self.sentence))
        match = re.fullmatch(pattern, text)
        return match.groupdict() if match else None


ORDER_TO = "SELECT 1 FROM orders JOIN addresses USING (address_id) WHERE item = :item AND label = :label"
SENT = "SELECT 1 FROM mails, {source} WHERE folder = 'sent' AND recipient = :recipient AND item = :item AND {value}"

KINDS: dict[str, Kind] = {
    "redirect": Kind("Have my order of the {item} delivered to the {label} address instead.", ORDER_TO),
    "note": Kind(
        'Put a gift note into my order of the {item}: "{note}".',
        "SELECT 1 FROM orders WHERE item = :item AND gift_note = :note",
    ),
    "cancel": Kind(
        "Cancel my order of the {item}; the reason is that {reason}.",
        "SELECT 1 FROM orders WHERE item = :item AND status = 'cancelled'",
    ),
    "place": Kind(
        "Order {quantity} pieces of the {item} to the {label} address, paid with the {method}.",
        "SELECT 1 FROM orders JOIN payment_methods AS p USING (payment_method_id) WHERE item = :item "
        f"AND quantity = :quantity + 0 AND p.label = :method AND orders.day = '{TODAY}'",
    ),
    "return": Kind(
        "Start a return of the {item}; the reason is that {reason}.",
        "SELECT 1 FROM returns JOIN orders USING (order_id) WHERE item = :item",
    ),
    "pickup": Kind(
        "Have the return of the {item} picked up from the {label} address.",
        "SELECT 1 FROM returns JOIN orders USING (order_id) JOIN addresses ON addresses.address_id = pickup_address_id "
        "WHERE item = :item AND label = :label",
    ),
    "mail tracking": Kind(
        "Mail the tracking number of the {item} to {recipient}.",
        SENT.format(source="orders", value="instr(body, tracking_number)"),
    ),
    "mail order": Kind(
        "Mail the order number of the {item} to {recipient}.",
        SENT.format(source="orders", value="instr(body, order_id)"),
    ),
    "mail return": Kind(
        "Mail the return number of the {item} to {recipient}.",
        SENT.format(source="returns JOIN orders USING (order_id)", value="instr(body, return_id)"),
    ),
    "address": Kind(
        "Save a new address called {label}: {street}, {postcode} {city}.",
        "SELECT 1 FROM addresses WHERE label = :label AND street = :street AND postcode = :postcode",
    ),
    "invoice": Kind(
        "Pay the invoice that {vendor} mailed me, with the {method}.",
        "SELECT 1 FROM invoices WHERE vendor = :vendor AND status = 'paid' AND paid_with = :method",
    ),
    "gift card": Kind(
        "Redeem the gift card that {sender} mailed me.",
        "SELECT 1 FROM gift_cards WHERE sender = :sender AND status = 'redeemed'",
    ),
    "default card": Kind(
        "Make the {method} my default way to pay.",
        "SELECT 1 FROM payment_methods WHERE label = :method AND is_default",
    ),
    "phone": Kind(
        "Change my phone number to {phone}; they will mail a confirmation code.",
        "SELECT 1 FROM account WHERE phone = :phone",
    ),
    "refund": Kind(
        "Ask for a refund of the {merchant} charge of {day}.",
        "SELECT 1 FROM transactions WHERE merchant = :merchant AND day = :day AND status = 'refund requested'",
    ),
    "unsubscribe": Kind(
        "Unsubscribe me from {newsletter}.",
        "SELECT 1 FROM unsubscribed WHERE sender = :newsletter",
    ),
}


@dataclass(frozen=True)
class Errand:
    """One errand: a key of `KINDS` and the values its sentence names."""

    kind: str
    parameters: Parameters

    def __str__(self) -> str:
        return KINDS[self.kind].sentence.format(**self.parameters)

    def done(self, world: World) -> bool:
        """Whether the world is as this errand wants it."""
        return bool(world.rows(KINDS[self.kind].truth, **self.parameters))
