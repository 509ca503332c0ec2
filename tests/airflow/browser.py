# SPDX-License-Identifier: Apache-2.0
"""Drive a headless Chromium through its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any


class NoBrowser(RuntimeError):
    """There is no Chromium on this machine."""


class Browser:
    """One tab of a headless Chromium, which reads commands from descriptor 3 and answers on descriptor 4.

    :param folder: its profile.
    """

    def __init__(self, folder: Path, width: int = 1440, height: int = 1000) -> None:
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program is None:
            raise NoBrowser("chromium is not installed; Debian's package chromium brings it")
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        script = f'exec 3<&{in_read} 4>&{out_write}; exec "$@"'
        command = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]
        command += [
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
            f"--window-size={width},{height}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", script, "sh", *command], pass_fds=(in_read, out_write),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(in_read)
        os.close(out_write)
        self._commands, self._answers = os.fdopen(in_write, "wb"), os.fdopen(out_read, "rb")
        self._buffer = b""
        self._number = 0
        self.messages: list[str] = []
        self._session: str | None = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._commands.close()
        self._process.terminate()
        self._process.wait(30)
        self._answers.close()

    def log_in(self, url: str, token: str) -> None:
        """Set the cookie that a login would set."""
        self._call("Network.setCookie", name="_token", value=token, url=url)

    def open(self, url: str, theme: str = "light") -> None:
        """Open a page with a theme of Airflow's UI."""
        script = f"try {{ localStorage.setItem('theme', '{theme}') }} catch {{}}"
        self._call("Page.addScriptToEvaluateOnNewDocument", source=script)
        media = [{"name": "prefers-color-scheme", "value": theme}]
        self._call("Emulation.setEmulatedMedia", features=media)
        self._call("Page.navigate", url=url)

    def resize(self, width: int, height: int) -> None:
        """Give the window another size."""
        size = {"width": width, "height": height}
        self._call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)

    def press(self, key: str) -> None:
        """Press a key, ``Tab`` or ``Enter``."""
        code = {"Tab": 9, "Enter": 13}[key]
        more = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 60) -> Any:
        """Return the value of an expression as soon as it is true."""
        deadline = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            text = self.evaluate("document.body?.innerText")
            assert time.monotonic() < deadline, f"never true: {expression}\n{text}\n{self.messages}"
            time.sleep(0.1)
        return value

    def screenshot(self, file: Path) -> None:
        """Write what is seen as PNG."""
        file.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer}"
                return dict(answer["result"])
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.messages.append(json.dumps(answer["params"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            piece = os.read(self._answers.fileno(), 1 << 16)
            if not piece:
                raise NoBrowser("chromium ended")
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))
