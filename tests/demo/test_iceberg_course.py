# SPDX-License-Identifier: Apache-2.0
"""The course about Iceberg tables is followed word by word, with a broker and a catalog of the tests."""

from __future__ import annotations

import importlib.resources
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.demo.followed_page import Part, differences, follow, parts_of
from tests.demo.installed_packages import missing
from tests.services.rest_catalog import shared_catalog

if TYPE_CHECKING:
    from tests.services.broker import Broker

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guides" / "iceberg-course.md"
pytestmark = pytest.mark.system


def put_extensions(home: Path) -> None:
    """Put DuckDB's extensions where it looks for those that were installed; it downloads them otherwise."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    folder = home / ".duckdb" / "extensions" / f"v{duckdb.__version__}" / f"linux_{machine}"
    folder.mkdir(parents=True)
    for name in ("avro", "iceberg"):
        package = importlib.resources.files(f"duckdb_extension_{name}")
        file = f"{name}.duckdb_extension"
        (folder / file).write_bytes((package / "extensions" / f"v{duckdb.__version__}" / file).read_bytes())


def test_every_command_of_the_course_does_what_the_page_says(broker: Broker, tmp_path: Path) -> None:
    own = {"broker:9092": broker.bootstrap, "http://catalog:8181": shared_catalog().uri, "/data/": f"{tmp_path}/data/"}
    page = PAGE.read_text(encoding="utf-8")
    for name, value in own.items():
        assert name in page
        page = page.replace(name, value)
    parts, home, folder = parts_of(page), tmp_path / "home", tmp_path / "reader"
    assert page.count("```") == 2 * len(parts)
    folder.mkdir()
    put_extensions(home)
    printed = follow(parts, folder, {"HOME": str(home), "PYTHONPATH": str(ROOT)}, timeout=500)
    assert len(printed) == sum(part.language == "bash" for part in parts) > 6
    assert sum(part.language == "text" for part in parts) >= 5
    assert "\n\n".join(differences(parts, printed)) == ""


def test_another_output_and_a_block_of_no_use_are_noticed(tmp_path: Path) -> None:
    page = "```bash\necho one; echo two\n```\n\n```text\none\n…\n```\n"
    parts = parts_of(page)
    printed = follow(parts, tmp_path, {}, timeout=60)
    assert printed == ["one\ntwo\n"]
    assert differences(parts, printed) == []
    (report,) = differences(parts_of(page.replace("…", "three")), printed)
    assert "two" in report
    with pytest.raises(AssertionError, match="neither commands"):
        parts_of("```yaml\na: 1\n```\n")
    assert parts_of("`a.yaml` is short:\n\n```yaml\na: 1\n```\n") == [Part("a.yaml", "yaml", "a: 1\n")]


def test_a_command_that_fails_fails_the_page(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no such thing"):
        follow([Part("", "bash", "echo no such thing >&2; false | cat\necho on\n")], tmp_path, {}, timeout=60)


def test_only_what_is_declared_counts_as_installed() -> None:
    assert missing(["airflow-provider-cdc[iceberg]", "duckdb"]) == []
    assert missing(["airflow-provider-cdc[icebergs]"]) == ["airflow-provider-cdc has no extra icebergs"]
