"""Ways to pay, charges, invoices and gift cards."""

from random import Random

from benchmarks.demo.prose import paragraphs, sentence
from benchmarks.demo.world import Json, World

PAGE = 18
METHOD = "SELECT payment_method_id, label, kind, holder, expires, is_default FROM payment_methods"
CHARGE = "SELECT charge_id, merchant, day, cents / 100.0 AS amount, label AS paid_with, status FROM transactions"
INVOICE = "SELECT invoice_number, vendor, cents / 100.0 AS amount, due, status, paid_with FROM invoices"
GIFT_CARD = "SELECT code, sender, cents / 100.0 AS amount, status FROM gift_cards"


class Payments:
    """The payment service."""

    def __init__(self, world: World) -> None:
        self.world = world

    def list_payment_methods(self, token: str = "") -> Json:
        """List cards and accounts to pay with."""
        self.world.require(token)
        return {"payment_methods": self.world.rows(METHOD)}

    def set_default_payment_method(self, payment_method_id: str, token: str = "") -> Json:
        """Choose what is used when nothing is said."""
        self.world.require(token)
        self._method(payment_method_id)
        self.world.change("UPDATE payment_methods SET is_default = (payment_method_id = :p)", p=payment_method_id)
        return self._method(payment_method_id)

    def list_transactions(self, page: int = 1, token: str = "") -> Json:
        """List charges, newest first, eighteen on a page."""
        self.world.require(token)
        charges = self.world.rows(f"{CHARGE} ORDER BY day DESC, charge_id")
        shown = charges[(page - 1) * PAGE : page * PAGE]
        return {"page": page, "pages": -(-len(charges) // PAGE), "charges": shown}

    def request_refund(self, charge_id: str, token: str = "") -> Json:
        """Ask a merchant to give a charge back."""
        self.world.require(token)
        missing = f"There is no charge {charge_id}."
        self.world.row(missing, f"{CHARGE} WHERE charge_id = :c", c=charge_id)
        self.world.change("UPDATE transactions SET status = 'refund requested' WHERE charge_id = :c", c=charge_id)
        return self.world.row(missing, f"{CHARGE} WHERE charge_id = :c", c=charge_id)

    def invoice_details(self, invoice_number: str, token: str = "") -> Json:
        """Show one invoice and whether it is paid."""
        self.world.require(token)
        random = Random(invoice_number)
        lines = [{"line": number, "for": sentence(random)} for number in range(1, 8)]
        return self._invoice(invoice_number) | {"lines": lines, "terms": paragraphs(random, 5)}

    def pay_invoice(self, invoice_number: str, payment_method_id: str, token: str = "") -> Json:
        """Pay an invoice in full; a paid one is not paid twice."""
        self.world.require(token)
        label = self._method(payment_method_id)["label"]
        self._invoice(invoice_number)
        self.world.change(
            "UPDATE invoices SET status = 'paid', paid_with = :label "
            "WHERE invoice_number = :invoice_number AND status = 'unpaid'",
            label=label,
            invoice_number=invoice_number,
        )
        return self._invoice(invoice_number)

    def gift_card_balance(self, code: str, token: str = "") -> Json:
        """Show what a gift card is worth and whether it is used."""
        self.world.require(token)
        return self._gift_card(code)

    def redeem_gift_card(self, code: str, token: str = "") -> Json:
        """Add a gift card to the account; a redeemed one stays redeemed."""
        self.world.require(token)
        self._gift_card(code)
        self.world.change("UPDATE gift_cards SET status = 'redeemed' WHERE code = :code", code=code)
        return self._gift_card(code)

    def _method(self, payment_method_id: str) -> Json:
        return self.world.row("No such payment method.", f"{METHOD} WHERE payment_method_id = :p", p=payment_method_id)

    def _invoice(self, invoice_number: str) -> Json:
        return self.world.row(
            f"There is no invoice {invoice_number}.", f"{INVOICE} WHERE invoice_number = :i", i=invoice_number
        )

    def _gift_card(self, code: str) -> Json:
        return self.world.row("There is no such gift card.", f"{GIFT_CARD} WHERE code = :code", code=code)
