# SPDX-License-Identifier: Apache-2.0
"""All tables of a batch in one commit of a REST catalog: a reader sees them at one position, or none of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.errors import SinkError, UnavailableError
from spark_jobs.sinks.iceberg.sink import IcebergSink, open_sink
from tests.histories.debezium_records import row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.scripted import Script
from tests.services.rest_catalog import LosingProxy, shared_catalog
from tests.sinks.kinds import options_of

COLUMNS, KEY = {"id": "int", "v": "varchar"}, ("id",)
TABLES = ("a", "b", "c")


@pytest.fixture
def proxy() -> Iterator[LosingProxy]:
    proxy = LosingProxy(shared_catalog())
    yield proxy
    proxy.stop()


@pytest.fixture
def script(log: Log, tmp_path: Path, proxy: LosingProxy) -> Script:
    """Return a pipeline of three tables, each with one row."""
    options = {**options_of("iceberg rest", tmp_path), "iceberg.uri": proxy.uri, "commit": "batch"}
    script = Script(log, tmp_path, sink_type="iceberg", sink_options=options)
    script.send(*snapshot_ddl(100, {table: (COLUMNS, KEY) for table in TABLES}))
    script.send(*(change("c", table, 110 + number, "1") for number, table in enumerate(TABLES)))
    return script


def change(op: str, table: str, pos: int, value: str) -> Any:
    image = {"id": 1, "v": value}
    return row(op, table, pos, image, key=KEY)


def stored(script: Script) -> dict[str, list[str]]:
    sink: IcebergSink = open_sink(script.sink_options or {})
    opened = {table: sink.open(f"{script.root}/shop/{table}") for table in TABLES}
    rows = {table: one.rows() if one.exists else pa.table({"v": []}) for table, one in opened.items()}
    return {table: content.column("v").to_pylist() for table, content in rows.items()}


def commits(script: Script) -> list[int]:
    sink = open_sink(script.sink_options or {})
    return [len(sink.open(f"{script.root}/shop/{table}").table.snapshots()) for table in TABLES]


def test_all_tables_are_committed_at_once(script: Script) -> None:
    result = script.sync()
    assert (result.status, result.together) == ("done", True)
    assert stored(script) == {"a": ["1"], "b": ["1"], "c": ["1"]}
    script.send(*(change("u", table, 210 + number, "2") for number, table in enumerate(TABLES[:2])))
    assert script.sync().together
    assert stored(script) == {"a": ["2"], "b": ["2"], "c": ["1"]}
    assert commits(script) == [2, 2, 1]
    assert [state.version for state in script.states.values() if state.table in TABLES] == [2, 2, 1]


@pytest.mark.parametrize("status", [409, 500, 503])
def test_where_the_catalog_fails_no_table_has_the_batch_and_the_next_run_makes_it(
    status: int, script: Script, proxy: LosingProxy
) -> None:
    script.sync()
    script.send(*(change("u", table, 210 + number, "2") for number, table in enumerate(TABLES)))
    proxy.lose("before", status)
    with pytest.raises(UnavailableError):
        script.sync()
    assert stored(script) == {"a": ["1"], "b": ["1"], "c": ["1"]}
    assert script.sync().together
    assert stored(script) == {"a": ["2"], "b": ["2"], "c": ["2"]}
    assert commits(script) == [2, 2, 2]


@pytest.mark.parametrize("status", [409, 500, 504])
def test_where_the_answer_is_lost_the_batch_counts(status: int, script: Script, proxy: LosingProxy) -> None:
    script.sync()
    script.send(*(change("u", table, 210 + number, "2") for number, table in enumerate(TABLES)))
    proxy.lose("after", status)
    assert script.sync().status == "done"
    assert stored(script) == {"a": ["2"], "b": ["2"], "c": ["2"]}
    assert commits(script) == [2, 2, 2]


def test_one_table_that_somebody_changed_meanwhile_keeps_all_back_until_it_is_looked_at(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.sync()
    script.send(*(change("u", table, 210 + number, "2") for number, table in enumerate(TABLES)))
    from spark_jobs.sinks.iceberg import batch_commit

    settled = batch_commit.BatchCommit._settled

    def meet(self: Any, commits: Any) -> Any:
        other = open_sink(script.sink_options or {}).open(f"{script.root}/shop/b").table
        other.append(pa.table({"id": pa.array([9], pa.int32()), "v": ["foreign"]}))
        return settled(self, commits)

    with monkeypatch.context() as patch:
        patch.setattr(batch_commit.BatchCommit, "_settled", meet)
        with pytest.raises(UnavailableError):
            script.sync()
    assert (stored(script)["a"], stored(script)["c"]) == (["1"], ["1"])
    result = script.sync()
    assert {(state.table, state.code) for state in result.states if state.state == "parked"} == {
        ("b", "sink.changed_by_other")
    }
    assert (stored(script)["a"], stored(script)["c"]) == (["2"], ["2"])


def test_a_catalog_that_cannot_is_named(script: Script, proxy: LosingProxy) -> None:
    script.sync()
    script.send(change("u", "a", 210, "2"))
    proxy.lose("before", 404)
    with pytest.raises(SinkError, match=r"sink\.cannot"):
        script.sync()
