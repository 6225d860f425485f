"""Chat logs as people keep them, read one history at a time.

Formats, detected file by file: OpenAI chat messages, the Responses API's items and Anthropic messages, as histories or
as dumps of requests with their responses; LangChain's `messages_to_dict` and `dumpd`; LangSmith run exports; LlamaIndex
chat stores; ATIF trajectories. JSON or JSON Lines, plain, gzip or zstd; a file, a folder, a glob or an fsspec URL.
"""

from lre_core.logs.reader import Histories, History, read
from lre_core.logs.sample import Sample

__all__ = ["Histories", "History", "Sample", "read"]
