# SPDX-License-Identifier: Apache-2.0
"""Sinks and lakes of pipelines as people write them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from airflow_provider_cdc.core.config import CdcPipeline, IcebergSink, Lake
from airflow_provider_cdc.core.errors import ConfigurationError


def of_sink(sink: dict[str, Any], **sections: Any) -> CdcPipeline:
    source = {"topics": "t", "format": "debezium-json"}
    return CdcPipeline.from_dict({"name": "p", "source": source, "sink": sink, **sections})


def test_a_lake_is_with_the_tables_unless_it_is_stated() -> None:
    store = {"storage_connection": "s", "storage_options": {"x": "1"}}
    assert of_sink({"root": "s3a://b//lake/", **store}).lake == Lake("s3://b/lake", "s", {"x": "1"})
    apart = of_sink({"root": "/data"}, lake={"root": "s3://b/log", "storage_connection": "l"})
    assert (apart.lake.root, apart.lake.storage_connection, apart.sink.root) == ("s3://b/log", "l", "/data")
    assert CdcPipeline.from_yaml(apart.to_yaml()) == apart


@pytest.mark.parametrize(
    ("lake", "problem"),
    [
        ({"root": "log"}, "lake.root: 'log' is neither an absolute path"),
        ({"root": "/log", "storage_options": {"AWS_SECRET_ACCESS_KEY": "s3cret"}}, "looks like a secret"),
        ({"storage_connection": "l"}, "lake.root: is empty"),
        ({"rot": "/log"}, "did you mean 'root'"),
    ],
)
def test_a_lake_that_cannot_be_is_refused(lake: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(problem)) as refused:
        of_sink({"root": "/data"}, lake=lake)
    assert "s3cret" not in str(refused.value)


def test_a_catalog_without_a_connection_is_a_file_in_the_warehouse() -> None:
    pipeline = of_sink({"type": "iceberg", "warehouse": "/data/lake/"})
    assert isinstance(pipeline.sink, IcebergSink)
    assert (pipeline.sink.root, pipeline.lake.root) == ("/data/lake", "/data/lake")
    assert pipeline.sink.options() == {
        "iceberg.type": "sql",
        "iceberg.uri": "sqlite:////data/lake/catalog.db",
        "iceberg.warehouse": "file:///data/lake",
        "namespace": "",
        "writes": "merge-on-read",
        "commit": "table",
    }
    assert CdcPipeline.from_yaml(pipeline.to_yaml()) == pipeline


def test_a_catalog_of_ones_own_has_no_place_for_the_change_log() -> None:
    sink = {"type": "iceberg", "connection": "lakehouse", "namespace": "raw"}
    with pytest.raises(ConfigurationError, match=r"lake.root: is missing"):
        of_sink(sink)
    pipeline = of_sink(sink, lake={"root": "s3://b/log"})
    assert (pipeline.sink.root, pipeline.lake.root) == ("iceberg://lakehouse", "s3://b/log")


@pytest.mark.parametrize(
    ("sink", "problem"),
    [
        ({"type": "iceberg", "root": "/data"}, "sink.root: unknown key"),
        ({"type": "iceberg"}, "sink.warehouse: is empty"),
        ({"type": "iceberg", "warehouse": "s3://b/lake"}, "sink.connection: is missing"),
        ({"type": "iceberg", "warehouse": "/d", "writes": "on-read"}, "known: merge-on-read, copy-on-write"),
        ({"type": "icebreg", "root": "/d"}, "sink.type: 'icebreg' is not known; known: delta, iceberg"),
        ({"type": "delta", "warehouse": "/d"}, "sink.warehouse: unknown key"),
    ],
)
def test_a_catalog_that_cannot_be_is_refused(sink: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        of_sink(sink)
