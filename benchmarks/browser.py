"""A real headless Chromium, spoken to over its debugging pipe: no driver, no package, no port."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
MISSING = "no chromium here: apt-get install chromium"


class Page:
    """One tab.

    Attributes:
        problems: what the console and the content security policy complained of, and every request that left the page.
    """

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, os.fdopen(answers, "rb")
        self._number, self._session = 0, ""
        self.problems: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the DevTools protocol, and its result."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._number:
                assert "error" not in message, message["error"]
                result: dict[str, Any] = message["result"]
                return result

    def _next(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self._answers.read(1)) != b"\0":
            assert byte, "the browser has gone"
            text += byte
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "about:")):
            self.problems.append(f"request: {params['request']['url']}")
        elif method == "Page.javascriptDialogOpening":
            self.problems.append(f"dialog: {params['message']}")

    def open(self, path: Path, *, width: int = 1100, height: int = 800, dark: bool = False) -> None:
        """Loads a file, in a window of this size."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.as_uri())
        while self.evaluate("document.readyState") != "complete":
            pass

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Presses a key, as a person would."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEY_CODES[key])

    def point(self, selector: str) -> None:
        """Moves the mouse onto an element."""
        place = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])

    def screenshot(self, path: Path, *, between: tuple[float, float] | None = None) -> None:
        """Writes what the window shows as a PNG, or the page between two heights, in pixels from its top."""
        params: dict[str, Any] = {"format": "png"}
        if between is not None:
            top, bottom = between
            clip = {"x": 0, "y": top, "width": self.evaluate("innerWidth"), "height": bottom - top, "scale": 1}
            params |= {"captureBeyondViewport": True, "clip": clip}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **params)["data"]))


KEY_CODES = {
    "Tab": 9,
    "Escape": 27,
    "PageUp": 33,
    "PageDown": 34,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}


@contextmanager
def browser() -> Iterator[Page]:
    """A browser with one tab, without network, for as long as the context lasts."""
    assert CHROMIUM is not None
    commands_out, commands_in = os.pipe()
    answers_out, answers_in = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The pipe is descriptors 3 and 4 of the browser; a shell puts them there.
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        arguments += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run", "--disable-extensions"]
        arguments += ["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"]
        moved = f'exec "$0" "$@" 3<&{commands_out} 4>&{answers_in}'
        process = subprocess.Popen(
            ["bash", "-c", moved, CHROMIUM, *arguments],
            pass_fds=(commands_out, answers_in),
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(commands_out)
        os.close(answers_in)
        try:
            page = Page(commands_in, answers_out)
            yield page
            page._answers.close()
        finally:
            os.close(commands_in)
            process.terminate()
            process.wait(timeout=20)
