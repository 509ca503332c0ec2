# SPDX-License-Identifier: Apache-2.0
"""Measure what an old pipeline costs: lake, ledger, and a small and an empty batch, after hundreds of hourly batches.

`make growth N=2000` runs a pipeline of 20 tables through so many batches of 5 changes a table, with `maintain` once a
day of 24 batches and a retention of 7 days. At some numbers of batches it measures batches of this pipeline and, by
turns with them, of one that has 5 batches: other work on the machine changes both. At 98 batches it is a pipeline that
was never maintained, as one that runs each minute is most of the time. Prints lines of JSON.

Batches run one after the other, so ages are made up before each `maintain`: in the ledger when batches ended, in the
logs of the tables when their files were written. The tables forget removed files after some minutes in place of
Delta's week, and their files go at once: delta-rs takes these ages from the log itself.
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
from deltalake import DeltaTable
from sqlalchemy import create_engine, text

from airflow_provider_cdc.batch import maintenance
from airflow_provider_cdc.batch.runner import run_batch
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import Maintenance
from tests.bench import results
from tests.bench.measure import measure
from tests.services.broker import Broker, OwnBroker

TABLES = [f"t{number}" for number in range(20)]
KEYS = 500
CHANGES = 5
DAY = 24
RETENTION = 7 * DAY
ROUNDS = 5
YOUNG = 5
UNMAINTAINED = 98
FIRST = 1_700_000_000_000


class OldPipeline:
    """A pipeline that runs batch after batch.

    :param folder: takes lake and ledger; its name is the first part of the topics' names.
    :param changes: of each table in a batch.
    :param maintained: whether it is maintained once a day.
    :param sections: of the pipeline, in place of its own.
    """

    def __init__(
        self,
        folder: Path,
        broker: Broker,
        changes: int = CHANGES,
        *,
        maintained: bool = True,
        **sections: dict[str, Any],
    ) -> None:
        folder.mkdir(parents=True)
        self._changes, self._is_maintained = changes, maintained
        self.folder, self.ledger, self._prefix = folder, folder / "ledger.db", folder.name
        self.batches = self._maintained = 0
        os.environ["AIRFLOW_CONN_KAFKA_DEFAULT"] = json.dumps(
            {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.bootstrap}}
        )
        broker.create_topics({f"{self._prefix}.shop.{table}": 1 for table in TABLES})
        self._producer = Producer({"bootstrap.servers": broker.bootstrap})
        document = {
            "name": "shop",
            "source": {"connection": "kafka_default", "format": "debezium-json", "topics": f"{self._prefix}.shop.*"},
            "sink": {"type": "delta", "root": str(folder / "lake")},
            "ledger": f"sqlite:///{self.ledger}",
            "policy": {"engine": "inline", "parallelism": 1, "log_retention": RETENTION // DAY},
            "tables": {
                f"shop.{table}": {"create": f"CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, v INT, s VARCHAR(40))"}
                for table in TABLES
            },
            **sections,
        }
        self.pipeline = CdcPipeline.from_dict(document)
        self.file = folder / "shop.yaml"
        self.file.write_text(self.pipeline.to_yaml())

    def feed(self) -> None:
        """Write the changes of an hour."""
        for table in TABLES:
            for number in range(self._changes):
                count = self.batches * self._changes + number
                key, position = count % KEYS, count + 1
                source = {
                    "version": "3.5", "connector": "mysql", "name": "src", "ts_ms": FIRST + position,
                    "snapshot": "false", "db": "shop", "table": table, "server_id": 1, "file": "bin.000001",
                    "pos": position, "row": 0,
                }  # fmt: skip
                row = {"id": key, "v": self.batches, "s": f"value {self.batches}"}
                op = "c" if count < KEYS else "u"
                value = {"before": None, "after": row, "source": source, "op": op, "ts_ms": FIRST + position}
                self._producer.produce(f"{self._prefix}.shop.{table}", json.dumps(value), key=json.dumps({"id": key}))
        self._producer.flush(60)
        self.batches += 1

    def run_to(self, batches: int) -> OldPipeline:
        """Run batch after batch up to a number of them, and maintenance once a day."""
        while self.batches < batches:
            self.feed()
            result = run_batch(self.pipeline, say=lambda line: None)
            assert result.error is None and not result.parked, result
            if self.batches == 1:
                for table in TABLES:
                    DeltaTable(self.folder / "lake" / "shop" / table).alter.set_table_properties(_FORGETFUL)
            if self._is_maintained and self.batches >= self._maintained + DAY:
                self._maintained = self.batches
                print(json.dumps({"batches": self.batches, "log": self.maintain()["log"]}), flush=True)
        return self

    def costs(self) -> tuple[float, float]:
        """Return the CPU seconds of a small and of an empty batch by the command line."""
        self.feed()
        command = [sys.executable, "-m", "airflow_provider_cdc.cli", "sync", str(self.file), "--json"]
        runs = [measure(command), measure(command)]
        assert not any(run.code for run in runs), runs
        return runs[0].cpu, runs[1].cpu

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

    def sizes(self) -> dict[str, Any]:
        """Return bytes and numbers of files."""
        own = self.folder / "lake" / "_cdc" / "shop"
        with create_engine(f"sqlite:///{self.ledger}").connect() as connection:
            pages = {name: connection.execute(text(f"PRAGMA {name}")).scalar_one() for name in _PAGES}
        return {
            "log": _size(own / "log"),
            "jobs": _size(own / "jobs"),
            "tables": _size(self.folder / "lake" / "shop"),
            "ledger": self.ledger.stat().st_size,
            "ledger_used": pages["page_size"] * (pages["page_count"] - pages["freelist_count"]),
        }


def compared(old: OldPipeline, young: OldPipeline) -> dict[str, Any]:
    """Return the costs of batches of two pipelines, measured by turns."""
    costs = {pipeline: [pipeline.costs()] for pipeline in (young, old)}
    for _ in range(ROUNDS - 1):
        for pipeline, each in costs.items():
            each.append(pipeline.costs())
    young_small, young_empty = (round(min(values), 2) for values in zip(*costs[young], strict=True))
    small, empty = (round(min(values), 2) for values in zip(*costs[old], strict=True))
    return {"small_cpu": [young_small, small], "empty_cpu": [young_empty, empty]}


_FORGETFUL = {"delta.deletedFileRetentionDuration": "interval 240 seconds"}
_PAGES = ("page_size", "page_count", "freelist_count")


def _now(target_file_bytes: int, keep_hours: int, expire_through: int = 0) -> Maintenance:
    """Return an order after which tables have no files but those of their newest version."""
    return Maintenance(target_file_bytes, 0, expire_through)


def _size(folder: Path) -> list[int]:
    """Return bytes and number of the files in a folder."""
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    return [sum(sizes), len(sizes)]


def grow(folder: Path, samples: set[int], file: Path) -> None:
    """Run a pipeline; print a sample behind each of these batches, and add it to a file of figures."""
    stamp = results.stamp()
    with OwnBroker() as broker:
        old = OldPipeline(folder / "old", broker)
        never = OldPipeline(folder / "never", broker, maintained=False)
        for sample in sorted(samples):
            pipeline = (never if sample == UNMAINTAINED else old).run_to(sample)
            young = OldPipeline(folder / f"young{sample}", broker).run_to(YOUNG)
            figures = {"batches": pipeline.batches, **compared(pipeline, young), **pipeline.sizes()}
            print(json.dumps(figures), flush=True)
            results.add(file, growth=[{**figures, "batches": sample, **stamp}])


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth", description=__doc__)
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--folder", type=Path, help="takes lake and ledger (default: a temporary one)")
    parser.add_argument(
        "--json", type=Path, default=results.FILE, help=f"takes the figures (default {results.FILE.name})"
    )
    options = parser.parse_args()
    usual = (10, UNMAINTAINED, 300, 700, 1000, 1500)
    samples = {batches for batches in usual if batches < options.batches} | {options.batches}
    with tempfile.TemporaryDirectory(prefix="cdc-growth-") as temporary:
        grow(options.folder or Path(temporary), samples, options.json)


if __name__ == "__main__":
    main()
