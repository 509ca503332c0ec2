# SPDX-License-Identifier: Apache-2.0
"""The end of a transaction counts its changes: a table that lacks one is parked, and no other one is."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.status import ResultStatus
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.counted_changes import _Comparison
from spark_jobs.driver.topic_tables import TopicTables
from spark_jobs.lake.manifest import Manifest, RowGroup
from spark_jobs.lake.stored_result import StoredResult
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.locations import binlog_position

CREATE = {"app.t": {"create": "CREATE TABLE t (id INT PRIMARY KEY, v INT)"}}
CREATE["app.u"] = {"create": "CREATE TABLE u (id INT PRIMARY KEY, v INT)"}


class Source:
    """Write what the connector would write; each transaction takes 100 bytes of the log."""

    def __init__(self, log: Log, root: Path) -> None:
        self.script = Script(log, root, schema_topic=None, options={"connector": "postgresql"}, tables=CREATE)
        self.committed, self.xid = 1000, 700
        self.keys = 0

    def row(self, table: str = "t", partition: int = 0, value: str | None = None) -> Record:
        """Return a row of the transaction that is open."""
        self.keys += 1
        image = {"id": self.keys, "v": 1}
        source = {"connector": "postgresql", "name": "p", "schema": "app", "table": table, "txId": self.xid}
        source |= {"sequence": json.dumps([str(self.committed), str(self.committed + self.keys)]), "ts_ms": 1}
        message = {"before": None, "after": image, "source": source, "op": "c", "ts_ms": 1}
        key = json.dumps({"id": self.keys}).encode()
        text = value or json.dumps(message, separators=(",", ":"))
        return Record(f"p.app.{table}", partition, 1_700_000_000_000, key, text.encode())

    def end(self, **counts: int) -> Record:
        """Return the end of the transaction that is open, and begin the next one."""
        number, self.xid, self.committed = self.xid, self.xid + 1, self.committed + 100
        listed = [{"data_collection": f"app.{name}", "event_count": count} for name, count in counts.items()]
        end = {"status": "END", "id": f"{number}:{self.committed}", "ts_ms": 1}
        end |= {"event_count": sum(counts.values()), "data_collections": listed}
        return Record("p.transaction", 0, 1_700_000_000_000, None, json.dumps(end).encode())

    def parked(self) -> set[str]:
        """Return the tables that are parked for their counts; no other one is parked."""
        states = [state for state in self.script.states.values() if state.state != "ok"]
        assert all("apply.changes_missing" in str(state.reason) for state in states)
        return {state.table for state in states}


@pytest.fixture
def source(log: Log, tmp_path: Path) -> Source:
    """Return a source whose tables have a row each, and two ends of which the first rows may lie before the log."""
    source = Source(log, tmp_path)
    source.script.send(source.row(), source.row("u"), source.end(t=1, u=1), source.row(), source.end(t=1))
    source.script.sync()
    assert source.parked() == set()
    return source


@pytest.mark.parametrize("together", [True, False])
def test_a_change_that_did_not_come_parks_its_table_as_soon_as_one_behind_it_is_read(
    together: bool, source: Source
) -> None:
    script = source.script
    script.send(source.row("u"), source.end(t=1, u=1))
    if not together:
        script.sync()
        assert source.parked() == set()  # it may be on its way
    script.send(source.row(), source.row("u"), source.end(t=1, u=1))
    script.sync()
    assert source.parked() == {"t"}


def test_what_comes_in_a_later_batch_than_its_end_is_there(source: Source) -> None:
    script = source.script
    late = source.row()
    script.send(source.row("u"), source.end(t=1, u=1))
    script.sync()
    script.send(late, source.row(), source.end(t=1))
    script.sync()
    assert source.parked() == set()


def test_what_came_in_an_earlier_batch_than_its_end_is_there(source: Source) -> None:
    script = source.script
    script.send(source.row(), source.row("u"))
    script.sync()
    script.send(source.end(t=1, u=1), source.row(), source.row("u"), source.end(t=1, u=1))
    script.sync()
    assert source.parked() == set()


def test_each_partition_of_the_table_has_to_be_read_behind_it(source: Source) -> None:
    script = source.script
    script.send(source.row(partition=1), source.end(t=1))
    script.sync()
    script.send(source.end(t=1), source.row(), source.end(t=1))
    script.sync()
    assert source.parked() == set()
    script.send(source.row(partition=1), source.end(t=1))
    script.sync()
    assert source.parked() == {"t"}


def test_what_is_sent_again_is_there(source: Source) -> None:
    script = source.script
    row, end, behind = source.row(), source.end(t=1), source.row()
    script.send(row, end, behind)
    script.sync()
    script.send(row, end, behind, source.end(t=1), source.row(), source.end(t=1))
    script.sync()
    assert source.parked() == set()


def test_a_record_that_cannot_be_read_explains_what_is_not_there(source: Source) -> None:
    script = source.script
    script.policy = {"quarantine_limit": 1}
    script.send(source.row(value='{"op":"c","source":{"schema":"app","table":"t"},"after":7}'), source.end(t=1))
    script.send(source.row(), source.end(t=1))
    script.sync()
    script.send(source.row(), source.end(t=1))
    script.sync()
    assert source.parked() == set()


def test_tables_that_the_pipeline_does_not_read_are_not_counted(source: Source) -> None:
    script = source.script
    script.send(source.row(), source.end(t=1, elsewhere=3), source.row(), source.end(t=1))
    script.sync()
    assert source.parked() == set()


def test_rows_that_maintenance_has_folded_are_not_missed() -> None:
    folded = Manifest([RowGroup("rows.parquet", 0, "app", "t", 5, "", "", None)], seq=3)

    def unread(groups: object, columns: object) -> pa.Table:
        raise AssertionError("they cannot be read any more")

    mark = binlog_position(1500, 1500)
    stored = StoredResult(Result("p", 3, ResultStatus.DONE), max_position=mark)
    history = History([3], lambda seq: folded, lambda seq: stored, unread)
    names = TopicTables({"p.app.t/0": [["app", "t"]]}, open_format("debezium-json"), None)
    landed = Manifest(commits=[("701", 1200, {"app.t": 1})])
    compared = _Comparison(history, landed, {"p.app.t/0": mark}, {"p.app.t": {"0": 9}}, names)
    assert compared.of_new_ones([1000, 1100]) == ([], [1100, 1200])
