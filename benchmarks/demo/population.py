"""The household the world starts with: its account, addresses, orders, mails, and a shop's catalogue."""

from itertools import cycle, product
from random import Random
from typing import Any

from benchmarks.demo.prose import paragraphs, sentence

Row = dict[str, Any]

READABLE = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""Characters of an identifier: none that looks like another."""

TODAY = "2031-06-02"

NAMES = ("Mara Lindqvist", "Tomas Okafor", "Ines Varga", "Jonas Abara", "Lena Moreau", "Pavel Nakamura")
STREETS = ("Quarry Lane", "Weaver Street", "Saltmarsh Road", "Old Ferry Row", "Juniper Hill", "Chapel Yard")
CITIES = ("Ostermark", "Vallby", "Port Ennis", "Kessel", "Marrow Bridge", "Tarn")
LABELS = ("home", "office", "cabin", "workshop", "summer house", "clinic")
METHODS = ("blue debit card", "green credit card", "joint account", "travel card", "office account")
MATERIALS = ("walnut", "linen", "brass", "enamel", "oak", "wool", "copper", "glass", "leather", "stoneware")
OBJECTS = ("serving tray", "apron", "desk lamp", "teapot", "blanket", "coat rack", "storage jar", "door mat")
CATEGORIES = ("kitchen", "bedroom", "hallway", "garden")
CARRIERS = ("Northline", "Parcelwing", "Kestrel Post")
VENDORS = ("Harbour Electric", "Fern Window Cleaning", "Stonebridge Water", "Brightpath Tutors")
SENDERS = ("Aunt Rosalind", "Cousin Ivo", "the choir")
NEWSLETTERS = ("The Slow Kettle", "Rooftop Growers", "Paper and Twine", "Tidal Weekly")
MERCHANTS = (
    "Corner Bakery",
    "Velvet Cinema",
    "Metro Tickets",
    "Atlas Books",
    "Pine Pharmacy",
    "Loop Bicycles",
    "Cloud Storage",
    "Garden Depot",
)

STATUSES = ("processing", "shipped", "delivered", "processing", "delivered")

ORDERS = 36
MAILS_A_NEWSLETTER = 9


def household(random: Random) -> dict[str, list[Row]]:
    """Make every table's first rows.

    Args:
        random: The source of all chance; the same state gives the same household.

    Returns:
        Rows by table name.
    """
    name = random.choice(NAMES)
    email = f"{name.split()[0].lower()}@lanternmail.example"
    addresses = [_address(random, label) for label in LABELS]
    addresses[0]["is_default"] = True
    methods = [_payment_method(random, name, label) for label in METHODS]
    methods[0]["is_default"] = True
    products = [_product(random, f"{material} {kind}") for material, kind in product(MATERIALS, OBJECTS)]
    bought = zip(random.sample(products, ORDERS), cycle(STATUSES), strict=False)
    orders = [_order(random, item, status, addresses, methods) for item, status in bought]
    invoices = [_invoice(random, vendor) for vendor in VENDORS]
    gift_cards = [_gift_card(random, sender) for sender in SENDERS]
    mails = [
        *(_invoice_mail(random, email, invoice) for invoice in invoices),
        *(_gift_mail(random, email, card) for card in gift_cards),
        *(_newsletter(random, email, sender) for sender in NEWSLETTERS for _ in range(MAILS_A_NEWSLETTER)),
        *(_shipping_mail(random, email, order) for order in orders if order["carrier"]),
        *(_sent_mail(random, email) for _ in range(9)),
    ]
    account = {
        "email": email,
        "password": code(random, "", 4, "abcdefghkmnpqrstuvwxyz") + "-" + code(random, "", 4, "23456789"),
        "name": name,
        "phone": _phone(random),
        "language": "English",
        "member_since": _day(random),
    }
    return {
        "account": [account],
        "addresses": addresses,
        "payment_methods": methods,
        "products": products,
        "orders": sorted(orders, key=lambda order: str(order["day"])),
        "transactions": [_transaction(random, merchant) for merchant in MERCHANTS for _ in range(5)],
        "invoices": invoices,
        "gift_cards": gift_cards,
        "mails": sorted(mails, key=lambda mail: str(mail["day"])),
    }


def code(random: Random, prefix: str, length: int, alphabet: str = READABLE) -> str:
    """An identifier: the prefix and `length` random characters."""
    return prefix + "".join(random.choices(alphabet, k=length))


def _day(random: Random) -> str:
    return f"2031-{random.randint(1, 5):02}-{random.randint(1, 28):02}"


def _phone(random: Random) -> str:
    return code(random, "+99 ", 3, "123456789") + code(random, " ", 6, "0123456789")


def _address(random: Random, label: str) -> Row:
    return {
        "address_id": code(random, "adr_", 8),
        "label": label,
        "street": f"{random.choice(STREETS)} {random.randint(1, 120)}",
        "postcode": code(random, "", 5, "123456789"),
        "city": random.choice(CITIES),
        "access_notes": sentence(random),
        "is_default": False,
    }


def _payment_method(random: Random, holder: str, label: str) -> Row:
    return {
        "payment_method_id": code(random, "pm_", 10),
        "label": label,
        "kind": "account" if "account" in label else "card",
        "holder": holder,
        "expires": f"20{random.randint(32, 38)}-{random.randint(1, 12):02}",
        "is_default": False,
    }


def _product(random: Random, name: str) -> Row:
    return {
        "sku": code(random, "", 2, "ABCDEFGH") + code(random, "-", 6, "0123456789"),
        "name": name,
        "category": random.choice(CATEGORIES),
        "cents": random.randint(900, 24_000),
        "stock": random.randint(3, 60),
        "description": paragraphs(random, 8),
    }


def _order(random: Random, bought: Row, status: str, addresses: list[Row], methods: list[Row]) -> Row:
    quantity = random.randint(1, 3)
    sent = status != "processing"
    return {
        "order_id": code(random, "ORD-", 8),
        "item": bought["name"],
        "sku": bought["sku"],
        "quantity": quantity,
        "day": _day(random),
        "status": status,
        "cents": quantity * bought["cents"],
        "address_id": random.choice(addresses)["address_id"],
        "payment_method_id": random.choice(methods)["payment_method_id"],
        "gift_note": "",
        "carrier": random.choice(CARRIERS) if sent else "",
        "tracking_number": code(random, "TRK", 12, "0123456789") if sent else "",
    }


def _transaction(random: Random, merchant: str) -> Row:
    return {
        "charge_id": code(random, "ch_", 12),
        "merchant": merchant,
        "day": _day(random),
        "cents": random.randint(300, 9_000),
        "label": random.choice(METHODS),
        "status": "settled",
    }


def _invoice(random: Random, vendor: str) -> Row:
    return {
        "invoice_number": code(random, "INV-", 4, "0123456789") + code(random, "-", 3, "0123456789"),
        "vendor": vendor,
        "cents": random.randint(2_000, 30_000),
        "due": f"2031-07-{random.randint(1, 28):02}",
        "status": "unpaid",
        "paid_with": "",
    }


def _gift_card(random: Random, sender: str) -> Row:
    parts = "-".join(code(random, "", 4) for _ in range(3))
    return {"code": f"GIFT-{parts}", "sender": sender, "cents": 1_000 * random.randint(2, 9), "status": "unused"}


def _mail(random: Random, email: str, sender: str, subject: str, body: str) -> Row:
    return {
        "mail_id": code(random, "m_", 9),
        "folder": "inbox",
        "sender": sender,
        "recipient": email,
        "day": _day(random),
        "subject": subject,
        "body": body,
    }


def _invoice_mail(random: Random, email: str, invoice: Row) -> Row:
    vendor, number = invoice["vendor"], invoice["invoice_number"]
    body = (
        f"Dear customer,\n\n{paragraphs(random, 26)}\n\nYour invoice number is {number}. It is for "
        f"{invoice['cents'] / 100:.2f} and due on {invoice['due']}.\n\n{paragraphs(random, 26)}\n\n{vendor}"
    )
    return _mail(random, email, vendor, f"Invoice from {vendor}", body)


def _gift_mail(random: Random, email: str, card: Row) -> Row:
    body = (
        f"{paragraphs(random, 22)}\n\nThe code of your gift card is {card['code']}. Buy yourself something nice."
        f"\n\n{paragraphs(random, 20)}"
    )
    return _mail(random, email, card["sender"], f"A gift card from {card['sender']}", body)


def _newsletter(random: Random, email: str, sender: str) -> Row:
    # Newsletters name vendors and friends too, so that a search for a name finds more than the one mail wanted.
    aside = f"This week we visited {random.choice(VENDORS + SENDERS)}."
    body = f"{paragraphs(random, random.randint(20, 44))}\n\n{aside} {paragraphs(random, 4)}"
    return _mail(random, email, sender, f"{sender}: {sentence(random).rstrip('.').lower()}", body)


def _shipping_mail(random: Random, email: str, order: Row) -> Row:
    body = (
        f"Your {order['item']} (order {order['order_id']}) has left our hall with {order['carrier']}.\n\n"
        f"{paragraphs(random, 6)}"
    )
    return _mail(random, email, order["carrier"], f"On its way: {order['item']}", body)


def _sent_mail(random: Random, email: str) -> Row:
    friend = f"{random.choice(NAMES).split()[0].lower()}@postbox.example"
    mail = _mail(random, email, email, sentence(random).rstrip("."), paragraphs(random, 5))
    return mail | {"folder": "sent", "recipient": friend}
