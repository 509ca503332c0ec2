# SPDX-License-Identifier: Apache-2.0
"""Workers of Spark read the segments of a Canal source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc import RunPolicy
from airflow_provider_cdc.batch.runner import run_batch
from tests.canal.recorded_session import pipeline
from tests.canal.server import Canal
from tests.sample import ALL

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.spark,
    # Spark's provider leaves the output of spark-submit to be closed when its hook is collected
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
]


@pytest.mark.skipif(not ALL, reason="CDC_SEEDS=2 runs it; tests/canal/test_tables.py reads segments as a worker does")
def test_workers_of_spark_read_segments(canal: Canal, port: int, tmp_path: Path) -> None:
    shop = replace(pipeline(tmp_path), policy=RunPolicy(engine="spark"))
    result = run_batch(shop, say=lambda line: None)
    assert (result.status, result.records, result.error) == ("done", 3, None)
    tables = {name: DeltaTable(str(tmp_path / "lake" / "shop" / name)).to_pyarrow_table() for name in "ab"}
    assert {name: table.num_rows for name, table in tables.items()} == {"a": 1, "b": 1}
