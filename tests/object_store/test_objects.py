# SPDX-License-Identifier: Apache-2.0
"""Objects on a local disk and on S3; those of other stores are in ``test_other_stores.py``."""

from __future__ import annotations

import errno
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from airflow_provider_cdc.core.lake.object_store import open_objects
from tests.object_store.objects_contract import LEFT, left_by_contract
from tests.services.s3 import S3


def test_a_local_disk_keeps_the_contract(tmp_path: Path) -> None:
    assert left_by_contract(open_objects(str(tmp_path / "lake"), {})) == LEFT


def test_s3_keeps_the_contract(s3: S3) -> None:
    assert left_by_contract(open_objects(f"{s3.create_bucket('objects')}/a lake", s3.storage_options)) == LEFT


def test_a_disk_without_links_has_one_creator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", refuse)
    assert left_by_contract(open_objects(str(tmp_path), {})) == LEFT


def test_folders_above_go_only_where_they_are_empty(tmp_path: Path) -> None:
    objects = open_objects(str(tmp_path), {})
    for name in ("a/b/c/1.bin", "a/other.bin", "x/y/2.bin"):
        objects.put(name, b"")
    (tmp_path / "a" / "of somebody").mkdir()
    objects.delete_all("a/b/c", traces=True)
    objects.delete_all("x/y", traces=True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "of somebody", "other.bin"]


def test_the_bucket_may_be_a_part_of_the_host_s_name() -> None:
    paths: list[str] = []

    class Recorder(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Recorder) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_ALLOW_HTTP": "true"}
        options = {**keys, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}"}
        for virtual in ({}, {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}):
            assert open_objects("s3://bucket/lake", options | virtual).read("claim.json") is None
        server.shutdown()
    assert paths == ["/bucket/lake/claim.json", "/lake/claim.json"]
