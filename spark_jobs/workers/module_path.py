# SPDX-License-Identifier: Apache-2.0
"""Import PySpark from where pip unpacked it: archives that Spark names first cost each start and each task."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder


def prefer_installed() -> None:
    """Take Spark's archives off the module path where what they hold is installed in the folder ``SPARK_HOME``.

    Python would compile the modules of its zips at each start; and a worker, which looks for new modules before each
    task, would read the lists of all their files again, and that of a jar of Spark without any module.
    """
    home = os.environ.get("SPARK_HOME", "")
    if not home:
        return
    homes = home, os.path.realpath(home)  # Java names a jar without links
    archives = tuple(os.path.join(one, *below, "") for one in homes for below in (("python", "lib"), ("jars",)))
    left = [entry for entry in sys.path if not entry.startswith(archives)]
    spark, gateway = (PathFinder.find_spec(name, left) for name in ("pyspark", "py4j"))
    if spark is not None and spark.origin and gateway is not None and _same(os.path.dirname(spark.origin), home):
        sys.path[:] = left
        for entry in [entry for entry in sys.path_importer_cache if entry.startswith(archives)]:
            del sys.path_importer_cache[entry]


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
