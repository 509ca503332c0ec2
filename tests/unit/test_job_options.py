# SPDX-License-Identifier: Apache-2.0
"""Check what a batch's job document says of the format, nothing that only its machine can read, and of Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.batch.job import JobMaker
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.ledger import SYNC, Ledger
from tests.cross_format.avro_schema import OPTIONS


def test_the_text_of_a_schema_file_travels_in_the_job_document(tmp_path: Path) -> None:
    file = tmp_path / "record.avsc"
    file.write_text(OPTIONS["schema"], encoding="utf-8")
    stated = {name: text for name, text in OPTIONS.items() if name != "schema"}
    pipeline = CdcPipeline.from_dict(
        {
            "name": "orders",
            "source": {"topics": "drs", "format": "drs-avro", "options": {**stated, "schema_file": str(file)}},
            "sink": {"root": str(tmp_path / "lake")},
            "policy": {"engine": "inline"},
        }
    )
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    with ledger.lease(pipeline.name, "test") as lease:
        batch = ledger.plan(lease, {"drs": {0: 0}}, {"drs": {0: 5}}, None, SYNC)
        job, _ = JobMaker(pipeline, ledger, batch, {}, {}).make()
    assert job.format_options == OPTIONS
    assert job.document()["format_options"]["schema"] == OPTIONS["schema"]


def test_the_rules_of_target_travel_in_the_job_document(tmp_path: Path) -> None:
    rules = [{"from": r"(?P<db>[^.]+)\..*", "to": "raw_{db|lower}.{table}"}]
    document = job_of(str(tmp_path), target=rules).document()
    assert document["target"] == rules
    assert [rule.document() for rule in JobDocument.from_document(document).target] == rules


_PLANNED = """
import sys
from tests.unit.test_job_options import job_of
print(*job_of(sys.argv[1]).chunks, "pyarrow" in sys.modules, "pandas" in sys.modules, sep=";")
"""


def job_of(folder: str, **keys: Any) -> JobDocument:
    """Return the job of a batch of more records than one task reads."""
    pipeline = CdcPipeline.from_dict(
        {
            "name": "orders",
            "source": {"topics": "t", "format": "debezium-json"},
            "sink": {"root": f"{folder}/lake"},
            "policy": {"engine": "inline", "chunk_records": 100},
            **keys,
        }
    )
    ledger = Ledger(f"sqlite:///{folder}/ledger.db")
    with ledger.lease(pipeline.name, "test") as lease:
        batch = ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 250}}, None, SYNC)
        return JobMaker(pipeline, ledger, batch, {}, {}).make()[0]


def test_a_job_is_made_without_arrow_and_states_whole_ranges(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PLANNED, str(tmp_path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert output.strip().split(";") == [str(OffsetRange("t", 0, 0, 250)), "False", "False"]


@pytest.mark.parametrize(
    ("policy", "rule", "may_write", "expected"),
    [
        ({}, {}, False, False),
        ({}, {}, True, True),
        ({"engine": "inline"}, {}, True, False),
        ({"writer": "task"}, {}, True, False),
        ({}, {"writer": "task"}, True, False),
        ({"writer": "task"}, {"writer": "auto"}, True, True),
        ({"writer": "spark"}, {}, False, True),
    ],
)
def test_spark_starts_with_its_writer_where_a_merge_may_be_large_enough(
    policy: dict[str, Any], rule: dict[str, Any], may_write: bool, expected: bool, tmp_path: Path
) -> None:
    job = job_of_table(tmp_path, may_write, policy=policy, tables={"shop.t": rule})
    assert (job.session, job.spark_reaches_sink) == (expected, True)


def test_a_kind_that_takes_no_session_gets_none(tmp_path: Path) -> None:
    sink = {"type": "iceberg", "warehouse": str(tmp_path)}
    assert not job_of_table(tmp_path, False, policy={"writer": "spark"}, sink=sink).session


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({}, False),
        ({"spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.1.0"}, False),
        ({"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.4.2"}, True),
        ({"spark.jars": "lib/delta.jar,lib/hadoop-aws-3.4.2.jar"}, True),
        ({"spark.hadoop.fs.s3a.endpoint": "http://store:9000"}, True),
    ],
)
def test_of_s3_spark_has_to_be_taught_before_it_is_chosen(conf: dict[str, str], expected: bool, tmp_path: Path) -> None:
    job = job_of_table(tmp_path, True, sink={"root": "s3://lake/shop"}, spark={"conf": conf})
    assert (job.session, job.spark_reaches_sink) == (expected, expected)


def job_of_table(folder: Path, may_write: bool, **sections: dict[str, Any]) -> JobDocument:
    """Return the job of a pipeline with one table.

    :param may_write: whether a merge into it may be large enough for Spark.
    """
    source = {"topics": "shop", "format": "debezium-json"}
    sink = {"root": str(folder / "lake")}
    pipeline = CdcPipeline.from_dict({"name": "orders", "source": source, "sink": sink, **sections})
    state = TableState("t", "shop", "t", "shop/t", spark_may_write=may_write)
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
    with ledger.lease(pipeline.name, "test") as lease:
        batch = ledger.plan(lease, {"shop": {0: 0}}, {"shop": {0: 50_000_000}}, None, SYNC)
        job, _ = JobMaker(pipeline, ledger, batch, {}, {"t": state}).make()
    return job
