# SPDX-License-Identifier: Apache-2.0
"""Check what a batch's job document says of the format: nothing that only the planning machine can read."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_cdc.batch.job import JobMaker
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.ledger import SYNC, Ledger
from tests.cross_format.avro_schema import OPTIONS


def test_the_text_of_a_schema_file_travels_in_the_job_document(tmp_path: Path) -> None:
    file = tmp_path / "record.avsc"
    file.write_text(OPTIONS["schema"], encoding="utf-8")
    stated = {name: text for name, text in OPTIONS.items() if name != "schema"}
    pipeline = CdcPipeline.from_dict(
        {
            "name": "orders",
            "source": {"topics": "drs", "format": "drs-avro", "options": {**stated, "schema_file": str(file)}},
            "sink": {"root": str(tmp_path / "lake")},
            "policy": {"engine": "inline"},
        }
    )
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    with ledger.lease(pipeline.name, "test") as lease:
        batch = ledger.plan(lease, {"drs": {0: 0}}, {"drs": {0: 5}}, None, SYNC)
        job, _ = JobMaker(pipeline, ledger, batch, {}, {}).make()
    assert job.format_options == OPTIONS
    assert job.document()["format_options"]["schema"] == OPTIONS["schema"]
