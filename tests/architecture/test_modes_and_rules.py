# SPDX-License-Identifier: Apache-2.0
"""Each mode and each rule for columns is a module and a line of a registry; the tasks know none of them."""

from __future__ import annotations

from airflow_provider_cdc.core.apply.modes import MODES
from airflow_provider_cdc.core.config.tables import TABLE_MODES
from airflow_provider_cdc.core.shapes.rules import RULES
from tests.architecture.imports import imports_below, python_files
from tests.histories.moded_table import OWN_COLUMNS

CORE = "airflow_provider_cdc.core"


def modules(package: str) -> set[str]:
    """Return the modules of kinds in a package."""
    files = python_files(package.replace(".", "/"))
    return {f"{package}.{file.stem}" for file in files if file.stem not in ("__init__", "contract")}


OF_MODES, OF_RULES = modules(f"{CORE}.apply.modes"), modules(f"{CORE}.shapes.rules")


def test_each_is_a_module_and_a_line() -> None:
    assert {f"{CORE}.apply.modes.{name}" for name in MODES} == OF_MODES
    assert set(MODES) == set(TABLE_MODES) == set(OWN_COLUMNS)
    assert {rule.__module__ for rule in RULES.values()} == OF_RULES


def test_tasks_and_driver_know_none_of_them() -> None:
    listed = [str(one) for one in imports_below("spark_jobs") if one.within(*OF_MODES, *OF_RULES)]
    words = {name for names in OWN_COLUMNS.values() for name in names} | {"soft_delete"}
    texts = {file: file.read_text() for file in python_files("spark_jobs")}
    listed += [f"{file}: {word}" for file, text in texts.items() for word in words if word in text]
    assert listed == []
