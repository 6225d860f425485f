"""A person's day: twelve errands in one message, eight more in a second one."""

from dataclasses import dataclass
from random import Random

from benchmarks.demo import population
from benchmarks.demo.errands import Errand, Parameters
from benchmarks.demo.world import World

NEW_LABELS = ("boathouse", "allotment", "studio", "parents")
FRIENDS = ("mira", "anselm", "noor", "gustav", "yuki", "bela")
REASONS = (
    "it comes too late",
    "I ordered it twice",
    "the colour does not suit",
    "the size is wrong",
    "it is scratched",
)
NOTES = (
    "Happy birthday, see you on Sunday",
    "For the new kitchen, with love",
    "You know what for",
    "Thank you for the lift to the station",
)
ONCE = ("default card", "phone")
TWICE = ("redirect", "note", "cancel", "mail tracking", "invoice", "gift card", "refund", "unsubscribe")


@dataclass(frozen=True)
class Task:
    """What one person wants of the agent.

    Attributes:
        name: Whose account it is.
        email: What to sign in with.
        password: The same.
        first: The errands of the first message.
        then: The errands of the second message, sent when the agent says the first are done.
    """

    name: str
    email: str
    password: str
    first: tuple[Errand, ...]
    then: tuple[Errand, ...]

    @property
    def errands(self) -> tuple[Errand, ...]:
        """All errands, in order."""
        return self.first + self.then

    @property
    def messages(self) -> tuple[str, str]:
        """The two human messages."""
        opening = (
            f"Hello, this is {self.name}. Sign in for me with the email {self.email} and the password {self.password}. "
            "Please do these errands in this order and tell me when all of them are done:"
        )
        follow_up = "Thank you! A few more things, please, and tell me when they are done too:"
        return _listed(opening, self.first, 1), _listed(follow_up, self.then, len(self.first) + 1)


def _listed(opening: str, errands: tuple[Errand, ...], number: int) -> str:
    return "\n".join([opening, *(f"{at}. {errand}" for at, errand in enumerate(errands, number))])


def make_task(world: World, seed: int) -> Task:
    """Write a day's errands for the person of this world.

    Three of the first message's errands make something (a return, an order, an address), and four of the second
    message's come back to it. The others, all subjects and the order are drawn.

    Args:
        world: A fresh world; it is only read.
        seed: Decides the errands.
    """
    random = Random(f"errands {seed}")
    person = world.rows("SELECT name, email, password FROM account")[0]
    writer = _Writer(world, random)
    made = {kind: writer.write(kind) for kind in ("return", "place", "address")}
    drawn = [writer.write(kind) for kind in random.sample(ONCE + 2 * TWICE, 13)]
    first = [*made.values(), *drawn[:9]]
    random.shuffle(first)
    new_label = made["address"].parameters["label"]
    returned, ordered = made["return"].parameters["item"], made["place"].parameters["item"]
    mailed, item = random.choice((("mail return", returned), ("mail order", ordered)))
    then = [
        Errand("pickup", {"item": returned, "label": random.choice(population.LABELS)}),
        Errand("redirect", {"item": ordered, "label": new_label}),
        Errand("note", {"item": ordered, "note": writer.draw("note")}),
        Errand(mailed, {"item": item, "recipient": writer.recipient()}),
        *drawn[9:],
    ]
    random.shuffle(then)
    return Task(**person, first=tuple(first), then=tuple(then))


class _Writer:
    """Words errands about things that exist, never two about the same thing."""

    def __init__(self, world: World, random: Random) -> None:
        self.random = random
        orders = world.rows("SELECT item, status, label FROM orders JOIN addresses USING (address_id) ORDER BY item")
        self.delivered_to = {order["item"]: order["label"] for order in orders}
        names = {
            "product": "SELECT name FROM products WHERE name NOT IN (SELECT item FROM orders)",
            "vendor": "SELECT vendor AS name FROM invoices",
            "sender": "SELECT sender AS name FROM gift_cards",
        }
        self.left = {pool: [str(row["name"]) for row in world.rows(sql)] for pool, sql in names.items()}
        for status in ("processing", "shipped", "delivered"):
            self.left[status] = [order["item"] for order in orders if order["status"] == status]
        self.left |= {
            "newsletter": list(population.NEWSLETTERS),
            "merchant": list(population.MERCHANTS),
            "note": list(NOTES),
            "new label": list(NEW_LABELS),
            "friend": list(FRIENDS),
        }
        self.charged_on = {row["merchant"]: row["day"] for row in world.rows("SELECT merchant, day FROM transactions")}

    def draw(self, pool: str) -> str:
        """Take one that was not taken before."""
        return self.left[pool].pop(self.random.randrange(len(self.left[pool])))

    def recipient(self) -> str:
        """A friend's mail address."""
        return f"{self.draw('friend')}@postbox.example"

    def write(self, kind: str) -> Errand:
        """An errand of this kind."""
        return Errand(kind, self._parameters(kind))

    def _parameters(self, kind: str) -> Parameters:
        choose = self.random.choice
        match kind:
            case "redirect":
                item = self.draw("processing")
                elsewhere = [label for label in population.LABELS if label != self.delivered_to[item]]
                return {"item": item, "label": choose(elsewhere)}
            case "note":
                return {"item": self.draw("processing"), "note": self.draw("note")}
            case "cancel":
                return {"item": self.draw("processing"), "reason": choose(REASONS)}
            case "place":
                quantity, label = str(choose((2, 3, 4))), choose(population.LABELS)
                item, method = self.draw("product"), choose(population.METHODS)
                return {"quantity": quantity, "item": item, "label": label, "method": method}
            case "return":
                return {"item": self.draw("delivered"), "reason": choose(REASONS)}
            case "mail tracking":
                return {"item": self.draw("shipped"), "recipient": self.recipient()}
            case "address":
                street = f"{choose(population.STREETS)} {self.random.randint(1, 120)}"
                place = {"street": street, "postcode": str(self.random.randint(10_000, 99_999))}
                return {"label": self.draw("new label"), **place, "city": choose(population.CITIES)}
            case "invoice":
                return {"vendor": self.draw("vendor"), "method": choose(population.METHODS)}
            case "gift card":
                return {"sender": self.draw("sender")}
            case "default card":
                return {"method": choose(population.METHODS[1:])}
            case "phone":
                return {"phone": f"+99 {self.random.randint(100, 999)} {self.random.randint(100_000, 999_999)}"}
            case "refund":
                merchant = self.draw("merchant")
                return {"merchant": merchant, "day": self.charged_on[merchant]}
            case "unsubscribe":
                return {"newsletter": self.draw("newsletter")}
        raise ValueError(f"no errand of kind {kind!r} is written for a first message")
