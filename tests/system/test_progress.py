# SPDX-License-Identifier: Apache-2.0
"""A running batch shows on the page how far it is, a killed one nothing, and a terminal has a bar."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.batch import planned_batch
from airflow_provider_cdc.batch.runner import run_batch
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.ledger import Ledger
from tests.airflow.shop import ROOT, demand_data
from tests.system.page import shown
from tests.system.recorded_files import FilesSite

pytestmark = pytest.mark.system


class Killed(BaseException):
    """Ends the process that drives a batch."""


@pytest.fixture
def site(tmp_path: Path) -> FilesSite:
    demand_data()
    site = FilesSite(tmp_path, {})
    site.feed(0)
    return site


@pytest.mark.parametrize("killed", [False, True])
def test_the_page_shows_a_batch_that_runs_and_none_that_does_not(
    killed: bool, site: FilesSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, seen = CdcPipeline.from_dict(site.document()), []
    monkeypatch.setattr(planned_batch, "_FIRST_RECORD", 0.0)
    monkeypatch.setattr(planned_batch, "_RECORD_EACH", 0.0)
    record = Ledger.progressed

    def progressed(ledger: Ledger, *arguments: Any) -> None:
        record(ledger, *arguments)
        seen.append(shown(pipeline))
        if killed:
            raise Killed

    monkeypatch.setattr(Ledger, "progressed", progressed)
    said: list[str] = []
    if killed:
        with pytest.raises(Killed):
            run_batch(pipeline, say=said.append)
    else:
        assert run_batch(pipeline, say=said.append).status == "done"
        last = seen[-1]
        assert (last["step"], last["tables"], last["share"]) == ("apply", last["all_tables"], 1.0)
        assert last["text"].startswith(f"apply: {last['tables']} of {last['tables']} tables, {last['rows']} of ")
    assert seen[0]["step"] == "land" and seen[0]["all_rows"] > 0
    assert shown(pipeline) is None
    assert not any(line.startswith("progress") for line in said)


def test_a_terminal_has_a_bar_and_the_answer_stays_a_document(site: FilesSite) -> None:
    path = site.folder / "shop.yaml"
    path.write_text(CdcPipeline.from_dict(site.document()).to_yaml())
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "airflow_provider_cdc.cli", "sync", str(path), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        out = process.communicate()[0]
    assert process.returncode == 0, shown
    assert json.loads(out)["status"] == "done"
    assert b"[####################] 100%  apply: " in shown and shown.endswith(b"\r\x1b[2K")
