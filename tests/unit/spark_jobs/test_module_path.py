# SPDX-License-Identifier: Apache-2.0
"""Check which PySpark a process of Spark imports, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

SHOW = """
from spark_jobs.workers.module_path import prefer_installed
prefer_installed()
import py4j, pyspark
print(pyspark.__file__, py4j.__file__)
"""


def _imported(home: Path, zips: list[Path]) -> list[str]:
    path = os.pathsep.join(map(str, [*zips, Path(__file__).parents[2]]))
    environment = {**os.environ, "SPARK_HOME": str(home), "PYTHONPATH": path}
    run = subprocess.run([sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True)
    return run.stdout.split()


@pytest.fixture
def home() -> Path:
    return Path(pyspark.__file__).parent


def test_what_pip_unpacked_goes_before_the_zips_of_the_same_spark(home: Path) -> None:
    zips = sorted((home / "python" / "lib").glob("*.zip"))
    assert len(zips) == 2
    assert [".zip" in file for file in _imported(home, zips)] == [False, False]


def test_the_zips_of_another_spark_stay(home: Path, tmp_path: Path) -> None:
    library = tmp_path / "python" / "lib"
    library.mkdir(parents=True)
    for file in (home / "python" / "lib").glob("*.zip"):
        (library / file.name).symlink_to(file)
    assert [".zip" in file for file in _imported(tmp_path, sorted(library.glob("*.zip")))] == [True, True]


def test_a_worker_searches_no_archive_of_spark_before_each_task(home: Path, tmp_path: Path) -> None:
    linked = tmp_path / "spark"
    linked.symlink_to(home)
    (jar,) = home.resolve().glob("jars/spark-core_*.jar")  # Spark's JVM adds it, by its name without links
    zips = sorted((linked / "python" / "lib").glob("*.zip"))
    path = os.pathsep.join(map(str, [jar, *zips, Path(__file__).parents[3]]))
    archives = "(*sys.path, *sys.path_importer_cache) if entry.endswith(('.jar', '.zip')) and 'spark' in entry"
    environment = {**os.environ, "SPARK_HOME": str(linked), "PYTHONPATH": path}
    program = f"import sys\n{SHOW}\nprint([entry for entry in {archives}])"
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
