# SPDX-License-Identifier: Apache-2.0
"""A batch number of a lake belongs to the ledger that claimed it, for the offsets it was claimed for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import BusyError, SinkError
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.lake import batch_log
from spark_jobs.lake.batch_log import BatchLog
from spark_jobs.lake.layout import batch_document
from spark_jobs.lake.storage import Storage


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    monkeypatch.setattr(batch_log, "ALIVE_SECONDS", 0.05)
    return Storage(str(tmp_path), {})


@pytest.fixture
def log(storage: Storage) -> BatchLog:
    return BatchLog(storage, "shop")


def job(ledger: str, end: int, seq: int = 1) -> JobDocument:
    return JobDocument(
        "shop", seq, "2026-01-01T00:00:00+00:00", "lake", "debezium-json", {}, None, {},
        [OffsetRange("t", 0, 0, end)], RunPolicy(), TableRules.from_document({}), [], [], [], ledger=ledger,
    )  # fmt: skip


def test_a_number_that_another_ledger_claimed_for_other_offsets_is_refused(log: BatchLog) -> None:
    log.claim(job("mine", 10))
    log.claim(job("mine", 10))
    with pytest.raises(BusyError) as refused:
        log.claim(job("theirs", 11))
    assert (refused.value.code, refused.value.where["ledger"]) == ("lake.other_range", "mine")


def test_a_number_whose_driver_is_at_work_is_refused_and_taken_over_once_it_is_not(log: BatchLog) -> None:
    log.claim(job("mine", 10))
    with log.alive(job("mine", 10)), pytest.raises(BusyError) as refused:
        log.claim(job("theirs", 10))
    assert (refused.value.code, refused.value.where["ledger"]) == ("lake.busy", "mine")
    log.claim(job("theirs", 10))
    with pytest.raises(BusyError, match="other offsets"):
        log.claim(job("mine", 12))


def test_a_finished_batch_without_a_claim_is_refused_by_a_ledger_that_does_not_know_it(
    log: BatchLog, storage: Storage
) -> None:
    result = {"pipeline": "shop", "seq": 1, "status": "done"}
    storage.write_json(batch_document("shop", 1, "result"), result)
    with pytest.raises(SinkError) as refused:
        log.unknown_to(job("mine", 10, seq=2))
    assert (refused.value.code, refused.value.where["seq"]) == ("lake.unknown_batch", 1)
    assert log.unknown_to(replace(job("mine", 10, seq=2), earlier=[1])) == []
