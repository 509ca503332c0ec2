# SPDX-License-Identifier: Apache-2.0
"""Airflow finds the provider: its description, connection form and command group."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from airflow_provider_cdc import _HOMES
from airflow_provider_cdc.commands.registry import VERBS
from airflow_provider_cdc.get_provider_info import get_provider_info
from tests.airflow.installed import installed_path, needs_airflow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment in which the package counts as installed, whether or not it is."""
    home = tmp_path_factory.mktemp("home")
    path = installed_path(tmp_path_factory.mktemp("site"))
    return {**os.environ, "PYTHONPATH": path, "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}


# the commands of one process, which takes seconds to import Airflow
SCRIPT = """
import json, sys
from airflow.__main__ import main

for arguments in json.loads(sys.argv[1]):
    sys.argv = ["airflow", *arguments]
    try:
        code = main() or 0
    except SystemExit as ended:
        code = ended.code or 0
    print(f"\\nENDED {code}", flush=True)
"""


def airflow(environment: dict[str, str], *commands: list[str]) -> list[tuple[str, int]]:
    """Run Airflow's commands one after the other; return what each printed, and its exit code."""
    line = [sys.executable, "-c", SCRIPT, json.dumps(commands)]
    run = subprocess.run(
        line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200
    )
    *texts, _ = re.split(r"^ENDED (\d+)\n", run.stdout, flags=re.MULTILINE)
    assert len(texts) == 2 * len(commands), run.stdout[-3000:]
    return [(text, int(code)) for text, code in zip(texts[::2], texts[1::2], strict=True)]


def test_the_description_is_valid_and_names_what_exists() -> None:
    import airflow
    from jsonschema import validate

    info = get_provider_info()
    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
    validate(info, schema)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert info["package-name"] == project["name"]
    for kind in ("operators", "sensors", "hooks", "triggers"):
        listed = [module for entry in info[kind] for module in entry["python-modules"]]
        for module in listed:
            importlib.import_module(module)
        public = {home for home in _HOMES.values() if home.startswith(f"airflow_provider_cdc.{kind}.")}
        assert public <= set(listed), "Airflow's view of providers lacks them"
    for connection in info["connection-types"]:
        module, name = connection["hook-class-name"].rsplit(".", 1)
        assert getattr(importlib.import_module(module), name).conn_type == connection["connection-type"]


def test_airflow_lists_the_provider_and_its_connection(installed: dict[str, str]) -> None:
    (listed, _), (hooks, _) = airflow(
        installed, ["providers", "list", "--output", "json"], ["providers", "hooks", "--output", "json"]
    )
    assert "airflow-provider-cdc" in listed
    assert "cdc_ledger" in hooks


@needs_airflow(3, 2)
def test_the_same_verbs_stand_under_airflow_cdc(installed: dict[str, str], tmp_path: Path) -> None:
    (help_text, _), (formats, _), (refused, code) = airflow(
        installed, ["cdc", "--help"], ["cdc", "formats", "--json"], ["cdc", "sync", str(tmp_path / "none.yaml")]
    )
    for verb in VERBS:
        assert verb.name in help_text
    assert "debezium-json" in formats
    assert code == 2, refused


def test_the_ledgers_connection_opens_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_cdc.hooks.ledger import CdcLedgerHook

    document = {"conn_type": "cdc_ledger", "extra": {"sqlite_file": str(tmp_path / "ledger.db"), "sslmode": None}}
    monkeypatch.setenv("AIRFLOW_CONN_CDC_LEDGER_DEFAULT", json.dumps(document))
    ok, message = CdcLedgerHook().test_connection()
    assert ok and message.startswith("ledger: Ledger('sqlite:///") and message.endswith(", 0 pipelines")
    document = {"conn_type": "cdc_ledger", "host": "127.0.0.1", "port": 1, "schema": "x", "login": "a", "password": "b"}
    monkeypatch.setenv("AIRFLOW_CONN_CDC_LEDGER_DEFAULT", json.dumps(document))
    ok, message = CdcLedgerHook().test_connection()
    assert not ok and message.startswith("ledger: [ledger.unavailable]") and " -> " in message


def test_the_operators_log_shows_no_raw_control_character(capsys: pytest.CaptureFixture[str]) -> None:
    from airflow_provider_cdc import CdcSyncOperator
    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.core.model.status import ResultStatus
    from airflow_provider_cdc.operators.sync_result import log_result

    sync = CdcSyncOperator(task_id="sync", pipeline={})
    result = BatchResult("shop", 1, ResultStatus.DONE, statements=["DROP TABLE `x\x1b[2J\u202e`"])
    log_result(sync.log, result, None)
    sync._say("land: x\nbatch 1 done")
    out = capsys.readouterr().out
    assert r"DROP TABLE `x\u001b[2J\u202e`" in out and r"land: x\nbatch 1 done" in out
    assert "\x1b[2J" not in out and "\u202e" not in out
