# SPDX-License-Identifier: Apache-2.0
"""End the task of a sync as parked and waiting tables ask for, and log what is in quarantine."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException

from airflow_provider_cdc.batch.result import BatchResult, UnsettledTable
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.operators.sync_result import log_result, problem_of

LOG = logging.getLogger("sync")
PARKED, WAITING = [UnsettledTable("shop", "a", "no key")], [UnsettledTable("shop", "b", "no CREATE TABLE")]
FAIL, SKIP = AirflowFailException, AirflowSkipException


def result(status: ResultStatus, parked: bool, waiting: bool, **more: Any) -> BatchResult:
    return BatchResult("shop", 4, status, parked=PARKED if parked else [], waiting=WAITING if waiting else [], **more)


@pytest.mark.parametrize(
    ("parked", "waiting", "on_parked", "on_waiting", "kind", "names"),
    [
        (False, False, "fail", "fail", None, ""),
        (True, False, "fail", "warn", FAIL, "shop.a"),
        (True, False, "skip", "fail", SKIP, "shop.a"),
        (True, False, "warn", "fail", None, ""),
        (False, True, "warn", "fail", FAIL, "shop.b"),
        (False, True, "fail", "skip", SKIP, "shop.b"),
        (False, True, "fail", "warn", None, ""),
        # a table that waits counts also where another one is parked
        (True, True, "warn", "fail", FAIL, "shop.b"),
        (True, True, "skip", "fail", FAIL, "shop.b"),
        (True, True, "fail", "fail", FAIL, "shop.a: no key; tables wait: shop.b"),
        (True, True, "warn", "warn", None, ""),
    ],
)
def test_the_worst_that_is_asked_for_ends_the_task(
    parked: bool, waiting: bool, on_parked: str, on_waiting: str, kind: type[Exception] | None, names: str
) -> None:
    status = ResultStatus.PARKED if parked else ResultStatus.WAITING if waiting else ResultStatus.DONE
    problem = problem_of(result(status, parked, waiting), on_parked, on_waiting, LOG, "shop.yaml")
    assert problem is None if kind is None else type(problem) is kind
    assert names in str(problem or "")


def test_commands_in_reasons_can_be_copied(caplog: pytest.LogCaptureFixture) -> None:
    gone = [UnsettledTable("shop", "it's", "gone -> `airflow-cdc rebuild PIPELINE.yaml DATABASE.TABLE`")]
    problem = problem_of(BatchResult("shop", 4, ResultStatus.PARKED, parked=gone), "fail", "fail", LOG, "/p/shop.yaml")
    for text in (str(problem), caplog.text):
        assert """`airflow-cdc rebuild /p/shop.yaml 'shop.it'"'"'s'`""" in text


def test_a_rebuild_that_was_not_done_is_parked_without_a_parked_table() -> None:
    assert isinstance(problem_of(result(ResultStatus.PARKED, False, False), "fail", "warn", LOG, "shop.yaml"), FAIL)


def test_the_log_names_what_is_in_quarantine(caplog: pytest.LogCaptureFixture) -> None:
    row = {"topic": "t", "partition": 0, "offset": 4, "database": "shop", "table": "a", "reason": "number_invalid"}
    with caplog.at_level(logging.INFO):
        log_result(LOG, result(ResultStatus.DONE, False, False, quarantined=1, quarantine=[row]), None)
    assert "quarantined: t/0:4 of shop.a: number_invalid" in caplog.text


def test_statements_are_folded_and_short_and_the_result_stands_below_them(caplog: pytest.LogCaptureFixture) -> None:
    long = f"CREATE TABLE t (\n  {', '.join(f'c{n} INT' for n in range(100))})"
    done = result(ResultStatus.DONE, False, False, schema_changes=2, statements=["DROP TABLE a", long])
    with caplog.at_level(logging.INFO):
        log_result(LOG, done, None)
    first, drop, create, last, summary = (record.getMessage() for record in caplog.records)
    assert (first, drop, last) == ("::group::DDL: 2 statements", "DROP TABLE a", "::endgroup::")
    assert len(create) == 200 and create.startswith("CREATE TABLE t ( c0 INT, c1 INT,") and create.endswith("…")
    assert summary.startswith("batch 4 done: ")
