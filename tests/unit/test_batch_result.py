# SPDX-License-Identifier: Apache-2.0
"""Results of batches as the ledger, XCom and people get them: one document, also where an earlier version wrote it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from airflow_provider_cdc.batch.result import (
    BatchResult,
    TableResult,
    UnsettledTable,
    from_ledger,
    joined,
    published,
    quarantine_line,
)
from airflow_provider_cdc.commands.output import AGAIN, CONFIGURATION, DATA, exit_code
from airflow_provider_cdc.core.documents import Proof, Result, TableLine, TableState
from airflow_provider_cdc.core.errors import DataError, UnavailableError
from airflow_provider_cdc.core.model.status import ApplyStatus, BatchStatus, ResultStatus, TableStatus
from airflow_provider_cdc.ledger import SYNC, Batch

# what version 0.1 of October 2026 stored with a committed batch
STORED: dict[str, Any] = {
    "pipeline": "shop",
    "seq": 3,
    "status": "parked",
    "records": 12,
    "changes": {"insert": 9},
    "schema_changes": 1,
    "quarantined": 0,
    "tables": [
        {"database": "shop", "table": "a", "action": "append", "upserts": 9, "deletes": 0, "state": "ok", "version": 4},
        {"database": "shop", "table": "b", "action": "", "upserts": 0, "deletes": 0},
    ],
    "seconds": 2.5,
    "phases": {"land": 1.0, "apply": 1.0},
    "cut": {
        "consistent": False,
        "position": "p",
        "source_time": "1970-01-01T00:00:00.000007+00:00",
        "atomic": False,
    },
    "statements": ["ALTER TABLE b ADD c INT"],
    "parked": [{"database": "shop", "table": "b", "reason": "needs rebuild"}],
    "waiting": [],
}


def state(table: str, status: TableStatus = TableStatus.OK, **more: Any) -> TableState:
    return TableState(table, "shop", table, f"shop/{table}", state=status, **more)


def batch(result: dict[str, Any] | None) -> Batch:
    return Batch("shop", 3, SYNC, BatchStatus.COMMITTED, {}, {}, None, datetime.now(UTC), result=result)


def test_a_stored_result_is_read_and_written_as_it_was() -> None:
    assert json.loads(json.dumps(BatchResult.from_document(STORED).document())) == STORED


def test_a_repeated_request_gets_the_stored_result_with_the_tables_of_now() -> None:
    answer = from_ledger(batch(STORED), [state("a"), state("b")], 0.1)
    expected = {**STORED, "status": "done", "parked": [], "waiting": [], "repeated": True, "seconds": 0.1}
    assert json.loads(json.dumps(answer.document())) == expected


def test_a_batch_without_records_is_nothing_to_do_unless_a_table_waits() -> None:
    empty = batch({"pipeline": "shop", "seq": 3, "status": "empty", "records": 0})
    answer = from_ledger(empty, [state("a")], 0.1)
    assert (answer.status, "parked" in answer.document()) == (ResultStatus.NOTHING_TO_DO, False)
    answer = from_ledger(empty, [state("a", TableStatus.WAITING, reason="no CREATE TABLE")], 0.1)
    assert answer.status == ResultStatus.WAITING
    assert answer.waiting == [UnsettledTable("shop", "a", "no CREATE TABLE")]


def test_a_waiting_table_makes_a_done_batch_waiting_and_its_cut_inconsistent() -> None:
    waits = state("b", TableStatus.WAITING, reason="no column c")
    result = Result("shop", 3, ResultStatus.DONE, states=[waits], tables=[TableLine("shop", "b", ApplyStatus.WAITING)])
    report = published("shop", result, {"a": state("a", applied_position="p", source_time=7)}, 1.0)
    assert report.status == ResultStatus.WAITING
    assert report.cut == {
        "consistent": False,
        "position": "p",
        "source_time": "1970-01-01T00:00:00.000007+00:00",
        "atomic": False,
    }
    assert report.tables == [TableResult("shop", "b", state=TableStatus.WAITING, reason="no column c")]


def test_a_failed_batch_keeps_its_error_across_the_process_border() -> None:
    for error, transient in (
        (UnavailableError("sink.unavailable", "no"), True),
        (DataError("land.memory", "no"), False),
    ):
        result = Result("shop", 3, ResultStatus.FAILED, error=error)
        again = Result.from_document(json.loads(json.dumps(result.document())))
        document = published("shop", again, {}, 1.0).document()
        assert (document["error"], document["transient"]) == (error.document(), transient)


def test_a_result_says_what_the_batch_cost_as_far_as_that_is_known() -> None:
    lines = [TableLine("shop", name, ApplyStatus.COMMITTED, added_bytes=count) for name, count in (("a", 30), ("b", 4))]
    result = Result("shop", 3, ResultStatus.DONE, tables=lines, cpu_seconds=1.5)
    document = published("shop", Result.from_document(result.document()), {}, 1.0).document()
    assert (document["cpu_seconds"], document["added_bytes"]) == (1.5, 34)
    assert [table["added_bytes"] for table in document["tables"]] == [30, 4]
    assert BatchResult.from_document(document).document() == document


def test_the_exit_code_is_the_same_for_an_error_and_for_its_document() -> None:
    for code, expected in (("configuration", CONFIGURATION), ("format.unknown", CONFIGURATION), ("land.memory", DATA)):
        assert exit_code(DataError.from_document({"code": code, "message": "no"})) == expected
    assert exit_code(UnavailableError("kafka.topic_unknown", "no")) == AGAIN


def test_a_table_says_who_wrote_it_and_why() -> None:
    written = TableLine("shop", "a", ApplyStatus.COMMITTED, "merge", writer="spark", writer_reason="it is large")
    result = Result("shop", 3, ResultStatus.DONE, tables=[written, TableLine("shop", "b", ApplyStatus.UNCHANGED)])
    result = Result.from_document(json.loads(json.dumps(result.document())))
    first, second = published("shop", result, {}, 0.1).document()["tables"]
    assert (first["writer"], first["writer_reason"]) == ("spark", "it is large")
    assert not {"writer", "writer_reason"} & set(second)
    assert TableResult.from_document(first).writer == "spark"


def test_of_several_batches_a_table_names_its_newest_writer() -> None:
    def part(writer: str) -> BatchResult:
        line = TableResult("shop", "a", writer=writer, writer_reason=f"{writer}, why" if writer else "")
        return BatchResult("shop", 1, ResultStatus.DONE, tables=[line])

    for writers, expected in ((("task", "spark", ""), "spark"), (("spark", "task"), "task")):
        (line,) = joined([part(writer) for writer in writers]).tables
        assert (line.writer, line.writer_reason) == (expected, f"{expected}, why")


def test_a_table_has_the_proof_of_its_state_and_none_where_nothing_was_compared() -> None:
    proof = Proof("20", agreed_rows=3, contradictions={"key_there": 1}, contradicted=True)
    result = Result("shop", 1, ResultStatus.DONE, states=[state("a", proof=proof), state("b")])
    result.tables = [TableLine("shop", name, ApplyStatus.COMMITTED, "merge") for name in "ab"]
    document = json.loads(json.dumps(published("shop", result, {}, 0.1).document()))
    assert [line.get("proof") for line in document["tables"]] == [proof.document(), None]
    assert BatchResult.from_document(document).tables[0].proof == proof


def test_what_is_in_quarantine_names_its_table_where_it_is_known() -> None:
    first = {"topic": "t", "partition": 0, "offset": 4}
    row = {**first, "database": "shop", "table": "a", "column": "price", "reason": "number_invalid"}
    record = {**first, "database": "shop", "table": "a", "error_code": "record.json_invalid", "error": "a value"}
    unknown = {**first, "database": None, "table": None, "error_code": "record.json_invalid", "error": "a value"}
    assert [quarantine_line(entry) for entry in (row, record, unknown)] == [
        "t/0:4 of shop.a, column price: number_invalid",
        "t/0:4 of shop.a: record.json_invalid",
        "t/0:4, whose table is not known: record.json_invalid",
    ]
