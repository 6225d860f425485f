"""The six services as LangChain tools."""

import inspect
import json
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from benchmarks.demo.services.accounts import Accounts
from benchmarks.demo.services.addresses import Addresses
from benchmarks.demo.services.catalog import Catalog
from benchmarks.demo.services.mail import Mail
from benchmarks.demo.services.orders import Orders
from benchmarks.demo.services.payments import Payments
from benchmarks.demo.world import Json, Refused, World

P = ParamSpec("P")

__all__ = ["SERVICES", "tools"]

SERVICES = (Accounts, Orders, Addresses, Payments, Mail, Catalog)


def tools(world: World) -> list[BaseTool]:
    """Every public method of every service, as a tool of the same name.

    A refusal comes back as an error result, `{"error": code, "message": ...}`, and the run goes on.

    Args:
        world: The world the tools act in; each call moves its clock by a minute.
    """
    methods = (method for service in SERVICES for _, method in inspect.getmembers(service(world), inspect.ismethod))
    return [
        StructuredTool.from_function(_served(world, method), handle_tool_error=_error_result)
        for method in methods
        if not method.__name__.startswith("_")
    ]


def _served(world: World, method: Callable[P, Json]) -> Callable[P, Json]:
    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> Json:
        with world.lock:
            world.minute += 1
            before = world.changes
            result = method(*args, **kwargs)
            if world.changes > before:
                entry = {name: value for name, value in result.items() if name != "token"}
                world.insert(
                    "activity", {"minute": world.minute, "entry": json.dumps({"did": method.__name__} | entry)}
                )
            return result

    return call


def _error_result(error: ToolException) -> str:
    code = error.code if isinstance(error, Refused) else "error"
    return json.dumps({"error": code, "message": str(error)})
