# SPDX-License-Identifier: Apache-2.0
"""One broker for all processes of a parallel test run, as each costs a process of Java also while nobody uses it."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.broker import Broker, OwnBroker


def _nothing(broker: Broker) -> None:
    """Leave a broker empty."""


@contextmanager
def shared_broker(folder: Path, fill: Callable[[Broker], None] = _nothing) -> Iterator[Broker]:
    """Yield the broker of all processes that name this folder: the first starts it, and stops it when the last is done.

    Who uses it holds a lock that ends with the process, however it ends. The broker ends with the process that started
    it.

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
                fcntl.flock(users, fcntl.LOCK_EX)  # waits for the others; who comes now waits in turn
                address.unlink()
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


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time see whether there is a broker, and start it."""
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
