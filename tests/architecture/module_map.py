# SPDX-License-Identifier: Apache-2.0
"""Write the site's map of modules: each folder, each module, and the first sentence of its docstring."""

from __future__ import annotations

import ast
from itertools import groupby
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from tests.architecture.imports import ROOT, python_files

PAGE = "contributing/map.md"
_HEAD = "# Map of the modules\n\nWhat each module does, in its own first sentence.\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the map to the site's pages."""
    files.append(File.generated(config, PAGE, content=module_map()))
    return files


def module_map() -> str:
    """Return the map as a page."""
    modules = [file for side in ("airflow_provider_cdc", "spark_jobs") for file in python_files(side)]
    modules = [file for file in modules if "generated" not in file.parts]
    lines = [_HEAD]
    for folder, inside in groupby(modules, key=lambda file: file.parent):
        lines += [f"\n## {folder.relative_to(ROOT)}\n", "| module | what it does |", "|---|---|"]
        lines += [f"| `{file.name}` | {_first_sentence(file)} |" for file in inside if _first_sentence(file)]
    return "\n".join(lines) + "\n"


def _first_sentence(file: Path) -> str:
    """Return the first line of a module's docstring, empty where it has none."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].replace("|", "\\|").replace("<", "&lt;")
