# SPDX-License-Identifier: Apache-2.0
"""``airflow-cdc demo`` from the built wheel, in an environment with nothing but what its install line brings."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from airflow_provider_cdc.batch.result import table_states
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.demo.check import compare
from airflow_provider_cdc.demo.shop_log import ShopLog
from airflow_provider_cdc.ledger import Ledger
from tests.airflow.shop import demand_data, rows
from tests.demo.check import compare as compare_lake

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
ROWS = (491, 1818, 3289, 4781, 6329, 7561, 5576)
README = (ROOT / "README.md").read_text(encoding="utf-8")


def brought_by(name: str, extras: frozenset[str], known: dict[str, Distribution]) -> None:
    """Add the distributions that a requirement brings, its own and theirs."""
    try:
        one = distribution(name)
    except PackageNotFoundError:
        return  # of another platform
    if name != "airflow-provider-cdc":
        if name in known and not extras:
            return
        known[name] = one
    for needed in map(Requirement, one.requires or ()):
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in (extras or {""})):
            normal = re.sub(r"[-_.]+", "-", needed.name).lower()
            if normal not in known or needed.extras:
                brought_by(normal, frozenset(needed.extras), known)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a virtual environment with the wheel and what the README's line installs with it, linked from here."""
    demand_data()
    (line,) = re.findall(r"^pip install (\S+)\nairflow-cdc demo$", README, re.MULTILINE)
    stated = Requirement(line)
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=False)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    known: dict[str, Distribution] = {}
    brought_by(stated.name, frozenset(stated.extras), known)
    for one in known.values():
        for top in {file.parts[0] for file in one.files or ()} - {"..", "__pycache__"}:
            target = site / top
            if not target.exists():
                target.symlink_to(Path(str(one.locate_file(top))))
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    install = [sys.executable, "-m", "pip", "--python", str(folder / "venv"), "install", "--no-deps", "--no-index"]
    subprocess.run([*install, "--quiet", str(wheel)], check=True, capture_output=True, timeout=300)
    yield folder / "venv"


def run(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command in an empty folder, with nothing of the checkout in its environment."""
    program = installed / "bin" / "airflow-cdc"
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "TMPDIR": str(folder), "LANG": "C.UTF-8"}
    return subprocess.run(
        [str(program), *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


def test_the_readme_s_first_command_shows_that_every_table_equals_the_database(installed: Path, tmp_path: Path) -> None:
    ended = run(installed, tmp_path, "demo", "--folder", "shop")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "After 7 of 7 batches every table was equal to the database." in ended.stdout
    shown = [line for line in ended.stdout.splitlines() if re.match(r" \d\d:00 ", line)]
    assert [int(line.split()[-2]) for line in shown] == list(ROWS)
    assert "ALTER TABLE addresses DROP COLUMN fax" in ended.stdout
    folder = tmp_path / "shop"
    assert f"airflow-cdc tables {folder / 'shop.yaml'}" in ended.stdout
    assert CdcPipeline.from_yaml(folder / "shop.yaml").source.type == "files"
    # what it says, looked at from outside
    states = table_states(Ledger(f"sqlite:///{folder / 'ledger.db'}"), "shop").values()
    phases, lake = ShopLog().phases, folder / "lake"
    assert compare_lake(lake, phases[6].truth, states).complete
    assert not compare_lake(lake, phases[5].truth, states).complete
    lines = [line.strip() for line in ended.stdout.splitlines() if line.startswith("    from ") or "print(" in line]
    read = subprocess.run(
        [str(installed / "bin" / "python"), "-c", "\n".join(lines)], capture_output=True, text=True, timeout=120
    )
    assert read.returncode == 0 and "customer_note" in read.stdout, read.stderr
    assert len(rows(lake, "shop", "orders")) > 500
    for verb in ("tables", "ledger", "verify"):
        ended = run(installed, tmp_path, verb, str(folder / "shop.yaml"))
        assert ended.returncode == 0, ended.stderr


def test_wrong_use_says_what_to_do(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    ended = run(installed, tmp_path, "demo", "--folder", "full")
    assert ended.returncode == 2 and "is not empty; name a folder that is new or empty" in ended.stderr
    ended = run(installed, tmp_path, "demo", "--folder", "full/file")
    assert ended.returncode == 2 and "cannot be made" in ended.stderr
    ended = run(installed, tmp_path, "demo", "--sink", "iceberg", "--json")
    assert ended.returncode == 2 and "pip install 'airflow-provider-cdc[iceberg]'" in ended.stderr
    assert json.loads(ended.stdout)["error"]["code"] == "configuration"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]


def test_a_table_that_differs_is_seen() -> None:
    verdict = compare(lambda database, table: None, ShopLog().phases[0].truth, [])
    assert verdict.equal == 0
    assert verdict.problems["shop.orders"] == ["there is no such table in the lake"]
