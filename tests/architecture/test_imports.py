# SPDX-License-Identifier: Apache-2.0
"""Check who may import what: the two sides, the kernel between them, and the libraries each part of it may know."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from tests.architecture.distributions import normal
from tests.architecture.imports import ROOT, Import, imports_below, imports_of, python_files

PACKAGE = "airflow_provider_cdc"
CORE = f"{PACKAGE}/core"
AIRFLOW = ("airflow", "airflow_shared")

# Inside the kernel, the libraries that only some of its folders and modules may know.
CONFINED = {
    "pyarrow": {
        *("formats", "values", "apply", "expressions", "shapes"),
        *("model/position_columns.py", "config/name_patterns.py"),
    },
    "numpy": {"formats", "values", "apply", "expressions", "shapes", "arrays.py"},
    "msgspec": {"formats", "values", "json_documents.py"},
    "google.protobuf": {"formats"},
    "fastavro": {"formats"},
    "sqlglot": {"expressions"},
    "sqlalchemy": set(),
    "alembic": set(),
}


def airflow_side() -> list[Import]:
    """Return imports of everything in the package that is not the kernel, and of the example DAGs."""
    core = ROOT / CORE
    below = imports_below(PACKAGE, "example_dags")
    return [one for one in below if not one.file.is_relative_to(core)]


def _rooms(module: Path) -> set[str]:
    """Return the names by which CONFINED may list a module of the kernel: its folder, or itself."""
    return {module.parts[0], module.as_posix()}


def none_of(imports: Iterable[Import]) -> None:
    listed = [str(one) for one in imports]
    assert not listed, "\n".join(listed)


def test_imports_are_found_wherever_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "sample.py"
    file.write_text(
        "import a.b as c\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import d\nelse:\n    import e\n"
        "try:\n    from f import g, h\nexcept ImportError:\n    pass\n"
        "class C:\n    import i\n    def m(self):\n        import j\n"
    )
    actual = {one.module: one.at_module_level for one in imports_of(file)}
    runs = {"a.b", "typing.TYPE_CHECKING", "e", "f.g", "f.h", "i"}
    assert actual == {**dict.fromkeys(runs, True), "d": False, "j": False}


def test_relative_imports_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.architecture.imports.ROOT", tmp_path)
    folder = tmp_path / "pack" / "sub"
    folder.mkdir(parents=True)
    (folder / "one.py").write_text("from . import two\nfrom ..three import four\nfrom .. import five\n")
    assert [one.module for one in imports_of(folder / "one.py")] == ["pack.sub.two", "pack.three.four", "pack.five"]


def test_the_kernel_is_looked_at() -> None:
    assert len(python_files(CORE)) > 5
    assert len(imports_below(CORE)) > 20


def test_the_kernel_knows_neither_airflow_nor_spark_nor_kafka() -> None:
    none_of(one for one in imports_below(CORE) if one.within(*AIRFLOW, "pyspark", "confluent_kafka", "pandas"))


def test_the_kernel_imports_nothing_of_the_project_but_itself() -> None:
    # Only the package's own file and the kernel travel to Spark.
    none_of(
        one
        for one in imports_below(CORE)
        if one.within("spark_jobs")
        or (one.within(PACKAGE) and not one.within(f"{PACKAGE}.core", f"{PACKAGE}.__version__"))
    )


@pytest.mark.parametrize("library", CONFINED)
def test_a_library_stays_in_its_part_of_the_kernel(library: str) -> None:
    none_of(
        one
        for one in imports_below(CORE)
        if one.within(library) and not _rooms(one.file.relative_to(ROOT / CORE)) & CONFINED[library]
    )


def test_the_spark_side_never_imports_airflow() -> None:
    none_of(one for one in imports_below("spark_jobs") if one.within(*AIRFLOW))


def test_the_spark_side_knows_of_the_package_only_the_kernel() -> None:
    none_of(
        one
        for one in imports_below("spark_jobs")
        if one.within(PACKAGE) and not one.within(f"{PACKAGE}.core", f"{PACKAGE}.__version__")
    )


def test_tasks_are_plain_functions_without_spark() -> None:
    none_of(one for one in imports_below("spark_jobs/tasks") if one.within("pyspark"))


@pytest.mark.parametrize(
    ("folder", "never"),
    [
        ("spark_jobs/lake", ("driver", "tasks", "sinks", "readers", "workers")),
        ("spark_jobs/sinks", ("driver", "tasks", "readers", "workers")),
        ("spark_jobs/readers", ("driver", "sinks", "workers")),
        ("spark_jobs/tasks", ("driver",)),
    ],
)
def test_the_rooms_of_the_spark_side_lie_in_layers(folder: str, never: tuple[str, ...]) -> None:
    none_of(one for one in imports_below(folder) if one.within(*(f"spark_jobs.{room}" for room in never)))


def test_the_airflow_side_loads_no_data_library_on_import() -> None:
    heavy = ("pyspark", "pandas", "pyarrow", "confluent_kafka", "deltalake")
    sinks = {ROOT / f"{kind.reader.replace('.', '/')}.py" for kind in SINKS.values()}  # loaded when a table is read
    none_of(one for one in airflow_side() if one.at_module_level and one.within(*heavy) and one.file not in sinks)


def test_the_airflow_side_never_imports_the_spark_side() -> None:
    none_of(one for one in airflow_side() if one.within("spark_jobs"))


def test_nothing_imports_the_tests() -> None:
    none_of(one for one in imports_below(PACKAGE, "spark_jobs", "example_dags", "proto") if one.within("tests"))


def test_tests_import_only_modules_that_exist() -> None:
    """Find imports of a renamed folder, because mypy does not read the tests."""
    none_of(item for item in imports_below("tests") if item.within("tests") and not _exists(item.module))


def test_no_test_is_a_library_of_others() -> None:
    """Find imports of ``test_`` modules: what several tests need has a module with a name that explains it."""
    names = re.compile(r"tests\.(\w+\.)*test_\w+")
    none_of(one for one in imports_below("tests") if names.match(one.module))


def _exists(module: str) -> bool:
    """Return whether a module of the project, or the one that holds the imported name, exists."""
    path, parent = ROOT / module.replace(".", "/"), ROOT / module.rpartition(".")[0].replace(".", "/")
    return path.is_dir() or any(item.with_suffix(".py").is_file() for item in (path, parent)) or _in_package(path)


def _in_package(path: Path) -> bool:
    init = path.parent / "__init__.py"
    return init.is_file() and path.name in init.read_text(encoding="utf-8")


def test_the_launcher_is_alone_in_its_folder() -> None:
    # What lies next to the file given to spark-submit would be importable by accident.
    launch = ROOT / "spark_jobs" / "launch"
    files = {path.name for path in launch.iterdir()} if launch.is_dir() else set()
    assert files - {"__pycache__"} <= {"run.py"}


def test_every_imported_library_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    declared = {normal(re.split(r"[\[<>=!~; ]", requirement)[0]) for requirement in requirements}
    # Airflow's distribution is a shell around these; py4j comes with pyspark, pluggy with Airflow.
    declared |= {"apache-airflow-core", "apache-airflow-task-sdk", "apache-airflow-providers-common-compat", "py4j"}
    carriers = packages_distributions()
    missing = []
    for one in imports_below(PACKAGE, "spark_jobs", "example_dags"):
        top = one.module.partition(".")[0]
        if top in sys.stdlib_module_names or top in (PACKAGE, "spark_jobs"):
            continue
        # One that only an extra brings may not be installed here: then its distribution has the module's name.
        if not {normal(name) for name in carriers.get(top, [top])} & declared:
            missing.append(one)
    none_of(missing)


def test_importing_the_airflow_side_stays_light() -> None:
    """Every hook, operator, sensor and trigger, in a fresh interpreter, beyond what Airflow loads by itself."""
    modules = [PACKAGE]
    for role in ("hooks", "operators", "sensors", "triggers"):
        for file in python_files(f"{PACKAGE}/{role}"):
            parts = file.relative_to(ROOT).with_suffix("").parts
            modules.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    script = (
        "import importlib, json, sys\n"
        "import airflow.sdk\n"
        "for name in ('DAG', 'BaseOperator', 'BaseSensorOperator', 'BaseHook'): getattr(airflow.sdk, name)\n"
        "before = set(sys.modules)\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print('LOADED' + json.dumps(sorted(set(sys.modules) - before)))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert run.returncode == 0, run.stderr[-3000:]
    loaded = json.loads(run.stdout.rpartition("LOADED")[2])
    heavy = {"pyspark", "pandas", "pyarrow", "confluent_kafka", "deltalake", "numpy"}
    assert not [name for name in loaded if name in heavy]
