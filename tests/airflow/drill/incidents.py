# SPDX-License-Identifier: Apache-2.0
"""The incidents: how each is made, and what a person does about it outside of the product."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, update

from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.ledger.records import time_text
from tests.airflow.drill.ground import ROTATED, Ground
from tests.histories.debezium_records import ddl, row
from tests.histories.records import Record
from tests.system import processes

Deed = Callable[[Ground, str], None]

CREATE = "CREATE TABLE things (id int NOT NULL PRIMARY KEY, note int)"
HOLD = """
import os, sys
from airflow_provider_cdc.ledger import Ledger
Ledger(sys.argv[1]).lease(sys.argv[2], "worker on host-7", seconds=100)
os.kill(os.getpid(), 9)
"""


def nothing(ground: Ground, name: str) -> None:
    """Do nothing."""


def runs_well(ground: Ground, name: str) -> None:
    """Bring the first rows into the table."""
    ground.runs(name, "success")


@dataclass(frozen=True)
class Incident:
    """One thing that goes wrong.

    :param make: lets it happen, and returns the log of the run that met it.
    :param before: what was before.
    :param repair: what a person does at the source or a service, as the words say, before the commands.
    :param after: what a person does behind a command, by its number.
    :param stop: ends what goes on next to it.
    :param settings: of its pipeline.
    :param notes: of the rows in the end, by id.
    """

    make: Callable[[Ground, str], str]
    before: Deed = runs_well
    repair: Deed = nothing
    after: Mapping[int, Deed] = field(default_factory=dict)
    stop: Deed = nothing
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[int, int | None] = field(default_factory=lambda: {1: 1, 2: 2, 3: 3})


def now_ms() -> int:
    return int(time.time() * 1000)


def change(number: int, pos: int, op: str = "c", **more: Any) -> Record:
    """Return a change of a row whose note is its id."""
    return row(op, "things", pos, {"id": number, "note": number}, key=("id",), time=now_ms(), **more)


def first_rows(ground: Ground, name: str) -> None:
    """Write the table and two rows into the log."""
    columns = {"id": "int", "note": "int"}
    ground.feed(name, ddl(CREATE, 10, table="things", columns=columns, key=("id",), time=now_ms()))
    ground.feed(name, change(1, 100), change(2, 200))


class Connector:
    """Stands for a connector that writes an update each second."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, ground: Ground, name: str) -> None:
        """Write updates until :meth:`stop`."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._write, args=(ground, name), daemon=True)
        self._thread.start()

    def _write(self, ground: Ground, name: str) -> None:
        while not self._stop.wait(1):
            ground.feed(name, change(2, int(time.time()), "u", before={"id": 2, "note": 2}))

    def stop(self, ground: Ground, name: str) -> None:
        """Fall silent."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def before(self, ground: Ground, name: str) -> None:
        """Write while a run ends well, then fall silent."""
        self.start(ground, name)
        ground.runs(name, "success")
        self.stop(ground, name)


def met_by_run(ground: Ground, name: str) -> str:
    """Let a run fail."""
    return ground.runs(name, "failed")


def paused(ground: Ground, name: str) -> str:
    """Pause a DAG that ran each hour, three hours ago."""
    ground.set_paused(name, False)
    ground.live.wait(lambda: ground.ended(name) >= 2, 600)
    ground.set_paused(name, True)
    ground.feed(name, change(3, 900))
    batches, attempts, progress = schema.batches, schema.attempts, schema.progress
    with ground.ledger._database.writing() as connection:
        for hours, batch in enumerate(reversed(ground.ledger.batches(name)), start=3):
            then = time_text(datetime.now(UTC) - timedelta(hours=hours))
            mine = (batches.c.pipeline == name) & (batches.c.seq == batch.seq)
            connection.execute(update(batches).where(mine).values(planned_at=then, committed_at=then))
        then = time_text(datetime.now(UTC) - timedelta(hours=3))
        connection.execute(update(attempts).where(attempts.c.pipeline == name).values(at=then))
        connection.execute(delete(progress).where(progress.c.pipeline == name))
    return ""


def broker_away(ground: Ground, name: str) -> str:
    """Halt the broker."""
    for pid in ground.broker.pids():
        processes.kill(pid, signal.SIGSTOP)
    return met_by_run(ground, name)


