"""Orders: placing, looking, changing, sending back."""

from random import Random

from benchmarks.demo import population
from benchmarks.demo.prose import paragraphs, sentence
from benchmarks.demo.world import Json, Refused, World

PAGE = 12
HITS = 10
HANDLING = ("received", "paid", "picked", "checked", "wrapped", "weighed")
ORDER = """
SELECT order_id, item, sku, quantity, day AS ordered_on, status, cents / 100.0 AS total, addresses.label AS deliver_to,
       payment_methods.label AS paid_with, carrier, gift_note
FROM orders JOIN addresses USING (address_id) JOIN payment_methods USING (payment_method_id)
"""
RETURN = """
SELECT return_id, order_id, item, reason, returns.status AS return_status, addresses.label AS pickup_from
FROM returns JOIN orders USING (order_id) LEFT JOIN addresses ON addresses.address_id = pickup_address_id
"""


class Orders:
    """The order service."""

    def __init__(self, world: World) -> None:
        self.world = world

    def list_orders(self, page: int = 1, token: str = "") -> Json:
        """List all orders, newest first, twelve on a page."""
        self.world.require(token)
        orders = self.world.rows(f"{ORDER} ORDER BY ordered_on DESC, order_id")
        shown = orders[(page - 1) * PAGE : page * PAGE]
        return {"page": page, "pages": -(-len(orders) // PAGE), "orders": shown}

    def search_orders(self, query: str, token: str = "") -> Json:
        """Find orders whose item shares a word with the query; best first, at most ten."""
        self.world.require(token)
        words = set(query.lower().split())
        orders = self.world.rows(f"{ORDER} ORDER BY ordered_on DESC, order_id")
        found = [order for order in orders if words & set(order["item"].split())]
        found.sort(key=lambda order: -len(words & set(order["item"].split())))
        return {"query": query, "found": len(found), "orders": found[:HITS]}

    def order_status(self, order_id: str, token: str = "") -> Json:
        """Show the state of one order and where it goes."""
        self.world.require(token)
        order, random = self._order(order_id), Random(order_id)
        log = [
            {"step": step, "hall": random.choice(population.CITIES), "remark": sentence(random)} for step in HANDLING
        ]
        return order | {"handling": log, "terms": paragraphs(random, 6)}

    def order_receipt(self, order_id: str, token: str = "") -> Json:
        """Show what was paid for one order, line by line."""
        self.world.require(token)
        order = self._order(order_id)
        net = round(order["total"] / 1.2, 2)
        return order | {"net": net, "tax": round(order["total"] - net, 2), "seller": "Lantern Market, Kessel"}

    def change_delivery_address(self, order_id: str, address_id: str, token: str = "") -> Json:
        """Send an order that is still processing to another saved address."""
        self.world.require(token)
        self._processing(order_id)
        self.world.row("No such address.", "SELECT 1 FROM addresses WHERE address_id = :a", a=address_id)
        self.world.change(
            "UPDATE orders SET address_id = :address_id WHERE order_id = :order_id",
            address_id=address_id,
            order_id=order_id,
        )
        order = self._order(order_id)
        return {"order_id": order_id, "item": order["item"], "deliver_to": order["deliver_to"], "changed": True}

    def add_gift_note(self, order_id: str, note: str, token: str = "") -> Json:
        """Put a note into the parcel of an order that is still processing."""
        self.world.require(token)
        item = self._processing(order_id)["item"]
        self.world.change("UPDATE orders SET gift_note = :note WHERE order_id = :o", note=note, o=order_id)
        return {"order_id": order_id, "item": item, "gift_note": note}

    def cancel_order(self, order_id: str, reason: str, token: str = "") -> Json:
        """Cancel an order that is still processing; says so if it was cancelled before."""
        self.world.require(token)
        order = self._order(order_id)
        if order["status"] != "cancelled":
            self._processing(order_id)
            self.world.change(
                "UPDATE orders SET status = 'cancelled', cancel_reason = :reason WHERE order_id = :order_id",
                reason=reason,
                order_id=order_id,
            )
        return {"order_id": order_id, "item": order["item"], "status": "cancelled", "refund": order["total"]}

    def place_order(self, sku: str, quantity: int, address_id: str, payment_method_id: str, token: str = "") -> Json:
        """Order a product; an order for the same goods made today is returned instead of made twice."""
        self.world.require(token)
        product = self.world.row("No such product.", "SELECT name, cents FROM products WHERE sku = :sku", sku=sku)
        self.world.row("No such address.", "SELECT 1 FROM addresses WHERE address_id = :a", a=address_id)
        self.world.row(
            "No such payment method.", "SELECT 1 FROM payment_methods WHERE payment_method_id = :p", p=payment_method_id
        )
        made = self.world.rows(
            "SELECT order_id FROM orders WHERE sku = :sku AND quantity = :quantity AND day = :day",
            sku=sku,
            quantity=quantity,
            day=population.TODAY,
        )
        if made:
            return self._order(made[0]["order_id"])
        order_id = self.world.issue("ORD-", 8)
        self.world.insert(
            "orders",
            {
                "order_id": order_id,
                "item": product["name"],
                "sku": sku,
                "quantity": quantity,
                "day": population.TODAY,
                "status": "processing",
                "cents": quantity * product["cents"],
                "address_id": address_id,
                "payment_method_id": payment_method_id,
                "gift_note": "",
                "carrier": "",
                "tracking_number": "",
            },
        )
        return self._order(order_id)

    def track_shipment(self, order_id: str, token: str = "") -> Json:
        """Follow the parcel of an order that has been sent."""
        self.world.require(token)
        order = self.world.row(
            f"There is no order {order_id}.",
            "SELECT item, carrier, tracking_number, day, status FROM orders WHERE order_id = :o",
            o=order_id,
        )
        if not order["carrier"]:
            raise Refused("not_sent", f"Order {order_id} has not been sent yet.")
        stops = Random(order["tracking_number"]).sample(population.CITIES, 5)
        scans = [
            {"scan": number, "place": f"{order['carrier']} depot {place}", "event": event, "weight_kg": 1.4}
            for number, (place, event) in enumerate(zip(stops, ("in", "sorted", "out", "in", "out"), strict=True), 1)
        ]
        return {
            "order_id": order_id,
            "item": order["item"],
            "carrier": order["carrier"],
            "tracking_number": order["tracking_number"],
            "scans": scans,
        }

    def start_return(self, order_id: str, reason: str, token: str = "") -> Json:
        """Open a return for a delivered order; an open one is returned instead of opened twice."""
        self.world.require(token)
        order = self._order(order_id)
        if order["status"] != "delivered":
            raise Refused("not_delivered", f"Order {order_id} is {order['status']}; only delivered orders come back.")
        if not self.world.rows("SELECT 1 FROM returns WHERE order_id = :o", o=order_id):
            row = {"return_id": self.world.issue("RMA-", 6), "order_id": order_id, "reason": reason, "status": "open"}
            self.world.insert("returns", row)
        return self.world.rows(f"{RETURN} WHERE order_id = :o", o=order_id)[0]

    def list_returns(self, token: str = "") -> Json:
        """List all returns and where they are picked up."""
        self.world.require(token)
        return {"returns": self.world.rows(f"{RETURN} ORDER BY return_id")}

    def book_return_pickup(self, return_id: str, address_id: str, token: str = "") -> Json:
        """Have a return picked up from a saved address."""
        self.world.require(token)
        self.world.row(f"There is no return {return_id}.", "SELECT 1 FROM returns WHERE return_id = :r", r=return_id)
        self.world.row("No such address.", "SELECT 1 FROM addresses WHERE address_id = :a", a=address_id)
        self.world.change(
            "UPDATE returns SET pickup_address_id = :address_id WHERE return_id = :return_id",
            address_id=address_id,
            return_id=return_id,
        )
        return self.world.rows(f"{RETURN} WHERE return_id = :r", r=return_id)[0]

    def _order(self, order_id: str) -> Json:
        return self.world.row(f"There is no order {order_id}.", f"{ORDER} WHERE order_id = :o", o=order_id)

    def _processing(self, order_id: str) -> Json:
        order = self._order(order_id)
        if order["status"] != "processing":
            raise Refused("too_late", f"Order {order_id} is {order['status']}; only processing orders can change.")
        return order
