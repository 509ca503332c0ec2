"""A sample of the histories with their tasks run by Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.java import JavaNotFound, find_java
from spark_jobs.errors import carried, raised
from tests.histories.cases import case_of, check
from tests.histories.generate import THEMES
from tests.histories.log import Log, save, with_log

pytestmark = pytest.mark.spark

COUNT = 50
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A bare context, as the product starts it."""
    try:
        home = find_java().home
    except JavaNotFound as reason:
        pytest.skip(f"no Java for Spark: {reason}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(home))
        patch.setenv("PYTHONPATH", str(ROOT))
        from pyspark import SparkConf, SparkContext

        conf = SparkConf().setMaster("local[2]").setAppName("histories").set("spark.ui.enabled", "false")
        context = SparkContext.getOrCreate(conf)
        context.setLogLevel("ERROR")
        yield context
        context.stop()


@pytest.mark.parametrize("theme", THEMES)
def test_every_table_equals_the_model(theme: str, spark: Any, log: Log, lake: Path, tmp_path: Path) -> None:
    written = tmp_path / "log"

    def run(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        if not items:
            return []
        task = partial(with_log, str(written), carried(function))
        answers = spark.parallelize(list(items), len(items)).map(task).collect()
        return [raised(answer) for answer in answers]

    for seed in range(COUNT // len(THEMES)):
        case = case_of(theme, 1_000_000 + seed)
        case = replace(case, batches=min(case.batches, 2))  # a batch costs Spark more than its rows
        failure = check(case, log, lake, run, lambda partitions: save(partitions, written))
        if failure is not None:
            pytest.fail(f"{theme} {case.seed}, made smaller:\n{failure}", pytrace=False)
