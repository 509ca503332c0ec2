# SPDX-License-Identifier: Apache-2.0
"""Documents of table states and errors: rebuilt as they were, also where an earlier version wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import (
    Decision,
    DecisionAction,
    JobDocument,
    StagedJob,
    StagedPlace,
    TableState,
)
from airflow_provider_cdc.core.errors import CASCADED_ABOVE, CdcError, ConfigurationError, Transient, UnavailableError
from airflow_provider_cdc.core.model.status import TableStatus
from spark_jobs.driver.parent_tables import rows_changed, waits_above

# as version 0.1 before 2026-11 wrote it: no code, and fewer members
OLD: dict[str, Any] = {"table_id": "t", "database": "shop", "table": "t", "location": "shop/t", "state": "parked"}


def through_json(state: TableState) -> TableState:
    return TableState.from_document(json.loads(json.dumps(state.document())))


def test_a_table_state_is_the_same_after_its_document() -> None:
    state = TableState("t", "shop", "t", "shop/t", 4, state=TableStatus.WAITING, reason="no column b")
    assert through_json(state) == state


def test_the_status_of_a_document_is_its_plain_value() -> None:
    state = TableState("t", "shop", "t", "shop/t", state=TableStatus.DROPPED)
    assert '"state": "dropped"' in json.dumps(state.document())


def test_what_a_table_is_parked_for_is_decided_by_its_code_not_by_its_words() -> None:
    state = TableState("t", "shop", "t", "", state=TableStatus.PARKED, reason="in other words", code=CASCADED_ABOVE)
    assert waits_above(state) and rows_changed(state)
    state = TableState("t", "shop", "t", "", state=TableStatus.PARKED, reason="see [apply.cascaded_above]", code="x")
    assert not waits_above(state) and not rows_changed(state)


def test_an_error_rebuilt_from_its_document_says_and_is_the_same() -> None:
    error = UnavailableError("sink.unavailable", "the store failed", where={"table": "shop.t"}, hint="run again")
    again = UnavailableError.from_document(json.loads(json.dumps(error.document())))
    assert isinstance(again, Transient)
    assert (str(again), again.document()) == (str(error), error.document())
    assert str(again) == "[sink.unavailable] the store failed (table=shop.t) -> run again"


def test_an_error_without_place_and_hint_says_code_and_message_only() -> None:
    assert str(CdcError.from_document({"code": "a.b", "message": "no"})) == "[a.b] no"


def test_a_job_with_values_that_stay_out_of_the_lake_is_not_staged_there(tmp_path: Path) -> None:
    rules = TableRules.from_document({"shop.t": {"columns": {"unlogged": "phone"}}})
    job = JobDocument(
        "shop", 1, "2026-01-01T00:00:00+00:00", str(tmp_path), "debezium-json", {}, None, {}, [], RunPolicy(), rules,
        [], [], [],
    )  # fmt: skip
    there = StagedPlace(str(tmp_path / "job"), {})
    job.order = Decision(DecisionAction.REPLAY, [["t", 0, 1]], [{"value": "c2VjcmV0"}])
    with pytest.raises(ConfigurationError, match="repaired records would be in the lake"):
        there.stage(StagedJob("0", [], job))
    assert list(tmp_path.iterdir()) == []
    job.order = Decision(DecisionAction.DISCARD, [["t", 0, 1]])
    there.stage(StagedJob("0", [], job))
