# SPDX-License-Identifier: Apache-2.0
"""Let something go wrong while a round's batches run."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.rounds import LEASE_SECONDS, Round
from tests.faults.store import FAULTS, Weather
from tests.system import processes

_STATUSES = (409, 500, 502, 503, 504)


def _store(fault: Any) -> Callable[[Round], None]:
    def strike(round_: Round) -> None:
        assert round_.target.lake is not None
        store = round_.target.lake.failing
        for share in (0.2, 0.05):
            store.weather = Weather(fault, share, random.Random(round_.number))
            ending = round_.sync()
            store.weather = Weather()
            # Arrow's S3 client takes half of a header for a whole one, and the file for an empty one
            half_read = fault == "cut" and round_.target.kind.startswith("iceberg")
            for reason in () if half_read else ending.of_store:
                round_.problems.append(f"a passing fault of the store ({fault}) parked a table: {reason}")
            if not ending.is_to_repeat:
                return
        round_.heal()

    return strike


def _catalog(round_: Round) -> None:
    """Let the catalog refuse commits, or lose its answers, at random."""
    rnd, catalog = random.Random(round_.number), round_.services.catalog

    def strike() -> tuple[str, int] | None:
        return (rnd.choice(("before", "after")), rnd.choice(_STATUSES)) if rnd.random() < 0.3 else None

    catalog.strikes = strike
    ending = round_.sync()
    catalog.strikes = lambda: None
    round_.problems += [f"a passing fault of the catalog parked a table: {reason}" for reason in ending.of_store]
    if ending.is_to_repeat:
        round_.heal()


def _killed(target: str) -> Callable[[Round], None]:
    def strike(round_: Round) -> None:
        for _ in range(2):
            process = round_.start()
            time.sleep(round_.rnd.uniform(0.3, 3.0))
            pids = [process.pid] if target == "command" else processes.descendants(process.pid)
            for pid in pids:
                processes.kill(pid)
            round_.ended(process)
        round_.heal()

    return strike


def _stopped(round_: Round) -> None:
    """Stop the command beyond its lease, let another take over, and wake the first one."""
    process = round_.start()
    time.sleep(round_.rnd.uniform(0.3, 3.0))
    pids = processes.stop(process.pid, round_.folder / "home" / "ledger.db")
    time.sleep(LEASE_SECONDS + 1)
    round_.heal()
    for pid in pids:
        processes.kill(pid, signal.SIGCONT)
    round_.ended(process)


def _second_host(round_: Round) -> None:
    """Let another host with a ledger of its own work on the same lake at the same time."""
    first, second = round_.start(), round_.start("other")
    for process in (first, second):
        round_.ended(process)
    round_.heal(round_.rnd.choice(("home", "other")))


def _lost_ledger(round_: Round) -> None:
    round_.heal()
    if round_.rnd.random() < 0.7:
        (round_.folder / "home" / "ledger.db").unlink(missing_ok=True)


def _broker(round_: Round) -> None:
    """Freeze the broker while a batch is planned or read."""
    process = round_.start()
    time.sleep(round_.rnd.uniform(0.2, 2.0))
    round_.services.broker.pause()
    try:
        time.sleep(round_.rnd.uniform(1.0, 6.0))
    finally:
        round_.services.broker.resume()
    round_.ended(process)
    round_.heal()


def _postgres(round_: Round) -> None:
    process = round_.start()
    time.sleep(round_.rnd.uniform(0.3, 2.5))
    round_.services.postgres.restart()
    round_.ended(process)
    round_.heal()


def _disk_full(round_: Round) -> None:
    with _small_disk(Path(round_.target.root), kilobytes=round_.rnd.choice((64, 200, 500))):
        round_.problems += [f"a full disk parked a table: {reason}" for reason in round_.sync().of_store]
    round_.heal()


@contextmanager
def _small_disk(root: Path, kilobytes: int) -> Iterator[None]:
    """Leave so many free kilobytes on the lake's file system, a tmpfs of its own."""
    root.mkdir(exist_ok=True)
    if not root.is_mount():
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(root)], check=True)
    free = shutil.disk_usage(root).free
    filler = root / ".filler"
    try:
        with filler.open("wb") as file:
            file.write(b"\0" * max(0, free - (kilobytes << 10)))
        yield
    finally:
        filler.unlink(missing_ok=True)


def _lost_file(round_: Round) -> None:
    """Take a data file of one table away for one batch: that table is parked, the others go on."""
    files = [file for file in Path(round_.target.root).glob("[!_]*/*/**/*") if file.suffix in (".parquet", ".bin")]
    if not files:
        round_.heal()
        return
    file = round_.rnd.choice(sorted(files))
    aside = round_.folder / "aside"
    shutil.move(file, aside)
    round_.sync()
    shutil.move(aside, file)
    round_.heal()


KINDS: dict[str, Callable[[Round], None]] = {
    **{fault: _store(fault) for fault in FAULTS},
    "command killed": _killed("command"),
    "engine killed": _killed("engine"),
    "stopped beyond lease": _stopped,
    "second host": _second_host,
    "lost ledger": _lost_ledger,
    "broker": _broker,
    "catalog": _catalog,
    "postgres": _postgres,
    "disk full": _disk_full,
    "lost file": _lost_file,
}
