# SPDX-License-Identifier: Apache-2.0
"""Print the demo: a table that grows by a line with every run, and below it what happens now."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Sequence
from typing import TextIO

WIDTHS = (6, 8, 9, 8, 8, 8, 9, 7, 8)
HEAD = ("until", "records", "snapshot", "insert", "update", "delete", "truncate", "tables", "seconds")


class Screen:
    """Prints to a terminal, where the last line moves, or to a pipe, where every step is a line."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._moves = out.isatty()
        self._started = time.monotonic()
        self._step = ""
        self._lock = threading.Lock()
        self._over = threading.Event()
        if self._moves:
            threading.Thread(target=self._tick, daemon=True).start()

    @property
    def elapsed(self) -> float:
        """Seconds since the demo began."""
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
            if self._moves:
                self._draw()
            elif text:
                print(f"  {self.elapsed:5.1f} s  {text}", file=self._out, flush=True)

    def head(self) -> None:
        """Print the table's head."""
        self.line(_cells(HEAD) + "  equal to the database")
        self.line(_cells(["-" * len(name) for name in HEAD]) + "  ---------------------")

    def row(self, cells: Sequence[object], verdict: str) -> None:
        """Print one line of the table."""
        self.line(f"{_cells(cells)}  {verdict}")

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
        if self._moves and self._step and not self._over.is_set():
            width = shutil.get_terminal_size().columns - 1
            text = f"{self.elapsed:5.0f} s  {self._step}"
            print(f"\r\x1b[2K{text[:width]}", end="", file=self._out, flush=True)

    def _clear(self) -> None:
        if self._moves:
            print("\r\x1b[2K", end="", file=self._out, flush=True)


def _cells(cells: Sequence[object]) -> str:
    return " ".join(str(cell).rjust(width) for cell, width in zip(cells, WIDTHS, strict=True))
