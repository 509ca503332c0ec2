# SPDX-License-Identifier: Apache-2.0
"""A table goes on from its content although maintenance removed the files of the version that the ledger knows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument, Maintenance
from airflow_provider_cdc.core.timeline.asked_changes import Answer
from spark_jobs.driver.maintenance import maintain
from spark_jobs.sinks.delta.sink import open_sink
from spark_jobs.tasks.maintain_table import maintain_table
from tests.histories.debezium_records import ddl, row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.run import inline
from tests.histories.scripted import Script

COLUMNS = {"id": "int", "v": "int"}
KEY = ("id",)


@pytest.mark.parametrize("name", ["t", "u"])
def test_a_table_is_written_again_from_the_files_that_maintenance_made(name: str, log: Log, lake: Path) -> None:
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY)}), row("c", "t", 110, {"id": 1, "v": 1}, key=KEY))
    script.sync()
    script.send(row("c", "t", 120, {"id": 2, "v": 2}, key=KEY))
    script.sync()
    (state,) = script.states.values()
    report = maintain_table(open_sink({}), state, Maintenance(1 << 20, keep_hours=0), str(lake), script.name)
    assert (report.error, report.compacted, report.vacuumed) == (None, 2, 2)
    if name != "t":
        script.send(ddl(f"RENAME TABLE t TO {name}", 200, table=name))
    script.send(ddl(f"ALTER TABLE {name} ADD COLUMN w INT NOT NULL DEFAULT 7", 210, table=name))
    script.send(row("c", name, 220, {"id": 3, "v": 3, "w": 3}, key=KEY))
    script.sync()
    assert script.rows("shop", name) == Counter({(1, 1, 7): 1, (2, 2, 7): 1, (3, 3, 3): 1})


@pytest.mark.parametrize("leaves", [False, True], ids=["another table has its name", "that one has left, too"])
def test_what_a_waiting_table_left_to_another_one_is_there_when_it_goes_on(leaves: bool, log: Log, lake: Path) -> None:
    script = Script(log, lake, policy={"on_drop_table": "ask"})
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY), "u": (COLUMNS, KEY)}))
    script.send(row("c", "t", 110, {"id": 1, "v": 1}, key=KEY), row("c", "u", 120, {"id": 5, "v": 5}, key=KEY))
    script.sync()
    script.send(ddl("RENAME TABLE t TO old, u TO t", 200, table="t"), ddl("DROP TABLE old", 210, table="old"))
    script.sync()
    assert script.states_of("shop", "old") == ["parked"]
    assert script.rows("shop", "t") == Counter({(5, 5): 1})
    if leaves:
        script.send(ddl("RENAME TABLE t TO s", 220, table="s"))
        script.sync()
    tables, states = TableRules.from_document({}), list(script.states.values())
    job = JobDocument(
        "scripted", 3, "2026-01-02T00:00:00+00:00", str(lake), "debezium-json", {}, "src", {}, [],
        RunPolicy(), tables, script.seqs, [], states,
    )  # fmt: skip
    reports = maintain(job, Maintenance(1 << 20, keep_hours=0), {}, inline).maintained
    assert [report.error for report in reports if report.error] == []
    script.decide("old", Answer.DENY)
    assert script.rows("shop", "old") == Counter({(1, 1): 1})
    assert script.rows("shop", "s" if leaves else "t") == Counter({(5, 5): 1})
