# SPDX-License-Identifier: Apache-2.0
"""The probe of a sink whose files are in an object store: no object is left, and a refusal is named."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_cdc.batch.lake_question import ask
from airflow_provider_cdc.core.config import IcebergSink
from spark_jobs.driver.probe import RIGHTS
from tests.sample import ALL
from tests.services.refusing_server import RefusingServer
from tests.services.s3 import S3
from tests.sinks.probing import Steps, job_of, problems_of

KINDS = ("delta", *["delta merge-on-read"] * ALL, "iceberg")


@pytest.fixture
def store(s3: S3) -> Iterator[RefusingServer]:
    server = RefusingServer(s3.endpoint, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
    yield server
    server.stop()


@pytest.fixture
def bucket(s3: S3, tmp_path: Path) -> str:
    return s3.create_bucket(f"probe-{abs(hash(tmp_path))}").removeprefix("s3://")


def options_of(kind: str, s3: S3, store: RefusingServer, folder: Path) -> dict[str, str]:
    """Return the options of a sink behind the proxy; an Iceberg catalog is in a local file."""
    options = {**s3.storage_options, "AWS_ENDPOINT_URL": store.endpoint}
    if kind == "iceberg":
        return {**options, **IcebergSink(str(folder)).options()}
    return {**options, **({"writes": "merge-on-read"} if "read" in kind else {})}


def steps_of(kind: str, root: str, options: dict[str, str]) -> Steps:
    """Probe a sink as doctor does; a process of its own also because delta-rs waits for answers with Python's lock."""
    result = ask(job_of(kind, root, options), {}, "probe")
    assert result.error is None
    return problems_of(result)


def objects_in(s3: S3, bucket: str) -> list[str]:
    with urllib.request.urlopen(f"{s3.endpoint}/{bucket}?list-type=2", timeout=30) as answer:
        return re.findall("<Key>(.*?)</Key>", answer.read().decode())


@pytest.mark.parametrize("kind", KINDS)
def test_no_object_is_left(kind: str, s3: S3, store: RefusingServer, bucket: str, tmp_path: Path) -> None:
    steps = steps_of(kind, f"s3://{bucket}/lake", options_of(kind, s3, store, tmp_path))
    assert steps == {"create": None, "merge": None, "remove": None}
    assert objects_in(s3, bucket) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_login_that_may_not_write_or_commit(
    kind: str, s3: S3, store: RefusingServer, bucket: str, tmp_path: Path
) -> None:
    options = options_of(kind, s3, store, tmp_path)
    store.refuse(r"PUT ")
    steps = steps_of(kind, f"s3://{bucket}/lake", options)
    assert RIGHTS["create"] in str(steps["create"])
    store.refuse(r"PUT /[^ ]+(_delta_log|/metadata/)", behind=1 if kind != "iceberg" else 3)
    steps = steps_of(kind, f"s3://{bucket}/lake", options)
    assert (steps["create"], steps["remove"]) == (None, None)
    assert RIGHTS["merge"] in str(steps["merge"])
    assert objects_in(s3, bucket) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_login_that_may_not_delete(kind: str, s3: S3, store: RefusingServer, bucket: str, tmp_path: Path) -> None:
    store.refuse(r"(DELETE|POST /[^ ]+\?delete) ?")
    steps = steps_of(kind, f"s3://{bucket}/lake", options_of(kind, s3, store, tmp_path))
    assert (steps["create"], steps["merge"]) == (None, None)
    assert RIGHTS["remove"] in str(steps["remove"])
    named = re.search(r"then remove s3://[^/]+/(.*) by hand", str(steps["remove"]))
    assert named
    assert objects_in(s3, bucket)
    assert all(name.startswith(named[1]) for name in objects_in(s3, bucket))
