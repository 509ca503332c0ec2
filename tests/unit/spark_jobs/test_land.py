# SPDX-License-Identifier: Apache-2.0
"""Land records that a format ignores: they are counted, and nothing of them is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.formats.connect.envelope import NO_VALUE
from spark_jobs.sinks.delta.table import DeltaLocation
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
