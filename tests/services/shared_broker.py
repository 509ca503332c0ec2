# SPDX-License-Identifier: Apache-2.0
"""One broker for all processes of a parallel test run, as each costs a process of Java also while nobody uses it."""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.broker import Broker, OwnBroker

_PAUSE = 0.2  # seconds between two looks of the process that waits for the others


def _nothing(broker: Broker) -> None:
    """Leave a broker empty."""


@contextmanager
def shared_broker(folder: Path, fill: Callable[[Broker], None] = _nothing) -> Iterator[Broker]:
    """Yield the broker of all processes that name this folder: the first starts it, and stops it when the last is done.

    Who uses it holds a lock that ends with the process, however it ends.

    folder: where its address is written; the same for all processes, and of this run only.
    fill: brings records into it, once.
    """
    folder.mkdir(exist_ok=True)
    address = folder / "address.json"
    with (folder / "users").open("a") as users:
        with _alone(folder):
            fcntl.flock(users, fcntl.LOCK_SH)
            own = None if address.exists() else _started(address, fill)
        try:
            yield own or Broker(*json.loads(address.read_text()))
        finally:
            if own is not None:
                _leave_last(folder, users.fileno(), address)
                own.stop()


def _started(address: Path, fill: Callable[[Broker], None]) -> OwnBroker:
    broker = OwnBroker()
    try:
        fill(broker)
    except BaseException:
        broker.stop()
        raise
    address.write_text(json.dumps([broker.bootstrap, broker.sasl_bootstrap]))
    return broker


def _leave_last(folder: Path, users: int, address: Path) -> None:
    """Wait until no other process uses the broker, and let none begin to."""
    while True:
        with _alone(folder):
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            else:
                address.unlink()
                return
        time.sleep(_PAUSE)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time begin or end to use the broker."""
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
