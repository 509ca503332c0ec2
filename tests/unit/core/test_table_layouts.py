# SPDX-License-Identifier: Apache-2.0
"""Rules for the layout of tables: what each sink can do, and what is refused when the pipeline is made."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import ConfigurationError

SINKS = {"delta": {"root": "/lake"}, "iceberg": {"type": "iceberg", "warehouse": "/lake"}}


def _pipeline(sink: str, rule: dict[str, Any], name: str = "shop.orders") -> CdcPipeline:
    source = {"topics": "t", "format": "debezium-json"}
    return CdcPipeline.from_dict({"name": "p", "source": source, "sink": SINKS[sink], "tables": {name: rule}})


def _problem(sink: str, rule: dict[str, Any]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        _pipeline(sink, rule)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("sink", "name", "value"),
    [
        ("delta", "delta.logRetentionDuration", "interval 60 days"),
        ("delta", "delta.deletedFileRetentionDuration", "Interval 1 week"),
        ("delta", "delta.dataSkippingNumIndexedCols", 5),
        ("delta", "team", "sales"),
        ("iceberg", "write.target-file-size-bytes", 1 << 29),
        ("iceberg", "history.expire.max-snapshot-age-ms", 5),
        ("iceberg", "commit.retry.num-retries", 9),
        ("iceberg", "write.spark.fanout.enabled", True),
        ("iceberg", "comment", "orders"),
    ],
)
def test_properties_that_hold_however_a_table_is_written(sink: str, name: str, value: Any) -> None:
    pipeline = _pipeline(sink, {"properties": {name: value}}, "shop.*")
    stated = {name: str(value).lower() if isinstance(value, bool) else str(value)}
    assert dict(pipeline.tables.layout("shop.orders").properties) == stated
    assert not pipeline.tables.layout("other.orders").properties
    assert CdcPipeline.from_dict(pipeline.to_dict()) == pipeline


@pytest.mark.parametrize(
    ("sink", "name", "value", "problem"),
    [
        *(
            ("delta", name, "true", "is not a property that every writer")
            for name in ("delta.appendOnly", "delta.columnMapping.mode", "delta.enableChangeDataFeed")
        ),
        *(
            ("delta", name, "true", "is not a property that every writer")
            for name in ("delta.enableDeletionVectors", "delta.checkpointPolicy", "delta.minWriterVersion")
        ),
        ("delta", "DELTA.appendOnly", "true", "is not a property that every writer"),
        ("delta", "delta.feature.appendOnly", "supported", "is not a property that every writer"),
        ("delta", "delta.logRetentionDuration", "60 days", "expected an interval"),
        ("delta", "delta.dataSkippingNumIndexedCols", "many", "expected a number"),
        ("delta", "cdc.properties", "{}", "the pipeline's own"),
        ("iceberg", "cdc.applied.x", "1", "is not a property that a pipeline may set"),
        ("iceberg", "format-version", "3", "is not a property that a pipeline may set"),
        ("iceberg", "schema.name-mapping.default", "[]", "is not a property that a pipeline may set"),
        ("iceberg", "gc.enabled", "false", "is not a property that a pipeline may set"),
        ("iceberg", "write.format.default", "orc", "would not be as it says"),
        ("iceberg", "write.object-storage.enabled", "true", "would not be as it says"),
    ],
)
def test_properties_that_would_not_hold_are_refused_by_name(sink: str, name: str, value: str, problem: str) -> None:
    said = _problem(sink, {"properties": {name: value}})
    assert said.startswith(f"tables.shop.orders.properties.{name}: ")
    assert problem in said


def test_properties_are_a_flat_mapping_without_secrets() -> None:
    assert "expected a mapping, got text" in _problem("delta", {"properties": "a=b"})
    assert "expected text, a number or true/false, got a list" in _problem("delta", {"properties": {"a": [1]}})
    assert "looks like a secret" in _problem("delta", {"properties": {"password": "x"}})
    assert "did you mean 'properties'?" in _problem("delta", {"property": {"a": "b"}})
    assert "is empty" in _problem("delta", {"properties": {" ": "b"}})


def test_the_order_of_files_is_that_of_the_key_or_of_columns() -> None:
    for stated in ("key", None):
        assert _pipeline("delta", {"cluster_by": stated}).tables.layout("shop.orders").cluster_by == ()
    pipeline = _pipeline("iceberg", {"cluster_by": ["country", "key"]}, "shop.*")
    assert pipeline.tables.layout("shop.orders").cluster_by == ("country", "key")
    assert pipeline.tables.policy("shop.orders", pipeline.policy) == pipeline.policy


def test_an_order_that_is_none_is_refused() -> None:
    assert _problem("delta", {"cluster_by": "country"}).endswith("expected key or a list of columns, as [country]")
    assert _problem("delta", {"cluster_by": []}).endswith("cluster_by: is empty")
    assert _problem("delta", {"cluster_by": ["a", "a"]}).endswith("cluster_by: named twice: a")
    assert "did you mean 'cluster_by'?" in _problem("delta", {"clusterby": ["a"]})


@pytest.mark.parametrize(
    ("entry", "transform", "column", "name"),
    [
        ("country", "identity", "country", "country"),
        ("identity(a(b))", "identity", "a(b)", "a_b_"),
        ("month(created_at)", "month", "created_at", "created_at_month"),
        (" Day ( x y ) ", "day", "x y", "x_y_day"),
        ("bucket(16, id)", "bucket[16]", "id", "id_bucket_16"),
        ("bucket(2, 1é)", "bucket[2]", "1é", "_1__bucket_2"),
        ("truncate(4,name)", "truncate[4]", "name", "name_trunc_4"),
    ],
)
def test_partitions_are_columns_and_transforms_of_columns(entry: str, transform: str, column: str, name: str) -> None:
    pipeline = _pipeline("iceberg", {"partition_by": [entry]}, "shop.*")
    (rule,) = pipeline.tables.layout("shop.orders").partition_by
    assert (rule.transform, rule.column, rule.name) == (transform, column, name)
    assert CdcPipeline.from_dict(pipeline.to_dict()) == pipeline
    assert pipeline.tables.policy("shop.orders", pipeline.policy) == pipeline.policy


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        (["bucket(id)"], "'bucket(id)' lacks a number from 1, as in bucket(16, id)"),
        (["bucket(0, id)"], "lacks a number from 1"),
        (["truncate(2147483648, id)"], "lacks a number from 1"),
        (["month(4, at)"], "takes no number"),
        (["week(at)"], "names no transform; known: column, year(column)"),
        (["month(at"], "is not understood"),
        (["month()"], "is not understood"),
        (["a", "identity(a)"], "identity of a is there twice"),
        (["year(at)", "month(at)"], "state one time of at, the finest"),
        (["a", "a"], "named twice: a"),
        ("month(at)", "expected a list of texts, got text"),
        ([], "is empty"),
    ],
)
def test_partitions_that_are_none_are_refused(entries: object, problem: str) -> None:
    said = _problem("iceberg", {"partition_by": entries})
    assert said.startswith("tables.shop.orders.partition_by")
    assert problem in said


def test_a_sink_without_partitions_says_so() -> None:
    said = _problem("delta", {"partition_by": ["country"]})
    assert said == "tables.shop.orders.partition_by: a sink of type delta does not partition tables; state cluster_by"
    assert "did you mean 'partition_by'?" in _problem("iceberg", {"partitioned_by": ["country"]})
