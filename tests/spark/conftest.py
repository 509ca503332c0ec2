"""One Spark session for all tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def session(spark_jars: list[Path]) -> Iterator[Any]:
    """A session with the locked jars, as ``run.py`` makes it where the job asks for one."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.jars", ",".join(str(jar) for jar in spark_jars))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.pyspark.python", sys.executable)
    )
    running = builder.getOrCreate()
    running.sparkContext.setLogLevel("ERROR")
    yield running
    running.stop()
