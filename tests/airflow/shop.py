# SPDX-License-Identifier: Apache-2.0
"""The shop's log in a broker of its own, and the command line as other programs call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from tests.services.broker import Broker

ROOT = Path(__file__).parents[2]
DATA = ROOT / "example_dags" / "shop_data"
PHASES = json.loads((DATA / "meta.json").read_text())["phases"] if (DATA / "meta.json").is_file() else []


def demand_data() -> None:
    """Skip where the recorded log is not part of the checkout."""
    if not (DATA / "records.jsonl.xz").is_file():
        pytest.skip("example_dags/shop_data is not there")


def feed(broker: Broker, first: int, last: int) -> int:
    """Bring the records of some phases into the broker; returns how many."""
    from tests.services import capture

    start = PHASES[first - 1]["end_offsets"] if first else {}
    end = PHASES[last]["end_offsets"]

    def within(record: capture.Record) -> bool:
        low = start.get(record.topic, [0] * 9)[record.partition] if record.topic in start else 0
        return low <= record.offset < (end[record.topic][record.partition] if record.topic in end else 0)

    selected = [record for record in capture.read(DATA) if within(record)]
    return capture.replay(broker, selected, capture.partitions_of(DATA))


def until(phase: int) -> str:
    """Return a time at which everything of a phase and nothing of the next is committed."""
    return str(PHASES[phase]["window_end"])


def event_log(folder: Path) -> dict[str, Any]:
    """Return properties with which Spark writes its event log into a folder, and hides nothing that it would hide."""
    (folder / "events").mkdir(parents=True)
    return {
        "spark.eventLog.enabled": True,
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": False,
        "spark.redaction.regex": "nothing",
    }


@dataclass
class Answer:
    """Hold the answer of a command, after ``wall`` seconds."""

    code: int
    out: str
    err: str
    wall: float

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Shop:
    """A pipeline file in a folder of its own.

    :param connection: extra of its Kafka connection.
    """

    folder: Path
    connection: Mapping[str, Any]
    changes: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.db"

    def document(self) -> dict[str, Any]:
        """Return the pipeline as plain data."""
        base: dict[str, Any] = {
            "name": "shop",
            "source": {
                "connection": "shop_kafka",
                "topics": r"shopdb\.shop\..*",
                "format": "debezium-json",
                "schema_topic": "shopdb",
                "heartbeat_topic": "__debezium-heartbeat.shopdb",
            },
            "sink": {"type": "delta", "root": str(self.lake)},
            "policy": {"engine": "inline"},
            "ledger": f"sqlite:///{self.ledger}",
        }
        for section, values in self.changes.items():
            base[section] = {**base[section], **values} if isinstance(base.get(section), dict) else values
        return base

    def file(self) -> Path:
        """Write the pipeline's YAML."""
        path = self.folder / "shop.yaml"
        path.write_text(yaml.safe_dump(self.document()))
        return path

    def env(self) -> dict[str, str]:
        """Return the environment of a command."""
        conn = json.dumps({"conn_type": "kafka", "extra": dict(self.connection)})
        mine = {"AIRFLOW_CONN_SHOP_KAFKA": conn, "PYTHONPATH": str(ROOT), "AIRFLOW_HOME": str(self.folder / "home")}
        return {**os.environ, **mine, **self.environment}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command on the pipeline."""
        verb, *rest = arguments
        command = [sys.executable, "-m", "airflow_provider_cdc.cli", verb, str(self.file()), *rest]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env(), cwd=self.folder
        )

    def run(self, *arguments: str) -> Answer:
        """Run a command on the pipeline to its end, in a fork (:mod:`tests.services.forked`)."""
        from tests.services import forked

        started = time.monotonic()
        verb, *rest = arguments
        ended = forked.run([verb, str(self.file()), *rest], self.env(), self.folder)
        return Answer(*ended, time.monotonic() - started)


def rows(lake: Path, database: str, table: str) -> list[dict[str, Any]]:
    """Return a Delta table's rows."""
    from deltalake import DeltaTable

    return list(DeltaTable(str(lake / database / table)).to_pyarrow_table().to_pylist())


def commits(lake: Path) -> dict[str, int]:
    """Return the number of commits of each table."""
    counts: dict[str, int] = {}
    for entry in lake.rglob("_delta_log/*.json"):
        table = str(entry.parent.parent.relative_to(lake))
        counts[table] = counts.get(table, 0) + 1
    return counts