def broker_back(ground: Ground, name: str) -> None:
    """Let the broker go on."""
    for pid in ground.broker.pids():
        processes.kill(pid, signal.SIGCONT)


def parked(ground: Ground, name: str) -> str:
    """Remove a table from the lake."""
    shutil.rmtree(ground.folder / name / "lake" / "shop" / "things")
    ground.feed(name, change(3, 900))
    return met_by_run(ground, name)


def column_dropped(ground: Ground, name: str) -> str:
    """Drop a column whose policy is to ask."""
    ground.feed(name, ddl("ALTER TABLE things DROP COLUMN note", 900, table="things", time=now_ms()))
    ground.feed(name, row("c", "things", 950, {"id": 3}, key=("id",), time=now_ms()))
    return met_by_run(ground, name)


def unfit_row(ground: Ground, name: str) -> str:
    """Write a row with a text where a number belongs."""
    ground.feed(name, row("c", "things", 900, {"id": 3, "note": "three"}, key=("id",), time=now_ms()))
    return met_by_run(ground, name)


def held(ground: Ground, name: str) -> str:
    """Let a process hold the pipeline that dies without giving it back."""
    command = [sys.executable, "-c", HOLD, ground.ledger_url, name]
    subprocess.run(command, env=ground.live.environment)
    return met_by_run(ground, name)


def lease_ends(ground: Ground, name: str) -> None:
    """Wait until the time that the page shows."""
    (need,) = ground.needs(name)
    (until,) = re.findall(r"until (\S+Z)", need["happened"])
    while datetime.now(UTC) <= datetime.fromisoformat(until) + timedelta(seconds=1):
        time.sleep(1)


def disk_full(ground: Ground, name: str) -> str:
    """Fill the disk of the lake."""
    with (ground.folder / name / "lake" / "film").open("wb", buffering=0) as film, suppress(OSError):
        while film.write(b"x" * 4096):
            pass
    ground.feed(name, change(3, 900))
    return met_by_run(ground, name)


def disk_freed(ground: Ground, name: str) -> None:
    """Free the disk."""
    (ground.folder / name / "lake" / "film").unlink()


def password_changed(ground: Ground, name: str) -> str:
    """Leave the password of before in the connection."""
    ground.define(ground.broker.sasl_settings("the old one"))
    ground.feed(name, change(3, 900))
    return met_by_run(ground, name)


def password_corrected(ground: Ground, name: str) -> None:
    """Correct the connection."""
    ground.define(ground.broker.sasl_settings())


def contradicted(ground: Ground, name: str) -> str:
    """Write an update of a row that had other values: the change before it was lost."""
    before, after = {"id": 2, "note": 77}, {"id": 2, "note": 78}
    ground.feed(name, row("u", "things", 900, after, before=before, key=("id",), time=now_ms()))
    return met_by_run(ground, name)


def snapshot(ground: Ground, name: str) -> None:
    """Answer the signal as the connector does."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": ground.broker.bootstrap, "group.id": "connector"})
    consumer.assign([TopicPartition(f"{name}.signals", 0, 0)])
    asked = consumer.poll(30)
    consumer.close()
    assert asked is not None and b"execute-snapshot" in (asked.value() or b"")
    for number, note in ((1, 1), (2, 78)):
        image = {"id": number, "note": note}
        ground.feed(name, row("r", "things", 1000, image, key=("id",), mark="incremental", time=now_ms()))


_connector = Connector()

INCIDENTS: Mapping[str, Incident] = {
    "silent": Incident(
        met_by_run, _connector.before, _connector.start, stop=_connector.stop, notes={1: 1, 2: 2}
    ),
    "paused": Incident(paused, before=nothing),
    "broker": Incident(broker_away, repair=broker_back, notes={1: 1, 2: 2}),
    "parked": Incident(parked),
    "ddl": Incident(
        column_dropped, settings={"policy": {"on_drop_column": "ask"}}, notes={1: None, 2: None, 3: None}
    ),
    "quarantine": Incident(unfit_row, notes={1: 1, 2: 2}),
    "lease": Incident(held, repair=lease_ends, notes={1: 1, 2: 2}),
    "full": Incident(disk_full, repair=disk_freed),
    "password": Incident(password_changed, repair=password_corrected, settings={"source": {"connection": ROTATED}}),
    "contradiction": Incident(contradicted, after={0: snapshot}, notes={1: 1, 2: 78}),
}  # fmt: skip
