# SPDX-License-Identifier: Apache-2.0
"""Processes as the kernel shows them: who descends from whom, and who carries a mark in its environment."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time
from pathlib import Path

MARK = "CDC_SYSTEM_TEST"


def marked(mark: str) -> list[int]:
    """Return the living processes that carry a mark, wherever they hang by now."""
    variable = f"{MARK}={mark}".encode()
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if variable in (entry / "environ").read_bytes().split(b"\0") and state(int(entry.name)) not in "ZX":
                pids.append(int(entry.name))
    return pids


def halt(mark: str) -> list[int]:
    """Stop the processes that carry a mark, also those that others started meanwhile, and return them.

    While a process becomes another program, it carries no mark: it is a child of one that is stopped then.
    """
    pids: list[int] = []
    while new := {*marked(mark), *(child for pid in pids for child in descendants(pid))}.difference(pids):
        for pid in new:
            kill(pid, signal.SIGSTOP)
        pids += new
    return pids


def descendants(pid: int) -> list[int]:
    """Return a process's descendants, elders first."""
    pids = _children(pid)
    for one in pids:
        pids += _children(one)
    return pids


def _children(pid: int) -> list[int]:
    """Return a process's children as each of its threads lists them: to look at all processes takes 50 times longer."""
    pids: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                pids += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return pids


def stop(pid: int, ledger: Path) -> list[int]:
    """Stop a process and its descendants while none of them holds the lock of an SQLite ledger, and return all.

    A process that is stopped inside a transaction would stop everybody who uses the ledger.
    """
    while True:
        pids = [pid, *descendants(pid)]
        for one in pids:
            kill(one, signal.SIGSTOP)
        if not _is_locked(ledger):
            return pids
        for one in reversed(pids):
            kill(one, signal.SIGCONT)
        time.sleep(0.01)


def _is_locked(ledger: Path) -> bool:
    if not ledger.exists():
        return False
    try:
        with contextlib.closing(sqlite3.connect(ledger, timeout=1, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return True
    return False


def command(pid: int) -> str:
    """Return a process's command line, empty when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def state(pid: int) -> str:
    """Return the letter of a process's state; ``X`` when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return "X"


def kill(pid: int, how: signal.Signals = signal.SIGKILL) -> bool:
    """Send a signal to one process; return whether it was there."""
    if state(pid) in "ZX":
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)
        return True
    return False
