# SPDX-License-Identifier: Apache-2.0
"""Print lines, and below them what happens now."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import TextIO


class Screen:
    """Print to a terminal, where the last line moves, or to a pipe, where every step is a line.

    :ivar moves: whether it is a terminal.
    """

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self.moves = out.isatty()
        self._started = time.monotonic()
        self._step = ""
        self._lock = threading.Lock()
        self._over = threading.Event()
        if self.moves:
            threading.Thread(target=self._tick, daemon=True).start()

    @property
    def elapsed(self) -> float:
        """Seconds since the work began."""
        return time.monotonic() - self._started

    def line(self, text: str = "") -> None:
        """Print a line that stays."""
        with self._lock:
            self._clear()
            print(text, file=self._out, flush=True)
            self._draw()

    def step(self, text: str) -> None:
        """Print the present step."""
        with self._lock:
            if text == self._step:
                return
            self._step = text
            if self.moves:
                self._draw()
            elif text:
                print(f"  {self.elapsed:5.1f} s  {text}", file=self._out, flush=True)

    def close(self) -> None:
        """Remove the moving line."""
        self._over.set()
        with self._lock:
            self._clear()
            self._step = ""

    def _tick(self) -> None:
        while not self._over.wait(0.5):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        if self.moves and self._step and not self._over.is_set():
            width = shutil.get_terminal_size().columns - 1
            text = f"{self.elapsed:5.0f} s  {self._step}"
            print(f"\r\x1b[2K{text[:width]}", end="", file=self._out, flush=True)

    def _clear(self) -> None:
        if self.moves:
            print("\r\x1b[2K", end="", file=self._out, flush=True)
