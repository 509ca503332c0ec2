# SPDX-License-Identifier: Apache-2.0
"""Kafka Connect on this machine, one worker with Debezium's PostgreSQL connector in it."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path

from airflow_provider_cdc.engine.jars import fetch, jar_cache
from airflow_provider_cdc.engine.java import find_java
from tests.services.process import SHORT_LIVED_JAVA, Server, Service, free_port

LOCK = Path(__file__).with_name("connect.lock")
_FLAGS = ["-Xmx400m", *SHORT_LIVED_JAVA.split(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
_WORKER = """\
bootstrap.servers={bootstrap}
listeners=http://127.0.0.1:{port}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=1000
plugin.discovery=service_load
"""


class Connect(Service):
    """A worker that is ready when the constructor returns, and without connectors.

    :param bootstrap: of the broker that it writes to.
    :ivar url: of its REST interface.
    """

    def __init__(self, bootstrap: str) -> None:
        java = find_java().executable
        jars = fetch(LOCK, jar_cache(), java, lambda text: print(text, file=sys.stderr, flush=True))
        self._folder = Path(tempfile.mkdtemp(prefix="cdc-connect-"))
        port = free_port()
        worker = self._folder / "worker.properties"
        worker.write_text(_WORKER.format(bootstrap=bootstrap, port=port, folder=self._folder))
        program = ["-cp", ":".join(map(str, jars)), "org.apache.kafka.connect.cli.ConnectStandalone", str(worker)]
        self._server = Server("Kafka Connect", [str(java), *_FLAGS, *program], self._folder / "connect.log")
        self.url = f"http://127.0.0.1:{port}"
        self._server.wait_until(self._answers, timeout=120)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/connectors", timeout=10):
            return True
        return False

    @property
    def running(self) -> bool:
        return self._server.running

    def stop(self) -> None:
        """Stop the worker; what its connectors made at the source stays."""
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
