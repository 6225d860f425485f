"""How properties are tested, the same examples on every run, and the servers that tests may ask for."""

from hypothesis import settings
from servers import databases, postgresql_server, postgresql_url, redis_server, redis_url

__all__ = ["databases", "postgresql_server", "postgresql_url", "redis_server", "redis_url"]

# A failing example is printed so that it can be replayed.
settings.register_profile("lre", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("lre")
