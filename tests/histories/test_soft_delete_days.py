# SPDX-License-Identifier: Apache-2.0
"""``soft_delete_days``: maintenance removes rows that were flagged long ago, and batches go on as if nothing was."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import Maintenance, Rebuild, TableMaintenance
from spark_jobs.driver.maintenance import maintain
from spark_jobs.driver.run_batch import sync
from spark_jobs.sinks.registry import open_sink
from tests.histories.log import Log
from tests.histories.moded_table import BEGIN, at, gone, put, statement
from tests.histories.run import inline
from tests.histories.scripted import Script
from tests.sinks.kinds import options_of, type_of

DAY = 86_400_000  # milliseconds: the time of records is their position
RULE: dict[str, Any] = {"mode": "soft_delete", "soft_delete_days": 2}


@pytest.fixture(params=["delta", "delta merge-on-read", "iceberg"])
def script(request: pytest.FixtureRequest, log: Log, lake: Path) -> Script:
    """Return a pipeline of a table with a row that is there, one deleted on the first day, one on the third."""
    kind = str(request.param)
    script = Script(log, lake, sink_type=type_of(kind), sink_options=options_of(kind, lake), tables={"shop.t": RULE})
    script.send(*BEGIN, put(40, 3, "c"), gone(50, 1, "a"), gone(2 * DAY, 2, "b"))
    script.sync()
    return script


def maintained(script: Script, days: float, keep_hours: int = 24) -> TableMaintenance:
    """Return what maintenance did so many days after the begin."""
    moment = at(0)
    assert moment is not None
    order = Maintenance(1 << 20, keep_hours, at=(moment + timedelta(days=days)).isoformat())
    (report,) = maintain(replace(script._job(script.ends), schema_changes=[]), order, {}, inline).maintained
    assert report.error is None
    return report


def keys(script: Script) -> dict[int, bool]:
    (state,) = script.states.values()
    assert state.state == "ok", state.reason
    rows = open_sink(script._job({}), {}).open(f"{script.root}/{state.location}").rows().to_pylist()
    return {row["id"]: row["_cdc_deleted"] for row in rows}


def test_maintenance_removes_what_was_flagged_before_so_many_days(script: Script) -> None:
    assert maintained(script, 1.9).expired == 0
    assert maintained(script, 3).expired == 1
    assert keys(script) == {2: True, 3: False}
    assert maintained(script, 3).expired == 0
    assert maintained(script, 5).expired == 1
    assert keys(script) == {3: False}


def test_batches_go_on_from_the_rows_that_are_left(script: Script) -> None:
    maintained(script, 3, keep_hours=0)  # files of the version that the batch left are gone
    script.send(put(3 * DAY, 1, "new"), statement("ALTER TABLE shop.t MODIFY v varchar(30) NOT NULL", 3 * DAY + 1))
    script.send(gone(3 * DAY + 2, 3, "c"))
    script.sync()
    assert keys(script) == {1: False, 2: True, 3: True}


def test_a_delete_that_comes_again_flags_a_row_that_goes_again(script: Script) -> None:
    maintained(script, 3)
    script.send(gone(50, 1, "a"))
    script.sync()
    maintained(script, 3)
    assert keys(script) == {2: True, 3: False}


def test_what_is_gone_does_not_contradict_the_change_log(script: Script, tmp_path: Path) -> None:
    maintained(script, 3)
    job = replace(script._job(script.ends), order=Rebuild(["shop.t"], compared=True), scratch=str(tmp_path / "scratch"))
    (line,) = sync(job, {}, inline, lambda text: None).tables
    assert line.contradictions == {}


def test_rows_stay_while_another_rule_waits_to_be_carried_out(script: Script) -> None:
    script.tables = {"shop.t": {**RULE, "filter": "id > 1"}}
    assert maintained(script, 9).expired == 0
