# SPDX-License-Identifier: Apache-2.0
"""Check that files and functions of the product stay small. What is larger today may only become smaller."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Mapping

from tests.architecture.imports import ROOT, python_files

SIDES = ("airflow_provider_cdc", "spark_jobs")
FILE, FUNCTION, COMPLEXITY = 400, 50, 18

# Lines of files and functions above the budget. A number may fall, a name may leave the list, and none
# may come in.
LARGE_FILES = {}
LARGE_FUNCTIONS: dict[str, int] = {}
COMPLEX_FUNCTIONS: set[str] = set()


def _files() -> dict[str, str]:
    """Return the text of each file that people write."""
    files = [file for side in SIDES for file in python_files(side) if "generated" not in file.parts]
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def _problems(lines: Mapping[str, int], budget: int, larger: Mapping[str, int]) -> list[str]:
    """Return what is above the budget and not listed so, and what is listed and no longer needs it."""
    above = [f"{name}: {count} lines" for name, count in lines.items() if count > larger.get(name, budget)]
    return above + [f"{name}: take it from the list" for name in larger if lines.get(name, 0) <= budget]


def test_files_are_small() -> None:
    lines = {name: len(text.splitlines()) for name, text in _files().items()}
    assert _problems(lines, FILE, LARGE_FILES) == []


def test_functions_are_short() -> None:
    lines = {}
    for name, text in _files().items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                lines[f"{name}:{node.name}"] = node.end_lineno - node.lineno + 1
    assert _problems(lines, FUNCTION, LARGE_FUNCTIONS) == []


def test_functions_have_few_branches() -> None:
    limit = f"lint.mccabe.max-complexity={COMPLEXITY}"
    command = [sys.executable, "-m", "ruff", "check", "--select", "C901", "--config", limit, "--output-format", "json"]
    answer = subprocess.run([*command, *SIDES], capture_output=True, text=True, cwd=ROOT, check=False)
    listed = {f"{one['filename'].removeprefix(f'{ROOT}/')}: {one['message']}" for one in json.loads(answer.stdout)}
    assert listed == COMPLEX_FUNCTIONS
