# SPDX-License-Identifier: Apache-2.0
"""Run a pipeline over many small tables, one of which is sick."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from tests.airflow.shop import rows
from tests.captures.replaying import Lake
from tests.cross_format.debezium_json_writer import Writer
from tests.cross_format.events import Ddl, Event, Image, Row
from tests.services.broker import Broker
from tests.services.capture import Record, replay

INT = ColumnType("int")
NARROW = TableSchema((Column(1, "id", INT, False), Column(2, "v", ColumnType("varchar", 20))), (1,))
TABLES = ("sick", "t0", "t1")


class Course:
    """Feeds events batch by batch; each has a place in the source's log, whenever it arrives."""

    def __init__(self, broker: Broker, topic: str, folder: Path, partitions: int = 1) -> None:
        self._partitions = partitions  # of the rows' topic
        self._broker, self._topic, self.folder = broker, topic, folder
        # events come at places of the log that are older than those before, so what a row was before is not known here
        self.lake = Lake(folder, broker.bootstrap, f"{topic}.schema", quarantine_limit=0, verify="off")
        self._sent: dict[tuple[str, int], int] = {}
        self._records: list[Record] = []

    def at(self, pos: int, what: Row | Ddl, partition: int = 0) -> None:
        """Write one event that stands at a place of the log."""
        time = 1_767_225_600_000 + pos
        for message in Writer().write(Event(pos, 1, pos, time, time, pos, what), 1):
            where = (f"{self._topic}.{message.topic}", partition)
            offset = self._sent[where] = self._sent.get(where, -1) + 1
            self._records.append(Record(*where, offset, time, message.key, message.value, message.headers))

    def create(self, pos: int, *tables: str) -> None:
        for number, table in enumerate(tables):
            text = f"CREATE TABLE {table} (id INT NOT NULL, v VARCHAR(20), PRIMARY KEY (id))"
            self.at(pos + number, Ddl(text, "shop", table, NARROW))

    def insert(self, pos: int, key: int, *tables: str) -> None:
        for number, table in enumerate(tables):
            self.at(pos + number, Row("insert", "shop", table, NARROW, None, {"id": key, "v": f"{pos}"}))

    def update(self, pos: int, key: int, *tables: str) -> None:
        for number, table in enumerate(tables):
            before: Image = {"id": key, "v": "?"}
            self.at(pos + number, Row("update", "shop", table, NARROW, before, {"id": key, "v": f"{pos}"}))

    def sync(self) -> dict[str, tuple[str, str]]:
        """Carry out a batch with all that was written; return state and reason of each table."""
        if self._records:
            replay(self._broker, self._records, {f"{self._topic}.rows": self._partitions, f"{self._topic}.schema": 1})
            self._records = []
        self.lake.sync_to({partition: offset + 1 for partition, offset in self._sent.items()})
        return {state.table: (state.state, state.reason) for state in self.lake.states.values()}

    def values(self, table: str) -> dict[int, str]:
        return {row["id"]: row["v"] for row in rows(self.folder, "shop", table)}

    def log(self, seq: int) -> Path:
        return self.folder / "_cdc" / "capture" / "log" / f"{seq:08d}"
