"""Learned relevance eviction for LlamaIndex."""

from lre_core import MissingExtra

try:
    from llamaindex_lre.agent import LREFunctionAgent, LREReActAgent
    from llamaindex_lre.buffer import LREChatMemoryBuffer
    from llamaindex_lre.memory import LREMemory
    from llamaindex_lre.messages import to_message
    from llamaindex_lre.recall import recall_tool
except ModuleNotFoundError as error:
    if error.name and error.name.startswith("llama_index"):
        raise MissingExtra("llamaindex_lre", "llamaindex") from error
    raise

__all__ = ["LREChatMemoryBuffer", "LREFunctionAgent", "LREMemory", "LREReActAgent", "recall_tool", "to_message"]
