# SPDX-License-Identifier: Apache-2.0
"""Measure what an old pipeline costs: lake, ledger, and a small and an empty batch, after hundreds of hourly batches.

`make growth N=2000` runs a pipeline of 20 tables through so many batches of 5 changes a table, with `maintain` once a
day of 24 batches and a retention of 7 days. Batches run one after the other, so ages are made up before each
`maintain`: in the ledger when batches ended, in the logs of the tables when their files were written. Of the tables all
files go that the newest version does not have: delta-rs takes their age from the log itself. Prints lines of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from sqlalchemy import create_engine, text

from airflow_provider_cdc.batch import maintenance
from airflow_provider_cdc.batch.runner import run_batch
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import Maintenance
from tests.bench.measure import measure
from tests.services.broker import Broker

TABLES = [f"t{number}" for number in range(20)]
KEYS = 500
CHANGES = 5
DAY = 24
RETENTION = 7 * DAY
ROUNDS = 3
FIRST = 1_700_000_000_000


class OldPipeline:
    """A pipeline that runs batch after batch.

    :param folder: takes lake and ledger.
    """

    def __init__(self, folder: Path, broker: Broker) -> None:
        self.folder, self.ledger = folder, folder / "ledger.db"
        self.batches = 0
        os.environ["AIRFLOW_CONN_KAFKA_DEFAULT"] = json.dumps(
            {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.bootstrap}}
        )
        broker.create_topics({f"src.shop.{table}": 1 for table in TABLES})
        self._producer = Producer({"bootstrap.servers": broker.bootstrap})
        document = {
            "name": "shop",
            "source": {"connection": "kafka_default", "format": "debezium-json", "topics": "src.shop.*"},
            "sink": {"type": "delta", "root": str(folder / "lake")},
            "ledger": f"sqlite:///{self.ledger}",
            "policy": {"engine": "inline", "parallelism": 1, "log_retention": RETENTION // DAY},
            "tables": {
                f"shop.{table}": {"create": f"CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, v INT, s VARCHAR(40))"}
                for table in TABLES
            },
        }
        self.pipeline = CdcPipeline.from_dict(document)
        self.file = folder / "shop.yaml"
        self.file.write_text(self.pipeline.to_yaml())

    def feed(self) -> None:
        """Write the changes of an hour."""
        for table in TABLES:
            for number in range(CHANGES):
                key, position = (self.batches * CHANGES + number) % KEYS, self.batches * CHANGES + number + 1
                source = {
                    "version": "3.5", "connector": "mysql", "name": "src", "ts_ms": FIRST + position,
                    "snapshot": "false", "db": "shop", "table": table, "server_id": 1, "file": "bin.000001",
                    "pos": position, "row": 0,
                }  # fmt: skip
                row = {"id": key, "v": self.batches, "s": f"value {self.batches}"}
                op = "c" if self.batches * CHANGES < KEYS else "u"
                value = {"before": None, "after": row, "source": source, "op": op, "ts_ms": FIRST + position}
                self._producer.produce(f"src.shop.{table}", json.dumps(value), key=json.dumps({"id": key}))
        self._producer.flush(60)
        self.batches += 1

    def run(self) -> None:
        """Run the batch of an hour."""
        self.feed()
        result = run_batch(self.pipeline, say=lambda line: None)
        assert result.error is None and not result.parked, result

    def measured(self) -> float:
        """Return the CPU seconds of a batch by the command line."""
        command = [sys.executable, "-m", "airflow_provider_cdc.cli", "sync", str(self.file), "--json"]
        done = measure(command)
        assert done.code == 0, done.output
        return done.cpu

    def maintain(self) -> dict[str, Any]:
        """Run the maintenance of a day, as if the batches had come hour by hour."""
        now, newest = datetime.now(UTC), self._newest()
        with create_engine(f"sqlite:///{self.ledger}").begin() as connection:
            for (seq,) in connection.execute(text("SELECT seq FROM cdc_batches")).all():
                ended = (now - timedelta(hours=newest - seq)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                update = text("UPDATE cdc_batches SET committed_at = :ended WHERE seq = :seq")
                connection.execute(update, {"ended": ended, "seq": seq})
        for table in TABLES:
            logs = sorted((self.folder / "lake" / "shop" / table / "_delta_log").glob("0*"))
            for log in logs:
                if int(log.name[:20]) < int(logs[-1].name[:20]) - RETENTION:
                    os.utime(log, (time.time() - 40 * 86_400,) * 2)
        maintenance.Maintenance = _now  # type: ignore[assignment]
        done = maintenance.maintain(self.pipeline, say=lambda line: None)
        failed = [table.error for table in done.tables if table.error]
        assert not failed and not done.busy, (failed, done.busy)
        return maintenance.maintenance_document(self.pipeline, done)

    def _newest(self) -> int:
        with create_engine(f"sqlite:///{self.ledger}").connect() as connection:
            return int(connection.execute(text("SELECT max(seq) FROM cdc_batches")).scalar_one())

    def sample(self) -> dict[str, Any]:
        """Return costs and sizes; the batches that it measures count, too."""
        small, empty = [], []
        for _ in range(ROUNDS):
            self.feed()
            small.append(self.measured())
            empty.append(self.measured())
        own = self.folder / "lake" / "_cdc" / "shop"
        with create_engine(f"sqlite:///{self.ledger}").connect() as connection:
            pages = {name: connection.execute(text(f"PRAGMA {name}")).scalar_one() for name in _PAGES}
        return {
            "batches": self.batches,
            "small_cpu": round(min(small), 2),
            "empty_cpu": round(min(empty), 2),
            "log": _size(own / "log"),
            "jobs": _size(own / "jobs"),
            "tables": _size(self.folder / "lake" / "shop"),
            "ledger": self.ledger.stat().st_size,
            "ledger_used": pages["page_size"] * (pages["page_count"] - pages["freelist_count"]),
        }


_PAGES = ("page_size", "page_count", "freelist_count")


def _now(target_file_bytes: int, keep_hours: int, expire_through: int = 0) -> Maintenance:
    """Return an order after which tables have no files but those of their newest version."""
    return Maintenance(target_file_bytes, 0, expire_through)


def _size(folder: Path) -> list[int]:
    """Return bytes and number of the files in a folder."""
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    return [sum(sizes), len(sizes)]


def grow(folder: Path, samples: set[int]) -> None:
    """Run a pipeline and print a sample behind each of these batches."""
    with Broker() as broker:
        pipeline, maintained = OldPipeline(folder, broker), 0
        for sample in sorted(samples):
            while pipeline.batches < sample:
                pipeline.run()
                if pipeline.batches >= maintained + DAY:
                    maintained = pipeline.batches
                    print(json.dumps({"batches": maintained, "log": pipeline.maintain()["log"]}), flush=True)
            print(json.dumps(pipeline.sample()), flush=True)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth", description=__doc__)
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--folder", type=Path, help="takes lake and ledger (default: a temporary one)")
    options = parser.parse_args()
    samples = {batches for batches in (10, 100, 300, 700, 1000, 1500) if batches < options.batches} | {options.batches}
    with tempfile.TemporaryDirectory(prefix="cdc-growth-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        grow(folder, samples)


if __name__ == "__main__":
    main()
