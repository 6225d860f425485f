"""Anthropic's Messages API on this machine: it plays a script of tool calls and keeps every request it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

__all__ = ["anthropic_api"]


@contextmanager
def anthropic_api(script: Iterator[list[dict[str, Any]]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Runs it while in use.

    Args:
        script: the content blocks of each answer.

    Yields:
        Its address, and the bodies of the requests so far.
    """
    requests: list[dict[str, Any]] = []

    class Messages(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            content = next(script)
            calls = any(block["type"] == "tool_use" for block in content)
            body = json.dumps(
                {
                    "id": f"msg_{len(requests)}",
                    "type": "message",
                    "role": "assistant",
                    "model": requests[-1]["model"],
                    "content": content,
                    "stop_reason": "tool_use" if calls else "end_turn",
                    "stop_sequence": None,
                    "usage": {"input_tokens": 1, "output_tokens": 1},
                }
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Says nothing on stderr."""

    with HTTPServer(("127.0.0.1", 0), Messages) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            serving.join()
