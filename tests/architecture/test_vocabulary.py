# SPDX-License-Identifier: Apache-2.0
"""Keep retired words out: the findings of `tests/architecture/vocabulary.py` in each folder.

A word that has to be written, such as a vendor's field or a quotation, is written in backquotes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.imports import ROOT
from tests.architecture.vocabulary import checked_files, counts, findings, folder_of, in_page, in_python

# Each folder stands for its own files, not for those of its subfolders.
CLEAN = (
    ".",
    "airflow_provider_cdc",
    "airflow_provider_cdc/batch",
    "airflow_provider_cdc/commands",
    "airflow_provider_cdc/core/apply",
    "airflow_provider_cdc/core/config",
    "airflow_provider_cdc/core/ddl",
    "airflow_provider_cdc/core/ddl/oracle",
    "airflow_provider_cdc/core/formats",
    "airflow_provider_cdc/core/formats/canal",
    "airflow_provider_cdc/core/formats/common",
    "airflow_provider_cdc/core/formats/connect",
    "airflow_provider_cdc/core/formats/connect/connectors",
    "airflow_provider_cdc/core/formats/drs",
    "airflow_provider_cdc/core/formats/dts",
    "airflow_provider_cdc/core/formats/oms",
    "airflow_provider_cdc/ledger",
    "airflow_provider_cdc/core/model",
    "airflow_provider_cdc/core/plan",
    "airflow_provider_cdc/core/timeline",
    "airflow_provider_cdc/core/values",
    "airflow_provider_cdc/core/values/alter",
    "airflow_provider_cdc/core/values/columnar",
    "airflow_provider_cdc/core/values/scalar",
    "airflow_provider_cdc/core/values/shared",
    "airflow_provider_cdc/engine",
    "airflow_provider_cdc/engine/jars",
    "airflow_provider_cdc/hooks",
    "airflow_provider_cdc/operators",
    "airflow_provider_cdc/sensors",
    "airflow_provider_cdc/triggers",
    "docs",
    "docs/concepts",
    "docs/contributing",
    "docs/design",
    "docs/design/performance",
    "docs/formats",
    "docs/guides",
    "docs/reference",
    "docs/wire",
    "example_dags",
    "proto",
    "spark_jobs",
    "spark_jobs/driver",
    "spark_jobs/lake",
    "spark_jobs/launch",
    "spark_jobs/readers",
    "spark_jobs/sinks",
    "spark_jobs/sinks/delta",
    "spark_jobs/tasks",
    "spark_jobs/workers",
    "tests",
    "tests/airflow",
    "tests/architecture",
    "tests/bench",
    "tests/captures",
    "tests/conformance",
    "tests/cross_format",
    "tests/demo",
    "tests/faults",
    "tests/histories",
    "tests/object_store",
    "tests/peer_fixtures",
    "tests/services",
    "tests/spark",
    "tests/system",
    "tests/unit",
    "tests/unit/core",
    "tests/unit/core/apply",
    "tests/unit/core/ddl",
    "tests/unit/core/formats",
    "tests/unit/core/formats/canal",
    "tests/unit/core/formats/common",
    "tests/unit/core/formats/connect",
    "tests/unit/core/formats/drs",
    "tests/unit/core/formats/dts",
    "tests/unit/core/formats/oms",
    "tests/unit/ledger",
    "tests/unit/core/plan",
    "tests/unit/core/timeline",
    "tests/unit/core/values",
    "tests/unit/spark_jobs",
    "tests/vendor_samples",
)

# Retired words that are left: the numbers may only shrink, and a folder without any belongs in CLEAN.
LEFT: dict[str, int] = {
    "airflow_provider_cdc/core": 1,
}


@pytest.mark.parametrize("folder", CLEAN)
def test_a_clean_folder_has_no_retired_words(folder: str) -> None:
    files = [file for file in checked_files() if folder_of(file) == folder]
    assert files, "no such folder: remove it from the list"
    retired = [str(finding) for file in files for finding in findings(file)]
    assert not retired, "\n".join(retired)


def test_the_other_folders_get_no_more_retired_words() -> None:
    files = [file for file in checked_files() if folder_of(file) not in CLEAN]
    more = {folder: count for folder, count in counts(files).items() if count > LEFT.get(folder, 0)}
    assert not more, "list them with `python -m tests.architecture.vocabulary FOLDER`"


def words(text: str, *, page: bool = False) -> list[str]:
    """Return the retired words of a text."""
    return [word for _, word, _ in (in_page if page else in_python)(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("told = 1", ["told"]),
        ("def f(told_columns): ...", ["told_columns"]),
        ("class OwedRows: ...", ["OwedRows"]),
        ("self.found = 1", ["found"]),
        ("found_rows = 1", []),
        ("x = told", []),
        ("x = 1  # read anew", ["anew"]),
        ('"""Told by the tool."""', ["Told"]),
        ('"""What a tool writes."""', ["What"]),
        ('raise ValueError(f"{x} is no number")', ["is no number"]),
        ('x = "told"', []),
        ('x = "there is no number, and this is no longer one"', []),
        ('x = "rows that nothing tells apart"', []),
        ("x = 1  # one that is none", ["that is none"]),
        ("x = 1  # one that is None", []),
        ('"""Return ``told`` and `owed`."""', []),
    ],
)
def test_retired_words_are_found_in_python(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_retired_words_are_found_in_pages_but_not_in_their_code() -> None:
    text = "A table\nstands aside; see `told`.\n\n```python\nowed = 1\n```\n\nIt is mended [there](anew.md).\n"
    assert words(text, page=True) == ["stands aside", "mended"]
    assert [line for line, _, _ in in_page(text)] == [2, 8]


def test_every_kind_of_file_is_checked() -> None:
    files = {file.relative_to(ROOT) for file in checked_files()}
    assert {Path("README.md"), Path("spark_jobs/driver/run_batch.py"), Path("docs/index.md")} <= files
