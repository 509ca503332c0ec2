# SPDX-License-Identifier: Apache-2.0
"""Import PySpark from where pip unpacked it: from the zip that Spark names first, each start would compile it again."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder


def prefer_installed() -> None:
    """Take the zips of ``SPARK_HOME`` off the module path where what they hold is installed in that very folder."""
    home = os.environ.get("SPARK_HOME", "")
    zips = os.path.join(home, "python", "lib", "")
    left = [entry for entry in sys.path if not (home and entry.startswith(zips))]
    spark, gateway = (PathFinder.find_spec(name, left) for name in ("pyspark", "py4j"))
    if spark is not None and spark.origin and gateway is not None and _same(os.path.dirname(spark.origin), home):
        sys.path[:] = left


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
