# SPDX-License-Identifier: Apache-2.0
"""Documents of batches in the lake, as releases before the typed reports wrote them."""

from __future__ import annotations

import json
import pickle
from typing import Any

from airflow_provider_cdc.core.documents import Result, TableState
from airflow_provider_cdc.core.model.status import ApplyStatus, ResultStatus, TableStatus
from spark_jobs.lake.manifest import Manifest, RowGroup, Unreadable, merged
from spark_jobs.lake.stored_result import StoredResult
from tests.unit.spark_jobs.batches import job_of, statement

GROUP: dict[str, Any] = {
    "file": "_cdc/shop/log/00000001/a.parquet",
    "row_group": 0,
    "database": "shop",
    "table": "t",
    "rows": 2,
    "min_position": "a",
    "max_position": "b",
    "max_source_time": None,
}
UNREADABLE: dict[str, Any] = {
    "database": "shop",
    "table": "t",
    "count": 3,
    "topic": "s",
    "partition": 0,
    "offset": 7,
    "error_code": "record.malformed",
    "error": "not JSON",
}
MANIFEST: dict[str, Any] = {
    "seq": 1,
    "groups": [GROUP],
    "changes": {"row": 2, "row.insert": 2, "error": 3},
    "schema_changes": [],
    "errors": [],
    "unreadable": [UNREADABLE],
    "descriptions": [],
    "records": 5,
    "progress": None,
    "clocks": [],
    "ledger": "l",
    "read": {"s/0": [0, 5]},
}
RESULT: dict[str, Any] = {
    "pipeline": "shop",
    "seq": 1,
    "status": "parked",
    "records": 5,
    "changes": {"insert": 2},
    "schema_changes": 0,
    "quarantined": 3,
    "quarantine": [],
    "lossy": {},
    "states": [{"table_id": "t", "database": "shop", "table": "t", "location": "shop/t", "state": "parked"}],
    "new_schema_changes": [],
    "deferred": [],
    "statements": [],
    "tables": [
        {"database": "shop", "table": "t", "status": "parked", "action": "", "upserts": 0, "deletes": 0, "reason": "no",
         "seconds": 0.5}
    ],
    "error": None,
    "seconds": {"land": 0.1, "apply": 0.2},
    "lake_batches": [],
    "version": 1,
    "newest_source_time": 9,
    "max_position": "b",
    "ledger": "l",
    "read": {"s/0": [0, 5]},
}  # fmt: skip


def test_a_manifest_of_an_earlier_release_is_read() -> None:
    manifest = Manifest.from_document(json.loads(json.dumps(MANIFEST)))
    assert (manifest.seq, manifest.records, manifest.changes["error"]) == (1, 5, 3)
    assert manifest.groups == [RowGroup(**GROUP)]
    assert manifest.unreadable == [Unreadable("shop", "t", "s", 0, 7, "record.malformed", "not JSON", 3)]
    assert (manifest.stretches, manifest.statements, manifest.begins, manifest.restated) == ([], [], [], [])


def test_a_manifest_is_the_same_after_its_document() -> None:
    manifest = Manifest.from_document(MANIFEST)
    assert Manifest.from_document(json.loads(json.dumps(manifest.document()))) == manifest


def test_a_result_that_lacks_members_is_read_with_their_defaults() -> None:
    stored = StoredResult.from_document(json.loads(json.dumps(RESULT)))
    assert (stored.newest_source_time, stored.max_position, stored.clocks, stored.source_log) == (9, "b", [], [])
    assert stored.result.status == ResultStatus.PARKED
    assert stored.result.states == [TableState("t", "shop", "t", "shop/t", state=TableStatus.PARKED)]
    assert stored.result.tables[0].status == ApplyStatus.PARKED


def test_a_result_is_the_same_after_its_document() -> None:
    stored = StoredResult(Result("shop", 1, ResultStatus.DONE), 9, "b", [["t", 0, 1, 2]], [])
    assert StoredResult.from_document(json.loads(json.dumps(stored.document()))) == stored


def test_unreadable_records_of_two_tasks_add_up_by_table_and_change_neither_report() -> None:
    first, second = [Unreadable(**UNREADABLE)], [Unreadable(**{**UNREADABLE, "offset": 9})]
    assert merged(first, second) == [Unreadable(**{**UNREADABLE, "count": 6})]
    assert (first[0].count, second[0].count) == (3, 3)


def test_what_a_task_gets_does_not_grow_with_tables_statements_and_batches() -> None:
    states = [TableState(f"t{n}", "shop", f"t{n}", f"shop/t{n}") for n in range(1000)]
    known = [statement(n, f"CREATE TABLE t{n} (id INT PRIMARY KEY)") for n in range(1000)]
    small, large = job_of(seq=3), job_of(seq=900, known=known, states=states)
    assert len(pickle.dumps(large.for_tasks())) < len(pickle.dumps(small.for_tasks())) + 20
    assert len(pickle.dumps(large)) > 100_000
