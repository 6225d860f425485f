"""What the shop sells. The only service that asks for no token."""

from random import Random

from benchmarks.demo.prose import paragraphs, sentence
from benchmarks.demo.world import Json, World

HITS = 10


class Catalog:
    """The shop's catalogue."""

    def __init__(self, world: World) -> None:
        self.world = world

    def search_catalog(self, query: str) -> Json:
        """Find products whose name shares a word with the query; best first, at most ten."""
        words = set(query.lower().split())
        products = self.world.rows("SELECT sku, name, category, cents / 100.0 AS price, description FROM products")
        matches = [product for product in products if words & set(product["name"].split())]
        matches.sort(key=lambda product: (-len(words & set(product["name"].split())), product["sku"]))
        return {"query": query, "found": len(matches), "products": matches[:HITS]}

    def list_categories(self) -> Json:
        """List the shop's categories and how many products each has."""
        return {"categories": self.world.rows("SELECT category, count(*) AS products FROM products GROUP BY category")}

    def product_details(self, sku: str) -> Json:
        """Show one product with its full description."""
        product = self._found(sku)
        return product | {"care": paragraphs(Random(sku), 6)}

    def product_reviews(self, sku: str) -> Json:
        """Show what buyers wrote about a product."""
        product, random = self._found(sku), Random(sku)
        reviews = [{"stars": random.randint(2, 5), "text": sentence(random)} for _ in range(6)]
        return {"sku": sku, "name": product["name"], "reviews": reviews}

    def stock_level(self, sku: str) -> Json:
        """Show how many pieces of a product are in stock."""
        product = self.world.row("No such product.", "SELECT sku, name, stock FROM products WHERE sku = :sku", sku=sku)
        return product | {"restocked_on": "Mondays"}

    def _found(self, sku: str) -> Json:
        return self.world.row(
            "No such product.",
            "SELECT sku, name, category, cents / 100.0 AS price, description FROM products WHERE sku = :sku",
            sku=sku,
        )
