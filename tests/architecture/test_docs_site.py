# SPDX-License-Identifier: Apache-2.0
"""The documentation as a whole: the site builds without a warning, and pages name code that exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.architecture.imports import ROOT
from tests.architecture.module_map import PAGE
from tests.architecture.pages import DOCS, pages, text_of

MODULE = re.compile(r"`((?:airflow_provider_cdc|spark_jobs|tests|example_dags)/[\w/]+\.py)`")


def built(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Build a site as the Makefile does."""
    (command,) = re.findall(
        r"-m (mkdocs) \$\(if \$\(ARGS\),\$\(ARGS\),(build .*)\)$", text_of(ROOT / "Makefile"), re.MULTILINE
    )
    words = [sys.executable, "-m", command[0], *command[1].split(), *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    run = built("--site-dir", str(tmp_path))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "CdcSyncOperator" in (tmp_path / "reference" / "api.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("target", "fails"), [("other.md", False), ("gone.md", True), ("other.md#gone", True)])
def test_a_link_to_nothing_fails(tmp_path: Path, target: str, fails: bool) -> None:
    pages_folder = tmp_path / "docs"
    pages_folder.mkdir()
    (pages_folder / "index.md").write_text(f"# Home\n\n[link]({target})\n", encoding="utf-8")
    (pages_folder / "other.md").write_text("# Other\n", encoding="utf-8")
    own = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": str(pages_folder),
        "theme": {"name": "mkdocs"},
        "plugins": [],
        "hooks": [],
        "nav": ["index.md", "other.md"],
    }
    config = tmp_path / "mkdocs.yml"
    config.write_text(yaml.safe_dump(own), encoding="utf-8")
    run = built("--config-file", str(config), "--site-dir", str(tmp_path / "site"))
    assert (run.returncode != 0) == fails, run.stderr


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"([\w/-]+\.md)$", navigation, re.MULTILINE)
    assert sorted(named) == sorted([PAGE, *(str(page.relative_to(DOCS)) for page in pages())])


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
