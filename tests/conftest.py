"""How properties are tested, the same examples on every run, and the servers that tests may ask for."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import settings
from servers import databases, postgresql_server, postgresql_url, redis_server, redis_url

__all__ = ["databases", "postgresql_server", "postgresql_url", "redis_server", "redis_url"]


@pytest.fixture(scope="session")
def event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture(autouse=True)
def event_loop_of_the_thread(event_loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """LlamaIndex's bridge from sync to async takes the thread's loop, or makes one that nobody closes."""
    asyncio.set_event_loop(event_loop)
    yield
    # A connection that was closed gives its socket back in the loop's next round.
    event_loop.run_until_complete(asyncio.sleep(0))


# A failing example is printed so that it can be replayed.
settings.register_profile("lre", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("lre")
