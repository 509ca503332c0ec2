# SPDX-License-Identifier: Apache-2.0
"""Forbid what must not be in any file, and check what lock files look like."""

from __future__ import annotations

import importlib.resources
import os
import re
import tomllib
from pathlib import Path

import pytest

from airflow_provider_cdc.engine.jars import lock_of, read_lock
from tests.architecture.distributions import normal
from tests.architecture.imports import ROOT
from tests.architecture.tracked_files import TEXT, tracked

TEXT |= {".yaml", ".yml"}

# Written so that this file does not contain what it looks for.
MACHINE_PATH = re.compile(r"(?<![\w.$}>-])/(?:work|farm|root|home/\w+|Users/\w+)/")
REGISTRY = re.compile(
    r"(?:pypi|pythonhosted|registry\.npmjs|npmjs)\.org|(?:repo1?|central)\.maven\.|maven\.org|deb\.debian\.org"
)


PINS = ["constraints.txt", "tests/services/s3-requirements.txt"]


@pytest.mark.parametrize(
    ("what", "pattern"), [("a path of one machine", MACHINE_PATH), ("a registry's address", REGISTRY)]
)
def test_no_file_names(what: str, pattern: re.Pattern[str]) -> None:
    naming = [
        f"{file.relative_to(ROOT)}:{number} names {what}: {line.strip()[:100]}"
        for file in tracked()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not naming, "\n".join(naming)


def test_the_patterns_find_what_they_are_for() -> None:
    assert MACHINE_PATH.search("cd /" + "work/main")
    assert MACHINE_PATH.search("'/" + "home/ann/lake'")
    assert not MACHINE_PATH.search("spark_jobs/work/x and $HOME/root/x")
    assert REGISTRY.search("https://" + "pypi." + "org/simple")
    assert REGISTRY.search("https://repo1." + "maven." + "org/maven2")


@pytest.mark.parametrize("name", PINS)
def test_python_pins_are_names_and_versions(name: str) -> None:
    lines = (ROOT / name).read_text().splitlines()
    assert len(lines) > 10
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*==[\w.!+]+", line)] == []
    names = [line.partition("==")[0] for line in lines]
    assert sorted(set(names)) == sorted(names)


def test_every_declared_package_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {normal(re.split(r"[\[<>=!~; ]", requirement)[0]) for group in groups for requirement in group}
    pinned = {normal(line.partition("==")[0]) for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert declared - pinned - {"airflow-provider-cdc"} == set()


def test_spark_its_client_and_its_jars_are_of_one_release() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    version = pins["pyspark"]
    assert pins["pyspark-client"] == version
    assert {f"pyspark=={version}", f"pyspark-client=={version}"} <= set(extras["test"])
    bounds = {requirement.partition("<")[2] for requirement in extras["spark"]}
    assert len(bounds) == 1, "the newest releases of both are one"
    line = version.rpartition(".")[0]
    jars = {jar.artifact: jar.version for jar in read_lock(lock_of("spark", line))}
    assert jars["spark-sql-kafka-0-10_2.13"] == version
    assert f"delta-spark_{line}_2.13" in jars
    (hadoop,) = [jar.version for jar in read_lock(lock_of("s3a", line)) if jar.artifact == "hadoop-aws"]
    spark = Path(str(importlib.resources.files("pyspark")))
    assert (spark / "jars" / f"hadoop-client-api-{hadoop}.jar").is_file()


def test_the_ci_command_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


LICENSED = {".proto", ".py", ".pyi"}


def test_source_files_name_their_license() -> None:
    """Demand the identifier in the first two lines; generated files cannot have it."""
    unnamed = [
        str(file.relative_to(ROOT))
        for file in tracked()
        if file.suffix in LICENSED and not file.stem.endswith("_pb2")
        if "SPDX-License-" + "Identifier: Apache-2.0" not in "".join(file.open(encoding="utf-8").readlines()[:2])
    ]
    assert not unnamed, "\n".join(unnamed)
