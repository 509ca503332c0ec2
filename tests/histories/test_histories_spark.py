# SPDX-License-Identifier: Apache-2.0
"""A sample of the histories with their tasks run by Spark, and one whose merges are Spark's too.

``CDC_CLUSTER=1`` runs such histories, in turn of each format, on a standalone cluster of two workers with speculative
execution; run this file alone then. ``CDC_HISTORIES`` is the number of histories, 5 without it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.documents import JobDocument, Result
from spark_jobs.driver.run_batch import sync
from spark_jobs.driver.task_runner import Runner
from spark_jobs.sinks.delta.spark_writer import SparkWriter
from spark_jobs.workers.task_transport import carried, raised, sent
from tests.histories.cases import case_of, judge
from tests.histories.generate import THEMES
from tests.histories.log import Log, save, with_log
from tests.histories.tools import TOOLS
from tests.sample import amount
from tests.services.spark_cluster import SparkCluster

pytestmark = pytest.mark.spark

COUNT = int(os.environ.get("CDC_HISTORIES", amount(5, 10)))
_MERGED = 4  # histories
_LEAST = amount(1, 2)  # more where those show nothing of what is asked for
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def spark(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Return the bare context, as the product uses it."""
    if "CDC_CLUSTER" not in os.environ:
        yield request.getfixturevalue("session").sparkContext
        return
    from pyspark import SparkConf, SparkContext

    request.getfixturevalue("java")
    with SparkCluster() as cluster:
        conf = SparkConf().setMaster(cluster.master).setAppName("histories")
        conf.set("spark.executor.memory", "512m").set("spark.ui.enabled", "false")
        conf.set("spark.executorEnv.PYTHONPATH", str(ROOT))  # workers run the tests' own functions too
        # Spark starts slow tasks a second time while the first attempt runs
        conf.set("spark.speculation", "true").set("spark.speculation.interval", "5ms")
        conf.set("spark.speculation.quantile", "0.01").set("spark.speculation.multiplier", "1.01")
        conf.set("spark.speculation.minTaskRuntime", "5ms")
        with SparkContext(conf=conf) as context:
            yield context
            assert len(list(cluster.folder.glob("worker-*/app-*"))) == 2, "executors of both workers"


def runner(spark: Any, written: Path) -> Runner:
    """Return what hands out tasks to Spark.

    :param written: where the log is saved.
    """

    def run(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        if not items:
            return []
        counts = spark.accumulator(0), spark.accumulator(0)
        task = partial(with_log, str(written), carried(function, counts))
        answers = spark.parallelize([sent(item) for item in items], len(items)).map(task).collect()
        return [raised(answer) for answer in answers]

    return run


@pytest.mark.every(3)
@pytest.mark.parametrize("theme", THEMES)
def test_every_table_equals_the_model(
    theme: str, spark: Any, log: Log, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "log"
    monkeypatch.setattr("tests.histories.run.RunPolicy", partial(RunPolicy, bucket_rows=20))  # some are split by key
    run = runner(spark, written)
    names = list(TOOLS) if "CDC_CLUSTER" in os.environ else ["debezium-json"]
    for seed in range(COUNT // len(THEMES)):
        case = case_of(names[(seed + len(theme)) % len(names)], 1_000_000 + seed, theme)
        # a batch costs Spark more than its rows; the workers read the log that was saved before the first batch
        case = replace(case, batches=min(case.batches, 2), recreated=0.0)
        # a folder of its own: an attempt that Spark gives up may go on for a moment, and write to the lake before
        verdict = judge(case, log, lake / str(seed), run, lambda partitions: save(partitions, written))
        if verdict.failure:
            pytest.fail(f"{theme} {case.seed}, made smaller:\n{verdict.failure}", pytrace=False)


def test_every_table_equals_the_model_where_tasks_of_spark_share_merges(
    spark: Any, log: Log, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, reasons = tmp_path / "log", Counter[str]()

    def counted(job: JobDocument, *arguments: Any) -> Result:
        result = sync(job, *arguments)
        reasons.update(f"{line.action} {line.writer}" for line in result.tables if line.status == "committed")
        return result

    monkeypatch.setattr("tests.histories.run.sync", counted)
    monkeypatch.setattr("tests.histories.run.RunPolicy", partial(RunPolicy, spark_writer_bytes=1))
    case = replace(case_of("debezium-json", 1_200_004, sizes=(8, 12)), sink="iceberg", batches=3, recreated=0.0)
    verdict = judge(case, log, lake, runner(spark, written), lambda partitions: save(partitions, written))
    assert not verdict.failure, f"made smaller:\n{verdict.failure}"
    assert reasons["merge spark"], reasons


def test_every_table_equals_the_model_where_merges_are_sparks(
    session: Any, log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = Counter[str]()

    def with_session(job: JobDocument, *arguments: Any) -> Result:
        result = sync(replace(job, session=True, spark_reaches_sink=True), *arguments, session)
        reasons.update(f"{line.action} {line.writer}" for line in result.tables if line.status == "committed")
        return result

    commit = SparkWriter.commit_staged
    monkeypatch.setattr(
        SparkWriter, "commit_staged", lambda writer, folder: log.reached("commit", lambda: commit(writer, folder))
    )
    monkeypatch.setattr("tests.histories.run.sync", with_session)
    monkeypatch.setattr("tests.histories.run.RunPolicy", partial(RunPolicy, bucket_rows=20, spark_writer_bytes=1))
    for seed in range(_MERGED):
        if seed >= _LEAST and reasons["merge spark"] and reasons["create task"]:
            break
        case = replace(case_of("debezium-json", 1_100_000 + seed, sizes=(5, 8)), batches=3)
        verdict = judge(case, log, lake)
        if verdict.failure:
            pytest.fail(f"{seed}, made smaller:\n{verdict.failure}", pytrace=False)
    assert reasons["merge spark"] and reasons["create task"], reasons
    assert not {name for name in reasons if name.endswith("spark")} - {"merge spark"}
