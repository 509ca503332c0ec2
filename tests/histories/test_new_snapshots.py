# SPDX-License-Identifier: Apache-2.0
"""A new full snapshot says which rows there are: what other modes than a mirror keep of those that it lacks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.documents import Rebuild
from spark_jobs.driver.run_batch import sync
from spark_jobs.sinks.registry import open_sink
from tests.histories.debezium_records import row
from tests.histories.described_tables import described
from tests.histories.log import Log
from tests.histories.moded_table import BEGIN, CREATE, at, gone, put, snapshot, statement, synced
from tests.histories.records import Record
from tests.histories.run import inline
from tests.histories.scripted import Script
from tests.sinks.kinds import options_of

NOW = (False, None)
DESCRIBED, FIRST, SECOND = (
    snapshot(50, {2: "b", 4: "d"})[some] for some in (slice(0, -2), slice(-2, -1), slice(-1, None))
)
LATE = row("u", "t", 35, {"id": 1, "v": "x"}, before={"id": 1, "v": "a"}, key=("id",), time=35, partition=1)
AFTER = [gone(60, 4, "d"), put(70, 1, "n")]
LATE_DDL = statement("ALTER TABLE shop.t MODIFY v varchar(20) NOT NULL", 33)
BATCHES: dict[str, list[list[Record]]] = {
    "rows before their snapshot's DDL": [[*BEGIN, LATE], [*FIRST], [*DESCRIBED, *SECOND, *AFTER]],
    "a part of the rows behind what follows them": [[*BEGIN, LATE], [*DESCRIBED, *FIRST, *AFTER], [*SECOND]],
    "all rows behind what follows them": [[*BEGIN, LATE], [*DESCRIBED, *AFTER], [*FIRST, *SECOND]],
    "a change from before it": [[*BEGIN], [*DESCRIBED, *FIRST, *SECOND, *AFTER], [LATE]],
    "a change from before it, between its rows": [[*BEGIN], [*DESCRIBED, *FIRST], [LATE, *SECOND, *AFTER]],
    "a barrier from before it": [[*BEGIN, LATE], [*DESCRIBED, *FIRST, *SECOND, *AFTER], [LATE_DDL]],
}
EXPECTED: dict[str, set[tuple[Any, ...]]] = {
    "soft_delete": {(1, "n", *NOW), (2, "b", *NOW), (4, "d", True, at(60))},
    "append": {
        (1, "a", "insert", at(20)),
        (2, "b", "insert", at(30)),
        (1, "x", "update", at(35)),
        (None, None, "snapshot_begin", at(50)),
        (2, "b", "snapshot", at(50)),
        (4, "d", "snapshot", at(50)),
        (4, "d", "delete", at(60)),
        (1, "n", "insert", at(70)),
    },
    "history": {
        (1, "a", at(20), at(35), False),
        (1, "x", at(35), at(50), False),
        (2, "b", at(30), None, True),
        (4, "d", at(50), at(60), False),
        (1, "n", at(70), None, True),
    },
}


def rows_of(script: Script) -> list[dict[str, Any]]:
    """Return the rows of the only table, which is as it should be, without columns of positions."""
    (state,) = script.states.values()
    assert state.state == "ok", state.reason
    stored: pa.Table = open_sink(script._job({}), {}).open(f"{script.root}/{state.location}").rows()
    return stored.select([name for name in stored.column_names if "position" not in name]).to_pylist()


def content(script: Script) -> Counter[tuple[Any, ...]]:
    """Return how often each row is there."""
    return Counter(tuple(one.values()) for one in rows_of(script))


@pytest.mark.parametrize("mode", EXPECTED)
@pytest.mark.parametrize("name", BATCHES)
def test_what_a_new_snapshot_lacks_is_gone_however_its_rows_arrive(name: str, mode: str, log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": {"mode": mode}})
    for batch in BATCHES[name]:
        script.send(*batch)
        script.sync()
    assert content(script) == Counter(EXPECTED[mode])


@pytest.mark.parametrize("mode", ["soft_delete", "history"])
def test_rows_of_a_snapshot_that_come_again_change_nothing(mode: str, log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": {"mode": mode}})
    for batch in [[*BEGIN, LATE, *DESCRIBED, *FIRST, *SECOND], [*FIRST, *SECOND, *AFTER], [*SECOND]]:
        script.send(*batch)
        script.sync()
    assert content(script) == Counter(EXPECTED[mode])


@pytest.mark.parametrize("mode", EXPECTED)
def test_it_is_so_in_tables_of_iceberg(mode: str, log: Log, tmp_path: Path) -> None:
    options = options_of("iceberg", tmp_path)
    script = Script(log, tmp_path, sink_type="iceberg", sink_options=options, tables={"shop.t": {"mode": mode}})
    for batch in BATCHES["a part of the rows behind what follows them"]:
        script.send(*batch)
        script.sync()
    assert content(script) == Counter(EXPECTED[mode])


@pytest.mark.parametrize("mode", EXPECTED)
def test_a_table_that_is_made_again_has_what_snapshots_lacked(mode: str, log: Log, lake: Path, tmp_path: Path) -> None:
    script = Script(log, lake, tables={"shop.t": {"mode": mode}})
    for batch in BATCHES["a part of the rows behind what follows them"]:
        script.send(*batch)
        script.sync()
    order = Rebuild(["shop.t"], compared=True)
    job = replace(script._job(script.ends), order=order, scratch=str(tmp_path / "scratch"))
    (line,) = sync(job, {}, inline, lambda text: None).tables
    assert line.contradictions == {}
    script.sync(rebuild=Rebuild(["shop.t"]))
    assert content(script) == Counter(EXPECTED[mode])


WIDER = {"id": "int", "v": "varchar", "n": "int"}
SEVERAL: dict[str, set[tuple[Any, ...]]] = {
    "soft_delete": {(1, "a", None, True, at(50)), (2, "b", 7, True, at(60)), (4, "d", 8, *NOW)},
    "history": {
        (1, "a", None, at(20), at(50), False),
        (2, "b", None, at(30), at(50), False),
        (2, "b", 7, at(50), at(60), False),
        (4, "d", 7, at(50), at(55), False),
        (4, "d", 8, at(55), None, True),
    },
}


@pytest.mark.parametrize("cut", [3, 8, 10])
@pytest.mark.parametrize("mode", SEVERAL)
def test_snapshots_may_follow_each_other_and_have_more_columns(mode: str, cut: int, log: Log, lake: Path) -> None:
    update = row("u", "t", 55, {"id": 4, "v": "d", "n": 8}, key=("id",), time=55)
    records = [*BEGIN, *snapshot(50, {2: "b", 4: "d"}, WIDER, n=7), update, *snapshot(60, {4: "d"}, WIDER, n=8)]
    assert content(synced(log, lake, records, cut, {"mode": mode})) == Counter(SEVERAL[mode])


def test_a_snapshot_that_began_again_at_its_position_counts_once_in_a_feed(log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": {"mode": "append"}})
    script.send(statement(CREATE, 10), put(20, 1, "a"))
    script.sync()
    for minute, rows in enumerate(({1: "a"}, {1: "a", 2: "b"})):
        for record in snapshot(50, rows):
            script.send(replace(record, time=60_000 * (minute + 1)))
        script.sync()
    ops = sorted(one["_cdc_op"] for one in rows_of(script))
    assert ops == ["insert", "snapshot", "snapshot", "snapshot_begin"]


@pytest.mark.parametrize("mode", EXPECTED)
def test_a_table_whose_rows_became_unknown_begins_with_the_snapshot(mode: str, log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": {"mode": mode}})
    script.send(*BEGIN, statement("ALTER TABLE shop.t DROP PARTITION p0", 40))
    script.sync()
    script.send(*snapshot(50, {2: "b"}))
    script.sync()
    (only,) = rows_of(script)
    assert (only["id"], only["v"]) == (2, "b")


def test_a_log_without_ddl_has_new_snapshots_too(log: Log, lake: Path) -> None:
    script = Script(log, lake, schema_topic=None, tables={"shop.n": {"mode": "append"}})
    for pos, numbers in ((100, (1, 2)), (200, (2, 5))):
        script.send(*(described(pos, number, pos // 100) for number in numbers))
        script.sync()
    ops = sorted((one["_cdc_op"], one["id"]) for one in rows_of(script) if one["id"] is not None)
    assert ops == [("snapshot", 1), ("snapshot", 2), ("snapshot", 2), ("snapshot", 5)]
    assert sum(one["_cdc_op"] == "snapshot_begin" for one in rows_of(script)) == 1
