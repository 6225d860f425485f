"""Learned relevance eviction for LangChain and LangGraph."""

from lre_core import MissingExtra

try:
    from langchain_lre.edit import LREEdit
    from langchain_lre.hook import lre_pre_model_hook
    from langchain_lre.messages import to_message
    from langchain_lre.middleware import LREMiddleware
except ModuleNotFoundError as error:
    if error.name and error.name.startswith(("langchain", "langgraph")):
        raise MissingExtra("langchain_lre", "langchain") from error
    raise

__all__ = ["LREEdit", "LREMiddleware", "lre_pre_model_hook", "to_message"]
