# SPDX-License-Identifier: Apache-2.0
"""A disk of the lake that is full: an error that says what to do, and doctor sees it."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.batch.runner import run_batch
from airflow_provider_cdc.commands.doctor import findings
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import UnavailableError
from airflow_provider_cdc.observability.remedies import remedy_of
from tests.airflow.shop import demand_data
from tests.system.recorded_files import FilesSite

pytestmark = pytest.mark.system


@pytest.mark.parametrize("document", ["job.json", "jobs"])
def test_a_full_disk_is_an_outage_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: str) -> None:
    demand_data()
    site = FilesSite(tmp_path, {})
    site.feed(0)
    pipeline = CdcPipeline.from_dict(site.document())
    real, full = Path.open, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def refused(path: Path, mode: str = "r", *args: Any, **more: Any) -> Any:
        if "w" in mode and path.name == document:
            raise full
        return real(path, mode, *args, **more)

    def no_folder(path: Path, *args: Any, **more: Any) -> None:
        raise full

    monkeypatch.setattr(Path, "open", refused)
    if document == "jobs":
        monkeypatch.setattr(Path, "mkdir", no_folder)
    with pytest.raises(UnavailableError, match="No space left") as caught:
        run_batch(pipeline)
    assert caught.value.code == "log.unavailable" and "free some space" in caught.value.hint
    assert "free space" in remedy_of(caught.value.code).do


def test_doctor_sees_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = FilesSite(tmp_path, {})
    pipeline = CdcPipeline.from_dict(site.document())
    assert {one.check: one.ok for one in findings(pipeline)}["sink"]
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(8, 8, 0))
    (sink,) = [one for one in findings(pipeline) if one.check == "sink"]
    assert (sink.ok, sink.hint) == (False, "free some space") and "is full" in sink.message
