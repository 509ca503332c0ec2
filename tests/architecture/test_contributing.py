# SPDX-License-Identifier: Apache-2.0
"""Check that the table "Where does it go?" leads to modules and names that exist, and that CONTRIBUTING stays short."""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.imports import ROOT
from tests.architecture.module_map import module_map

PAGE = ROOT / "docs" / "contributing" / "where-does-it-go.md"
_MOST_LINES = 120
_TARGET = re.compile(r"`([\w./-]+/[\w.-]+)(?:: ([\w., ]+))?`")


def targets() -> list[tuple[str, tuple[str, ...]]]:
    """Return each path of the table with the names that it is said to define."""
    text = PAGE.read_text(encoding="utf-8")
    return [(path, tuple(filter(None, names.split(", ")))) for path, names in _TARGET.findall(text)]


def names_of(source: str) -> set[str]:
    """Return the names that a module defines, members of its classes as ``Class.member``."""
    names = set()
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef():
                names.add(node.name)
            case ast.ClassDef():
                names.add(node.name)
                names |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
            case ast.Assign():
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def test_contributing_is_read_in_one_go() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= _MOST_LINES


def test_the_map_names_every_module() -> None:
    page = module_map()
    for file in (ROOT / "spark_jobs").rglob("*.py"):
        if file.name != "__init__.py":
            assert f"`{file.name}`" in page


def test_the_table_is_read() -> None:
    assert len(targets()) > 20


@pytest.mark.parametrize("path, names", targets(), ids=[path for path, _ in targets()])
def test_the_table_leads_to_what_is_there(path: str, names: tuple[str, ...]) -> None:
    assert (ROOT / path).exists()
    if names:
        assert set(names) <= names_of((ROOT / path).read_text(encoding="utf-8"))
