# SPDX-License-Identifier: Apache-2.0
"""Job, result, reports, table state and policy are dataclasses: plain data only where they become or were documents.

A misspelt key of a dict is found by a user; a misspelt attribute is found by mypy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.batch.result import BatchResult, TableResult
from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.documents import JobDocument, Result, TableState
from spark_jobs.lake.manifest import LandReport, Manifest, RowGroup, Unreadable
from spark_jobs.lake.stored_result import StoredResult
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask
from tests.architecture.imports import ROOT, python_files

SEAMS: tuple[type[Any], ...] = (
    JobDocument, Result, BatchResult, TableResult, TableState, RunPolicy, StoredResult, LandReport, Manifest, RowGroup,
    Unreadable, ApplyReport, ApplyTask,
)  # fmt: skip

NAMES = {
    "job", "landed", "manifest", "outcome", "policy", "report", "reports", "result", "results", "rules", "state",
    "states",
}  # fmt: skip
"""Names of variables, members and functions that hold a seam's object in this code base."""

MEMBERS = {item.name for seam in SEAMS for item in fields(seam) if "_" in item.name} - {
    "cut_at", "error_code", "lake_batches", "min_position", "new_generation", "schema_changes", "source_time",
    "table_id",
}  # fmt: skip
"""Members that only seams have; those left out are also columns of changes, or members of other documents."""

CONVERTERS = {"document", "from_document"}

# The ledger stores documents of any kind and looks into none.
STORES = ("airflow_provider_cdc/ledger/",)


def dict_seams(source: str) -> Iterator[str]:
    """Yield where a module has a seam's object as plain data, with the line."""
    tree = ast.parse(source)
    within = {id(node) for name in ast.walk(tree) if _is_converter(name) for node in ast.walk(name)}
    for node in ast.walk(tree):
        if id(node) in within:
            continue
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            name = node.arg if isinstance(node, ast.arg) else _name(node.target)
            if name in NAMES and _is_plain(node.annotation):
                yield f"{node.lineno}: {name}: {ast.unparse(node.annotation)}"
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            if node.name.strip("_") in NAMES and _is_plain(node.returns):
                yield f"{node.lineno}: {node.name}() -> {ast.unparse(node.returns)}"
        elif (read := _read(node)) is not None:
            name, member = read
            if name in NAMES or member in MEMBERS:
                yield f"{node.lineno}: {name}[{member!r}]"


def _is_converter(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name in CONVERTERS


def _is_plain(annotation: ast.expr) -> bool:
    return any(f"{kind}[str, Any]" in ast.unparse(annotation) for kind in ("dict", "Mapping"))


def _name(node: ast.expr) -> str:
    """Return the last name of an expression, empty for others: ``report`` of ``self.report``, of ``reports[i]`` too."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return getattr(node, "attr", getattr(node, "id", "")).strip("_")


def _read(node: ast.AST) -> tuple[str, str] | None:
    """Return name and key of ``name["key"]`` and ``name.get("key")``."""
    if isinstance(node, ast.Subscript):
        value, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        value, key = node.func.value, node.args[0]
    else:
        return None
    return (_name(value), key.value) if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def modules() -> list[Path]:
    files = [*python_files("airflow_provider_cdc"), *python_files("spark_jobs")]
    paths = [(file, file.relative_to(ROOT).as_posix()) for file in files]
    return [file for file, path in paths if not path.startswith(STORES) and "/generated/" not in path]


def test_no_module_reads_a_seam_by_key() -> None:
    violations = [f"{file.relative_to(ROOT)}:{line}" for file in modules() for line in dict_seams(file.read_text())]
    assert violations == []


@pytest.mark.parametrize(
    "source",
    [
        "def f(report: dict[str, Any]) -> None: ...",
        "def f(states: Iterable[Mapping[str, Any]]) -> None: ...",
        "def result() -> dict[str, Any]: ...",
        "landed: dict[str, Any] = {}",
        "class A:\n    state: dict[str, Any] | None = None",
        "x = report['status']",
        "x = self._reports[task]['status']",
        "x = job.policy.get('reader')",
        "x = document['applied_position']",
        "def f(data):\n    return data.get('rewind_to')",
    ],
)
def test_a_seam_as_plain_data_is_noticed(source: str) -> None:
    assert len(list(dict_seams(source))) == 1


def test_converters_and_other_dicts_are_not_seams() -> None:
    source = "class A:\n    def from_document(data):\n        return A(data['applied_position'], data.get('state'))"
    assert list(dict_seams(source)) == []
    assert list(dict_seams("headers['a'] = row['position']\nx = change.get('snapshot')")) == []


def test_the_members_that_mark_seams_are_there() -> None:
    assert {"applied_position", "rewind_to", "spark_writer_bytes", "max_position"} <= MEMBERS
