# SPDX-License-Identifier: Apache-2.0
"""Check which folders import each other, and that the names of a kind of table stay with its sink."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from tests.architecture.imports import ROOT, Import, imports_of, python_files

SIDES = ("airflow_provider_cdc", "spark_jobs")
PACKAGE = SIDES[0]
SINKS = ("airflow_provider_cdc/sinks", "spark_jobs/sinks")
TABLE_FORMATS = ("deltalake", "delta", "pyiceberg", "spark_jobs.sinks.delta")


def room_of(file: Path) -> str:
    """Return the folder that a file belongs to: two levels deep, three in the kernel."""
    folders = file.relative_to(ROOT).parts[:-1]
    return "/".join(folders[: 3 if "core" in folders[1:2] else 2])


def modules() -> dict[str, Path]:
    """Return the product's files by the name under which they are imported."""
    files = [file for side in SIDES for file in python_files(side)]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


def imported(one: Import, known: dict[str, Path]) -> Path | None:
    """Return the file of the product that an import reaches, None where it reaches none or only a side's own file."""
    name = one.module
    while name and name not in known:
        name = name.rpartition(".")[0]
    return None if not name or name in SIDES else known[name]


def test_folders_import_each_other_in_one_direction() -> None:
    known, reached = modules(), defaultdict[str, set[str]](set)
    for file in known.values():
        for one in imports_of(file):
            target = imported(one, known)
            if target is not None:
                reached[room_of(file)].add(room_of(target))
    pairs = {(a, b) for a, rooms in reached.items() for b in rooms if a < b and a in reached[b]}
    assert pairs == set()


def test_formats_of_tables_are_known_to_the_sinks_only() -> None:
    knows = [
        str(file.relative_to(ROOT))
        for side in SIDES
        for file in python_files(side)
        if not any(file.is_relative_to(ROOT / sinks) for sinks in SINKS)
        and any(one.within(*TABLE_FORMATS) for one in imports_of(file))
    ]
    assert knows == []
