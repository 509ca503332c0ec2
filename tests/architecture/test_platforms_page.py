# SPDX-License-Identifier: Apache-2.0
"""The page of platforms names for each row the test that ran it, or says that it was run by hand or not at all."""

from __future__ import annotations

import ast
import re

import pytest

from .tracked_files import ROOT

PAGE = ROOT / "docs" / "reference" / "platforms.md"
SUITE, LONGER, COMPAT = "suite", "suite with `CDC_SEEDS=2`", "compat"


def rows() -> list[tuple[str, str]]:
    """Return of each row that says how it was run its text and that."""
    lines = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("|")]
    columns = 0
    stated: list[tuple[str, str]] = []
    for cells in lines:
        if cells[-1] == "how":
            columns = len(cells)
        elif columns and not cells[0].startswith("---"):
            assert len(cells) == columns, cells
            stated.append((" | ".join(cells[:-1]), cells[-1]))
    return stated


def claims() -> list[tuple[str, str]]:
    """Return how and by which test each row was run that names one."""
    parts = [part.partition(": ") for _, how in rows() if how not in ("by hand", "-") for part in how.split("; ")]
    return [(kind, test) for kind, _, named in parts for test in re.findall(r"`([^`]+)`", named) or [""]]


def test_a_row_says_how_it_was_run_or_that_it_was_not() -> None:
    assert len(rows()) >= 25
    assert [text for text, how in rows() if how == "-" and "not tested" not in text.lower()] == []
    assert {kind for kind, _ in claims()} == {SUITE, LONGER, COMPAT}


@pytest.mark.parametrize(("kind", "test"), dict.fromkeys(claims()))
def test_a_row_names_a_test_that_runs_so(kind: str, test: str) -> None:
    name, _, function = test.partition("::")
    assert name.startswith("tests") and (ROOT / name).exists(), f"{kind}: no test is named"
    if kind == COMPAT:
        assert test in (ROOT / "Makefile").read_text()
    if not function:
        assert kind != LONGER, "name the function that the suite leaves out"
        return
    module = ast.parse((ROOT / name).read_text())
    marks = {
        ast.unparse(node.targets[0]): ast.unparse(node.value) for node in module.body if isinstance(node, ast.Assign)
    }
    (test_function,) = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == function]
    decorators = [ast.unparse(decorator) for decorator in test_function.decorator_list]
    stated = [marks.get(decorator, decorator) for decorator in decorators]
    if kind == LONGER:
        longer = ["not ALL", *(name for name, mark in marks.items() if "not ALL" in mark)]
        assert any(name in mark for mark in stated for name in longer), "the suite runs all of it"
    elif kind == SUITE:
        assert not any(mark.startswith("pytest.mark.skipif(not ALL") for mark in stated), "the suite leaves it out"
