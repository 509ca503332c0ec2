# SPDX-License-Identifier: Apache-2.0
"""Check which engine runs a batch under `policy.engine: auto`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_cdc.batch.engine_choice import INLINE_RECORDS, engine_of
from airflow_provider_cdc.core.config import CdcPipeline, SparkSettings


def pipeline(master: str | None = None, tables: dict[str, Any] | None = None, **policy: Any) -> CdcPipeline:
    spark = {} if master is None else {"spark": {"connection": "cluster"}}
    return CdcPipeline.from_dict(
        {
            "name": "orders",
            "source": {"topics": "orders", "format": "canal-json"},
            "sink": {"root": "/lake"},
            "policy": {"engine": "auto", **policy},
            "tables": tables or {},
            **spark,
        }
    )


def test_small_batches_run_inline_and_large_ones_on_spark() -> None:
    assert engine_of(pipeline(), 0) == "inline"
    assert engine_of(pipeline(), INLINE_RECORDS) == "inline"
    assert engine_of(pipeline(), INLINE_RECORDS + 1) == "spark"


def test_a_batch_that_reads_the_log_of_others_runs_on_spark() -> None:
    assert engine_of(pipeline(), 0, reads_log=True) == "spark"


@pytest.mark.parametrize(
    ("host", "engine"), [("local[4]", "inline"), ("local", "inline"), ("spark://host:7077", "spark"), ("yarn", "spark")]
)
def test_only_a_local_spark_gives_batches_away(host: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", f'{{"conn_type": "spark", "host": "{host}"}}')
    assert engine_of(pipeline(host), 1) == engine


def test_spark_as_reader_or_writer_of_any_table_needs_spark() -> None:
    assert engine_of(pipeline(reader="spark"), 1) == "spark"
    assert engine_of(pipeline(writer="spark"), 1) == "spark"
    assert engine_of(pipeline(tables={"shop.orders": {"writer": "spark"}}), 1) == "spark"
    assert engine_of(pipeline(tables={"shop.orders": {"writer": "task"}}), 1) == "inline"


@pytest.mark.parametrize(("policy", "engine"), [("auto", "databricks"), ("spark", "databricks"), ("inline", "inline")])
def test_a_platform_takes_the_place_of_spark(policy: str, engine: str) -> None:
    away = replace(pipeline(engine=policy), spark=SparkSettings(submit="databricks"))
    assert engine_of(away, 1) == engine


@pytest.mark.parametrize("engine", ["spark", "inline"])
def test_a_stated_engine_is_taken(engine: str) -> None:
    assert engine_of(pipeline(engine=engine), 10 * INLINE_RECORDS, reads_log=True) == engine
