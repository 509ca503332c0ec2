# SPDX-License-Identifier: Apache-2.0
"""Check what the wheel installs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.architecture.imports import ROOT


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("wheel")
    run = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


def test_one_package_is_installed(names: list[str]) -> None:
    assert {name.partition("/")[0] for name in names} == {
        "airflow_provider_cdc",
        "airflow_provider_cdc-0.1.0.dist-info",
    }


def test_the_spark_side_the_examples_and_the_jar_lock_travel_along(names: list[str]) -> None:
    locks = {f"airflow_provider_cdc/engine/jars/{name}.lock" for name in ("spark-3.5", "spark-4.1", "s3a-4.1")}
    assert locks <= set(names)
    for folder, target in (("spark_jobs", "payload/spark_jobs"), ("example_dags", "example_dags")):
        for file in (ROOT / folder).rglob("*.py"):
            assert f"airflow_provider_cdc/{target}/{file.relative_to(ROOT / folder).as_posix()}" in names


def test_the_page_travels_along(names: list[str]) -> None:
    for file in (ROOT / "airflow_provider_cdc" / "plugins" / "static").iterdir():
        assert f"airflow_provider_cdc/plugins/static/{file.name}" in names


def test_nothing_generated_travels_along(names: list[str]) -> None:
    assert not [Path(name) for name in names if "__pycache__" in name or name.endswith(".pyc")]
