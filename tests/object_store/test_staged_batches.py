# SPDX-License-Identifier: Apache-2.0
"""A batch that is staged on S3 and run where nothing but its place, its options and its secrets are known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_cdc.batch.staging import publish, stage
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.lake.object_store import open_objects
from airflow_provider_cdc.demo.truth import differing, load
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.airflow.shop import DATA, ROOT, demand_data
from tests.locations import table_location
from tests.services.s3 import S3
from tests.system.recorded_files import FilesSite

PLANTED = {"AWS_ACCESS_KEY_ID": "AKIAPLANTED77", "AWS_SECRET_ACCESS_KEY": "planted/s3+secret&$(id)"}
SALT = "planted-salt-2b9e"


def test_a_staged_batch_on_s3_is_equal_and_leaves_no_secret(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    demand_data()
    root = f"{s3.create_bucket('staged')}/lake"
    login, password = PLANTED.values()
    extra = {"endpoint_url": s3.endpoint, "region_name": s3.region}
    store = {"conn_type": "aws", "login": login, "password": password, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_STORE", json.dumps(store))
    monkeypatch.setenv("AIRFLOW_CONN_SALT", json.dumps({"conn_type": "generic", "password": SALT}))
    site = FilesSite(tmp_path, {})
    site.changes = {"sink": {"root": root, "storage_connection": "store"}, "mask_connection": "salt"}
    site.feed(0)
    pipeline = CdcPipeline.from_dict(site.document())
    plan = stage(pipeline, until=None)
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"storage": PLANTED, "mask": {"salt": SALT}}))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    environment |= {"AIRFLOW_CDC_SECRETS_FILE": str(secrets), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "airflow_provider_cdc.job", *plan["arguments"]]
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert publish(pipeline, plan).status == "done"
    options = {**s3.storage_options, **PLANTED}
    for source in load(DATA / "source_at" / "0.jsonl.xz"):
        location = DeltaLocation(table_location(root, source.database, source.table), options)
        assert differing(source, location.rows()) == []
    objects = open_objects(root, options)
    written = {name: objects.read(name) or b"" for name in objects.names("")}
    assert {plan[name].removeprefix(f"{root}/") for name in ("main", "payload")} < written.keys()
    assert f"{plan['job']}/status.json".removeprefix(f"{root}/") in written
    written |= {str(file): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file() and file != secrets}
    written |= {"output": "".join([ran.stdout, ran.stderr, *capsys.readouterr()]).encode()}
    written |= {"plan": json.dumps(plan).encode()}
    hidden = [value.encode() for value in (*PLANTED.values(), SALT)]
    assert [name for name, content in written.items() if any(value in content for value in hidden)] == []
