# SPDX-License-Identifier: Apache-2.0
"""Start a Spark session on this machine that knows Delta tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
}


def delta_session(name: str, jars: Iterable[Path], settings: Mapping[str, str]) -> Any:
    """Return a session on two cores."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName(name).config("spark.jars", ",".join(map(str, jars)))
    for key, value in {**_DELTA, **settings}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
