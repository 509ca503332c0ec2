# SPDX-License-Identifier: Apache-2.0
"""List what a Python file imports, read from its text without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Import:
    """One import of one file.

    file: the importing file.
    line: where in it.
    module: the full name of what is imported; of `from a import b` that is `a.b`.
    at_module_level: whether importing the file runs it.
    """

    file: Path
    line: int
    module: str
    at_module_level: bool

    def within(self, *packages: str) -> bool:
        """Return whether it imports one of the packages or something inside one."""
        return any(self.module == package or self.module.startswith(f"{package}.") for package in packages)

    def __str__(self) -> str:
        file = self.file.relative_to(ROOT) if self.file.is_relative_to(ROOT) else self.file
        return f"{file}:{self.line} imports {self.module}"


def python_files(folder: str) -> list[Path]:
    """Return the Python files below a folder of the project; none if it does not exist."""
    return sorted((ROOT / folder).rglob("*.py"))


def imports_below(*folders: str) -> list[Import]:
    """All imports of the files below some folders of the project."""
    return [one for folder in folders for file in python_files(folder) for one in imports_of(file)]


@cache
def imports_of(file: Path) -> list[Import]:
    """All imports of one file, those of functions and of type checkers included."""
    tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    return list(_walk(tree, file, at_module_level=True))


def _walk(node: ast.AST, file: Path, at_module_level: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(file, child.lineno, alias.name, at_module_level)
        elif isinstance(child, ast.ImportFrom):
            base = _absolute(child, file)
            for alias in child.names:
                name = base if alias.name == "*" else f"{base}.{alias.name}"
                yield Import(file, child.lineno, name, at_module_level)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _walk(child, file, at_module_level=False)
        elif isinstance(child, ast.If) and _only_for_type_checkers(child.test):
            for statement in child.body:
                yield from _walk(ast.Module([statement], []), file, at_module_level=False)
            for statement in child.orelse:
                yield from _walk(ast.Module([statement], []), file, at_module_level)
        else:
            yield from _walk(child, file, at_module_level)


def _absolute(node: ast.ImportFrom, file: Path) -> str:
    if not node.level:
        return node.module or ""
    package = file.relative_to(ROOT).parent.parts
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def _only_for_type_checkers(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )
