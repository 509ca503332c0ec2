# SPDX-License-Identifier: Apache-2.0
"""Start what the incidents happen on: an Airflow with the page, a broker, a pipeline with a DAG for each incident."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from airflow_provider_cdc.ledger import Ledger
from tests.airflow.live import LiveAirflow, connection
from tests.airflow.shop import ROOT, rows
from tests.histories.records import Record
from tests.services.broker import OwnBroker
from tests.services.postgres import Postgres

PATIENCE = 600
"""Seconds for a run of a DAG."""

FULL = "full"
"""The pipeline whose lake is on a small disk."""

ROTATED = "rotated_kafka"
"""The connection that is not in the environment, but in Airflow's database."""

DAGS = """
import os
from datetime import datetime, timedelta
from pathlib import Path
from airflow.sdk import DAG
from airflow_provider_cdc import CdcNotifier, CdcReceivedSensor, CdcSyncOperator

for file in Path(os.environ["PIPELINES"]).glob("*.yaml"):
    def send(text, name=file.stem):
        (file.parent / f"{name}.alarm").write_text(text)

    every = "* * * * *" if file.stem == "paused" else None
    alarm = CdcNotifier(pipeline=file, send=send)
    with DAG(file.stem, schedule=every, start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1):
        sync = CdcSyncOperator(task_id="sync", pipeline=file, until="now", lease_wait=timedelta(seconds=5),
                               poll_interval=2, on_failure_callback=alarm)
        if file.stem == "silent":
            received = CdcReceivedSensor(task_id="received", pipeline=file, poke_interval=2, timeout=20,
                                         until="{{ dag_run.run_after.isoformat() }}", on_failure_callback=alarm)
            received >> sync
"""


