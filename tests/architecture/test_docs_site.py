# SPDX-License-Identifier: Apache-2.0
"""The documentation as a whole: the site builds without a warning, and pages name code that exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.imports import ROOT
from tests.architecture.pages import DOCS, pages, text_of

MODULE = re.compile(r"`((?:airflow_provider_cdc|spark_jobs|tests|example_dags)/[\w/]+\.py)`")


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "CdcSyncOperator" in (tmp_path / "reference" / "api.html").read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"([\w/-]+\.md)$", navigation, re.MULTILINE)
    assert sorted(named) == sorted(str(page.relative_to(DOCS)) for page in pages())


@pytest.mark.parametrize("folder", ["design", "contributing"])
def test_modules_named_on_a_page_exist(folder: str) -> None:
    named = {(page.name, path) for page in pages(folder) for path in MODULE.findall(text_of(page))}
    assert named
    assert sorted(item for item in named if not (ROOT / item[1]).is_file()) == []


def test_every_design_page_says_where_it_is_in_the_code() -> None:
    overview = DOCS / "design" / "index.md"
    lacking = [page.name for page in pages("design") if page != overview and not MODULE.search(text_of(page))]
    assert lacking == []


def test_the_readme_fits_the_first_screens() -> None:
    assert len(text_of(ROOT / "README.md").splitlines()) <= 120
