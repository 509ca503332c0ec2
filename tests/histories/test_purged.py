# SPDX-License-Identifier: Apache-2.0
"""A table that is purged has no value any more but those of its newest version, and goes on as if nothing was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.lake.roots import located
from spark_jobs.driver.maintenance import maintain
from spark_jobs.sinks.iceberg.table import IcebergTable
from spark_jobs.sinks.registry import open_sink
from tests.histories.debezium_records import ddl, row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.run import inline
from tests.histories.scripted import Script
from tests.sinks.kinds import options_of, type_of

CREATE = "CREATE TABLE shop.t (id int NOT NULL, name varchar(60), n int, PRIMARY KEY (id))"
SECRET = "Secretly-Named"
MASKED = {"shop.t": {"columns": {"mask": {"name": "redact"}}}}


def put(pos: int, op: str = "c", before: dict[str, Any] | None = None, **image: Any) -> Record:
    return row(op, "t", pos, image, before=before, key=("id",), time=pos)


def statement(text: str, pos: int) -> Record:
    return ddl(text, pos, time=pos)


@pytest.fixture(params=["delta", "delta merge-on-read", "iceberg", "iceberg copy-on-write"])
def script(request: pytest.FixtureRequest, log: Log, lake: Path) -> Script:
    kind = str(request.param)
    options = options_of(kind, lake / "tables")
    (lake / "tables").mkdir(parents=True)
    made = Script(log, lake / "tables", sink_type=type_of(kind), sink_options=options, lake_root=str(lake / "log"))
    made.send(statement(CREATE, 4), *(put(20 + i, id=i, name=f"{SECRET}-{i}", n=i) for i in range(5)))
    made.sync()
    made.send(put(31, "u", {"id": 1, "name": f"{SECRET}-1", "n": 1}, id=1, name=f"{SECRET}-x", n=1))
    made.sync()
    return made


def purged(script: Script, table: str = "shop.t") -> TableMaintenance:
    job = replace(script._job(script.ends), schema_changes=[])
    (report,) = maintain(job, Maintenance(1 << 20, 0, purge=table), {}, inline).maintained
    return report


def with_secret(script: Script) -> list[str]:
    files = [path for path in script.root.rglob("*") if path.is_file()]
    assert files
    return [str(path.relative_to(script.root)) for path in files if SECRET.encode() in path.read_bytes()]


def rows(script: Script) -> list[dict[str, Any]]:
    stored = open_sink(script._job({}), {}).open(located(str(script.root), script.states[_id(script)].location))
    content: list[dict[str, Any]] = stored.rows().sort_by("id").to_pylist()
    return content


def _id(script: Script) -> str:
    (state,) = script.states.values()
    assert state.state == "ok", state.reason
    return state.table_id


def test_no_file_has_a_value_that_a_rule_masks_since(script: Script) -> None:
    script.tables, script.policy = MASKED, {"on_rule_change": "apply"}
    script.sync()
    assert {one["name"] for one in rows(script)} == {"***"}
    assert with_secret(script)
    report = purged(script)
    assert (report.error, report.vacuumed > 0) == (None, True)
    assert with_secret(script) == []
    assert purged(script).error is None
    assert {one["name"] for one in rows(script)} == {"***"}
    script.send(put(41, id=7, name=f"{SECRET}-7", n=7))
    script.sync()
    assert [one["id"] for one in rows(script)] == [0, 1, 2, 3, 4, 7]
    assert with_secret(script) == []


def test_no_file_has_a_row_that_was_deleted(script: Script) -> None:
    script.send(row("d", "t", 41, None, before={"id": 2, "name": f"{SECRET}-2", "n": 2}, key=("id",), time=41))
    for i, name in ((0, "-0"), (1, "-x"), (3, "-3"), (4, "-4")):
        script.send(put(50 + i, "u", {"id": i, "name": SECRET + name, "n": i}, id=i, name="new", n=i))
    script.sync()
    assert [(one["id"], one["name"]) for one in rows(script)] == [(i, "new") for i in (0, 1, 3, 4)]
    assert purged(script).error is None
    assert with_secret(script) == []
    assert [(one["id"], one["name"]) for one in rows(script)] == [(i, "new") for i in (0, 1, 3, 4)]


def test_a_late_schema_change_is_applied_from_the_change_log(script: Script) -> None:
    assert purged(script).error is None
    before = rows(script)
    script.send(statement("ALTER TABLE shop.t MODIFY n bigint", 30))
    script.send(put(41, id=7, name="z", n=7))
    script.sync()
    assert rows(script) == [*before, {"id": 7, "name": "z", "n": 7}]


def test_a_late_row_is_applied(script: Script) -> None:
    assert purged(script).error is None
    script.send(put(29, "u", {"id": 3, "name": f"{SECRET}-3", "n": 3}, id=3, name="late", n=33))
    script.sync()
    assert rows(script)[3] == {"id": 3, "name": "late", "n": 33}


def test_a_table_is_not_purged_before_its_rules_are_carried_out(script: Script) -> None:
    script.tables = MASKED
    with pytest.raises(DataError, match="rules_pending"):
        purged(script)
    with pytest.raises(DataError, match="no_table"):
        purged(script, "shop.other")


def test_versions_that_others_named_are_reported(script: Script) -> None:
    stored = open_sink(script._job({}), {}).open(located(str(script.root), script.states[_id(script)].location))
    if not isinstance(stored, IcebergTable):
        pytest.skip("Delta names no versions")
    first = stored.table.metadata.snapshots[0]
    stored.table.manage_snapshots().create_tag(first.snapshot_id, "kept").commit()
    error = purged(script).error
    assert error is not None
    assert error["code"] == "maintain.versions_named"
