# SPDX-License-Identifier: Apache-2.0
"""Apicurio's schema registry on this machine, that of the captures, with its content in memory."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import urllib.request
import zipfile
from functools import cache
from pathlib import Path

from airflow_provider_cdc.engine.jars import fetch, jar_cache
from airflow_provider_cdc.engine.java import find_java
from tests.services.process import SHORT_LIVED_JAVA, Server, free_port, listens

LOCK = Path(__file__).with_name("apicurio.lock")
_FLAGS = ["-Xmx300m", *SHORT_LIVED_JAVA.split()]


class Apicurio:
    """A registry that is ready when the constructor returns.

    :ivar url: of the interface that is Confluent's.
    """

    def __init__(self) -> None:
        java = find_java().executable
        (archive,) = fetch(LOCK, jar_cache(), java, lambda text: print(text, file=sys.stderr, flush=True))
        program = _unpacked(archive)
        self._folder = Path(tempfile.mkdtemp(prefix="cdc-apicurio-"))
        port = free_port()
        settings = [f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1"]
        self._server = Server(
            "Apicurio", [str(java), *_FLAGS, *settings, "-jar", str(program)], self._folder / "apicurio.log"
        )
        self._server.wait_until(lambda: listens(port), timeout=120)
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"

    def register(self, subject: str, schema: str, kind: str = "AVRO") -> int:
        """Register a schema; returns its id."""
        body = json.dumps({"schema": schema, "schemaType": kind}).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(f"{self.url}/subjects/{subject}/versions", body, headers, method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(json.load(answer)["id"])

    def stop(self) -> None:
        """Stop the server; what was registered is gone."""
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def _unpacked(archive: Path) -> Path:
    """Return the program of an archive, which is unpacked once."""
    target = archive.with_suffix("")
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=archive.parent) as folder, zipfile.ZipFile(archive) as content:
            content.extractall(folder)
            Path(folder, "done").mkdir()
            for entry in Path(folder).iterdir():
                if entry.name != "done":
                    entry.rename(Path(folder, "done", entry.name))
            Path(folder, "done").rename(target)
    (program,) = target.glob("*-runner.jar")
    return program


@cache
def shared_registry() -> Apicurio:
    """Return a registry that the process keeps."""
    return Apicurio()