class Metrics:
    """Hear what Airflow sends to StatsD."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._heard: dict[str, str] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            for line in self._socket.recv(65536).decode(errors="replace").splitlines():
                name, _, value = line.partition(":")
                if ".cdc." in name and not value.endswith("|ms"):
                    self._heard[name.removeprefix("airflow.")] = value.partition("|")[0]

    def taken(self) -> str:
        """Return what was heard since the last look, durations left out."""
        heard, self._heard = self._heard, {}
        return ", ".join(f"{name} {value}" for name, value in heard.items())


class Ground:
    """Everything that the incidents happen on.

    :ivar folder: pipelines, their lakes, and the ledger of all of them.
    """

    def __init__(self, folder: Path, broker: OwnBroker, live: LiveAirflow, metrics: Metrics) -> None:
        self.folder, self.broker, self.live, self.metrics = folder, broker, live, metrics
        self.ledger_url = ledger_of(folder)
        self.ledger = Ledger(self.ledger_url)

    def feed(self, name: str, *records: Record) -> None:
        """Bring records into the topics of a pipeline."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for record in records:
            topic = record.topic.replace("src", name, 1)
            producer.produce(topic, partition=0, key=record.key, value=record.value)
        assert producer.flush(30) == 0

    def set_paused(self, name: str, paused: bool) -> None:
        """Pause a DAG, or let it go on, as soon as Airflow knows it."""
        self.live.wait(lambda: self.live._query("SELECT 1 FROM dag WHERE dag_id = %s", name), PATIENCE)
        self.live.call("PATCH", f"/dags/{name}", {"is_paused": paused})

    def runs(self, name: str, state: str) -> str:
        """Run a DAG to its end, and demand that it ends so; return its log."""
        self.set_paused(name, False)
        before = self.ended(name)
        self.live.call("POST", f"/dags/{name}/dagRuns", {"logical_date": None})
        self.live.wait(lambda: self.ended(name) > before, PATIENCE)
        query = "SELECT state FROM dag_run WHERE dag_id = %s AND end_date IS NOT NULL ORDER BY end_date DESC LIMIT 1"
        state_then, log = str(self.live._query(query, name)[0][0]), self.task_log(name)
        assert state_then == state, f"{name}: {state_then} instead of {state}\n{log[-3000:]}"
        return log

    def ended(self, name: str) -> int:
        """Return how many runs of a DAG have ended."""
        query = "SELECT count(*) FROM dag_run WHERE dag_id = %s AND state IN ('success', 'failed')"
        return int(self.live._query(query, name)[0][0])

    def task_log(self, name: str) -> str:
        """Return level and message of each line of the newest task's log."""
        files = (self.folder / "logs").glob(f"dag_id={name}/**/*.log")
        newest, lines = max(files, key=lambda file: file.stat().st_mtime), []
        for entry in map(json.loads, newest.read_text(errors="replace").splitlines()):
            lines.append(f"{entry.get('level', '')}: {entry.get('event', '')}")
            lines += [f"error: {one['exc_type']}: {one['exc_value']}" for one in entry.get("error_detail") or ()]
        return "\n".join(lines)

    def needs(self, name: str) -> list[dict[str, Any]]:
        """Return what the page says that a pipeline needs."""
        return list(self.live.get(f"/cdc/api/pipelines/{name}/needs")["needs"])

    def types(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as it is printed, where the pipelines are."""
        programs = {"airflow-cdc": "airflow_provider_cdc.cli", "airflow": "airflow"}
        words = re.sub(r"^(airflow-cdc|airflow) ", lambda m: f"{sys.executable} -m {programs[m[1]]} ", command)
        return subprocess.run(
            words, shell=True, cwd=self.folder, env=self.live.environment, capture_output=True, text=True
        )

    def define(self, settings: Mapping[str, Any]) -> None:
        """Store the connection in Airflow's database, in place of the one before."""
        command = [sys.executable, "-m", "airflow", "connections", "delete", ROTATED]
        subprocess.run(command, env=self.live.environment, capture_output=True)
        self.live._command("connections", "add", ROTATED, "--conn-json", connection(settings))

    def things(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a pipeline's only table."""
        return rows(self.folder / name / "lake", "shop", "things")


def ledger_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'ledger.db'}"


def write_pipeline(folder: Path, name: str, settings: Mapping[str, Any]) -> None:
    """Write the file of a pipeline, and make its lake's folder."""
    document: dict[str, Any] = {
        "name": name,
        "source": {
            "connection": "drill_kafka", "topics": [f"{name}.shop.things"], "format": "debezium-json",
            "schema_topic": name, "signal_topic": f"{name}.signals", **settings.get("source", {}),
        },
        "sink": {"type": "delta", "root": str(folder / name / "lake")},
        "policy": {"engine": "inline", **settings.get("policy", {})},
        "ledger": ledger_of(folder),
    }  # fmt: skip
    (folder / name / "lake").mkdir(parents=True)
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(document))


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Put a lake on a file system of four megabytes."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "drill", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def ground(pipelines: Mapping[str, Mapping[str, Any]]) -> Iterator[Ground]:
    """Start everything for some pipelines.

    :param pipelines: settings by name.
    """
    metrics = Metrics()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cdc-drill-")))
        postgres = Postgres()
        stack.callback(postgres.stop)
        broker = stack.enter_context(OwnBroker())
        for name, settings in pipelines.items():
            write_pipeline(folder, name, settings)
            broker.create_topics({name: 1, f"{name}.shop.things": 1, f"{name}.signals": 1})
        if FULL in pipelines:
            stack.enter_context(small_disk(folder / FULL / "lake"))
        (folder / "dags").mkdir()
        (folder / "dags" / "drill.py").write_text(DAGS)
        environment = {
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
            "PIPELINES": str(folder),
            "AIRFLOW_CONN_DRILL_KAFKA": connection({"bootstrap.servers": broker.bootstrap}),
            "AIRFLOW__CDC__PAGE_LEDGERS": ledger_of(folder),
            "AIRFLOW__METRICS__STATSD_ON": "True",
            "AIRFLOW__METRICS__STATSD_PORT": str(metrics.port),
        }
        live = stack.enter_context(LiveAirflow(postgres.new_database(), folder, environment))
        on = Ground(folder, broker, live, metrics)
        on.define(broker.sasl_settings())
        yield on
