# SPDX-License-Identifier: Apache-2.0
"""Topics in objects of S3 are what they are in files of a local disk."""

from __future__ import annotations

import gzip
import json

import pytest

from airflow_provider_cdc.batch.job import job_settings
from airflow_provider_cdc.batch.source_log import open_log
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import UnavailableError
from airflow_provider_cdc.core.file_log.appending import line_of
from airflow_provider_cdc.core.file_log.line_kinds import FileRecord
from airflow_provider_cdc.core.file_log.names import path_of
from airflow_provider_cdc.core.file_log.topic_files import TopicFiles
from airflow_provider_cdc.core.lake.object_store import open_objects
from tests.services.s3 import S3

T = "s.shop.orders"


def record(offset: int) -> FileRecord:
    return FileRecord(offset, 1_000 + offset, b"k", b"%d" % offset * 40, None)


def lines(start: int, end: int) -> bytes:
    return b"".join(line_of(T, 1, record(offset)) for offset in range(start, end))


def test_topics_on_s3(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    root = f"{s3.create_bucket('topics')}/log/topics"
    store = open_objects(root, s3.storage_options)
    files = TopicFiles(root, options=s3.storage_options)
    assert files.topics() == [] and files.partitions(T) == []
    store.put(path_of(T, 1, 0, ".jsonl"), lines(0, 2_000))
    store.put(path_of(T, 1, 2_000, ".jsonl.gz"), gzip.compress(lines(2_000, 2_010)))
    store.put(f"{T}/partition=0/_SUCCESS", b"")
    assert files.topics() == [T] and files.partitions(T) == [0, 1]
    assert files.ends(T, 0) == (0, 0) and files.ends(T, 1) == (0, 2_010)
    store.put(path_of(T, 1, 2_010, ".jsonl"), b"")
    assert files.ends(T, 1) == (0, 2_010)
    store.put(path_of(T, 1, 2_010, ".jsonl"), lines(2_010, 2_011))
    assert files.ends(T, 1) == (0, 2_011) and files.offset_at(T, 1, 3_005) == 2_005
    assert list(files.read(T, 1, 1_990, 2_011)) == [record(offset) for offset in range(1_990, 2_011)]

    extra = {"endpoint_url": s3.endpoint, "region_name": s3.region}
    connection = {"conn_type": "aws", "login": s3.access_key, "password": s3.secret_key, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_LOG_STORE", json.dumps(connection))
    source = {
        "type": "files", "folder": root, "topics": ".*", "format": "debezium-json", "storage_connection": "log_store",
    }  # fmt: skip
    pipeline = CdcPipeline.from_dict({"name": "p", "source": source, "sink": {"root": "/lake"}})
    log = open_log(pipeline)
    assert log.ends([T]).highs == {T: {0: 0, 1: 2_011}} and log.namespace() == "s3://topics"
    config = log.client_config()
    assert config["AWS_SECRET_ACCESS_KEY"] == s3.secret_key
    public, secret = job_settings(pipeline, config)["kafka"]
    assert public["folder"] == root and not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} & public.keys()
    assert {**public, **secret} == config


def test_a_bucket_that_is_not_there_is_an_error_of_the_store(s3: S3) -> None:
    with pytest.raises(UnavailableError) as caught:
        TopicFiles("s3://nowhere-at-all/log", options=s3.storage_options).topics()
    assert caught.value.code == "files.unavailable"
