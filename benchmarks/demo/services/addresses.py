"""Saved delivery addresses."""

from benchmarks.demo.world import Json, World

ADDRESS = "SELECT address_id, label, street, postcode, city, access_notes, is_default FROM addresses"


class Addresses:
    """The address book."""

    def __init__(self, world: World) -> None:
        self.world = world

    def list_addresses(self, token: str = "") -> Json:
        """List the saved addresses."""
        self.world.require(token)
        return {"addresses": self.world.rows(ADDRESS)}

    def add_address(self, label: str, street: str, postcode: str, city: str, token: str = "") -> Json:
        """Save an address under a new label; a label in use keeps its identifier and gets the new street."""
        self.world.require(token)
        place = {"label": label, "street": street, "postcode": postcode, "city": city}
        if self.world.rows("SELECT 1 FROM addresses WHERE label = :label", label=label):
            self.world.change(
                "UPDATE addresses SET street = :street, postcode = :postcode, city = :city WHERE label = :label",
                **place,
            )
        else:
            address_id = self.world.issue("adr_", 8)
            self.world.insert("addresses", {"address_id": address_id, **place, "access_notes": "", "is_default": False})
        return self.world.rows(f"{ADDRESS} WHERE label = :label", label=label)[0]

    def set_access_notes(self, address_id: str, notes: str, token: str = "") -> Json:
        """Tell couriers how to get in."""
        self.world.require(token)
        self._found(address_id)
        self.world.change("UPDATE addresses SET access_notes = :n WHERE address_id = :a", n=notes, a=address_id)
        return self._found(address_id)

    def set_default_address(self, address_id: str, token: str = "") -> Json:
        """Choose the address that new orders go to."""
        self.world.require(token)
        self._found(address_id)
        self.world.change("UPDATE addresses SET is_default = (address_id = :a)", a=address_id)
        return self._found(address_id)

    def remove_address(self, address_id: str, token: str = "") -> Json:
        """Forget a saved address."""
        self.world.require(token)
        label = self._found(address_id)["label"]
        self.world.change("DELETE FROM addresses WHERE address_id = :a", a=address_id)
        return {"status": "removed", "label": label}

    def _found(self, address_id: str) -> Json:
        return self.world.row("No such address.", f"{ADDRESS} WHERE address_id = :a", a=address_id)
