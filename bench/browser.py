"""A real Chromium, driven over its own pipe: nothing to install beside it. Chrome's protocol of 1.3, as
https://chromedevtools.github.io/devtools-protocol/ documents it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--no-default-browser-check", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


def chromium() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One tab. What it logged as an error is in `errors`, the addresses that it asked for in `requests`."""

    def __init__(self, out: int, into: int) -> None:
        self._out, self._in = out, into  # we write to one, and read from the other
        self._session: str | None = None
        self._last = 0
        self._read = b""
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.size(1280, 900)

    def call(self, method: str, **params: Any) -> Any:
        """The result of one command. Raises RuntimeError where it says no, TimeoutError after a minute."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + 60
        while (answer := self._next(until)).get("id") != self._last:
            self._note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._read:
            if not select.select([self._in], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self._in, 1 << 16)
            if not more:
                raise EOFError("the browser has ended")
            self._read += more
        line, _, self._read = self._read.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                said = params["exceptionDetails"]
                self.errors.append(said.get("exception", {}).get("description") or said["text"])
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.errors.append(" ".join(str(arg.get("value", arg.get("description"))) for arg in params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.errors.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])

    def open(self, path: Path) -> float:
        """Open a file; seconds until its timeline is drawn, by the browser's own clock from the navigation on."""
        self.call("Page.navigate", url=path.as_uri())
        self.wait("document.documentElement?.dataset.ready")
        return float(self.js("performance.now()")) / 1000

    def js(self, expression: str) -> Any:
        """The value of an expression, a promise's too. Raises RuntimeError where it throws."""
        said = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in said:
            details = said["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return said["result"].get("value")

    def wait(self, expression: str, seconds: float = 30) -> Any:
        """Its first value that is true; a node is not, as none can be handed over."""
        until = time.monotonic() + seconds
        while not (found := self.js(expression)):
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.02)
        return found

    def press(self, key: str) -> None:
        text = {"Enter": "\r", "Space": " "}.get(key, "")
        said = {"key": " " if key == "Space" else key, "code": key, "windowsVirtualKeyCode": _CODES[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **said)
        self.call("Input.dispatchKeyEvent", type="keyUp", **said)

    def size(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def scheme(self, name: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def shot(self, path: Path, whole: bool = False) -> None:
        """A picture of what is seen, or of the whole page."""
        clip = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"clip": {**size, "height": min(size["height"], 9000), "scale": 1}}
        said = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **clip)
        path.write_bytes(base64.b64decode(said["data"]))


_CODES = {
    "Tab": 9, "Enter": 13, "Escape": 27, "Space": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
    "ArrowRight": 39, "ArrowDown": 40,
}  # fmt: skip


# The protocol is spoken over these descriptors; a shell would take no number above 9 for the others.
_AS_3_AND_4 = """
import fcntl, os, sys
held = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3]]
os.dup2(held[0], 3)
os.dup2(held[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


@contextlib.contextmanager
def opened() -> Iterator[Page]:
    """A tab of a browser of its own, with nothing of the user's in it; it and its files are gone after that."""
    program = chromium()
    assert program is not None
    ours, theirs = os.pipe(), os.pipe()  # commands, answers
    held = ours[0], theirs[1]
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as place:
        started = subprocess.Popen(
            [sys.executable, "-c", _AS_3_AND_4, *map(str, held), program, *FLAGS, f"--user-data-dir={place}"],
            pass_fds=held, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": place, "TMPDIR": place},
        )  # fmt: skip
        os.close(ours[0])
        os.close(theirs[1])
        try:
            yield Page(ours[1], theirs[0])
        finally:
            os.close(ours[1])  # it ends with its pipe
            os.close(theirs[0])
            try:
                started.wait(20)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()
