# SPDX-License-Identifier: Apache-2.0
"""Land records that a format ignores: they are counted, and nothing of them is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.formats.connect.envelope import NO_VALUE
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.tasks.land import chunks_of
from tests.unit.spark_jobs.debezium_batches import carry_out, change

TOMBSTONE = NO_VALUE


def test_tombstones_are_counted_and_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"id": 1, "n": 1}
    deleted = [change(1, row), change(2, {"id": 2, "n": 2}), change(3, None, row), TOMBSTONE]
    results = carry_out(
        tmp_path, [{"t": deleted, "schema": []}, {"t": [TOMBSTONE] * 2, "schema": []}], RunPolicy(), monkeypatch
    )
    assert [result.records for result in results] == [4, 2]
    assert [result.changes for result in results] == [{"delete": 1, "insert": 2}, {}]
    manifests = [json.loads((tmp_path / "_cdc/p/log" / f"{seq:08d}" / "manifest.json").read_text()) for seq in (1, 2)]
    assert [manifest["changes"].get("ignored") for manifest in manifests] == [1, 2]
    assert [sum(group["rows"] for group in manifest["groups"]) for manifest in manifests] == [3, 0]
    assert DeltaLocation(f"{tmp_path}/shop/t", {}).rows().to_pylist() == [{"id": 2, "n": 2}]


def reading(wire: str, options: dict[str, str], ranges: list[OffsetRange]) -> JobDocument:
    """Return a job whose tasks read 100 records each."""
    policy, time = RunPolicy(chunk_records=100), "2026-01-01T00:00:00+00:00"
    return JobDocument("p", 1, time, "/lake", wire, options, None, {}, ranges, policy, TableRules(), [], [], [])


@pytest.mark.parametrize(
    ("wire", "options", "chunks"),
    [
        ("debezium-json", {}, [(0, 83), (83, 166), (166, 250)]),
        ("canal-json", {}, [(0, 250)]),  # without positions: the order of its records counts
        ("oms-shareplex", {}, [(0, 83), (83, 166), (166, 250)]),
        ("oms-shareplex", {"sequenceEnabled": "false"}, [(0, 250)]),
    ],
)
def test_large_ranges_are_cut_where_the_format_can_be_read_apart(
    wire: str, options: dict[str, str], chunks: list[tuple[int, int]]
) -> None:
    small = OffsetRange("t", 1, 5, 100)
    job = reading(wire, options, [OffsetRange("t", 0, 0, 250), small])
    assert chunks_of(job) == [*(OffsetRange("t", 0, *span) for span in chunks), small]


def test_ranges_that_one_task_reads_need_no_format() -> None:
    job = reading("unknown", {}, [OffsetRange("t", 0, 0, 100)])
    assert chunks_of(job) == job.chunks
