# SPDX-License-Identifier: Apache-2.0
"""The demo's course: a broker, Airflow, then hour by hour the shop's log, a DAG run and a comparison."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from airflow_provider_cdc.ledger import Ledger
from tests.demo.check import Verdict, compare
from tests.demo.process import DAGS, Airflow
from tests.demo.screen import HEAD, Screen
from tests.demo.shop_log import Phase, ShopLog
from tests.services.broker import Broker, OwnBroker
from tests.sinks.kinds import sink_of

DAG_ID = "shop_hourly"
_SHOWN_DDL = 8
_SHOWN_PROBLEMS = 5
_WIDTH = 100
_READ = {
    "delta": (
        "from deltalake import DeltaTable",
        'print(DeltaTable("{lake}/shop/orders").to_pyarrow_table())',
    ),
    "iceberg": (
        "from pyiceberg.catalog import load_catalog",
        'catalog = load_catalog("cdc", type="sql", uri="sqlite:///{lake}/catalog.db")',
        'print(catalog.load_table("shop.orders").scan().to_arrow())',
    ),
}
_NO_DDL = re.compile(r"^\s*(SET|USE)\b", re.IGNORECASE)


class Demo:
    """One run of the demo.

    :param engine: ``spark`` or ``inline``.
    :ivar sink: ``sink.type``.
    :param keep: whether the lake stays.
    :param hours: those after which the DAG runs, None for all.
    """

    def __init__(
        self,
        screen: Screen,
        engine: str = "spark",
        keep: bool = False,
        sink: str = "delta",
        hours: Sequence[int] | None = None,
    ) -> None:
        self._screen, self._hours = screen, hours
        self._engine, self.sink = engine, sink
        self._keep = keep
        self.verdicts: list[Verdict] = []
        self.folder: Path | None = None

    def run(self) -> bool:
        """Run it; return whether every table was equal every time."""
        with ExitStack() as stack:
            self.folder = folder = Path(tempfile.mkdtemp(prefix="cdc-demo-"))
            stack.callback(self._clean, folder)
            pipeline = self._pipeline(folder)
            self._screen.step("starting Airflow and a Kafka broker, reading the shop's log")
            airflow = Airflow(folder, DAG_ID, pipeline)
            stack.callback(airflow.stop)
            broker = stack.enter_context(OwnBroker())
            stack.callback(self._screen.step, "stopping Airflow and the broker")
            log = ShopLog()
            self._screen.step("Kafka is there, the log is read; Airflow is still starting")
            airflow.wait_until_ready()
            self._screen.line(f"Kafka broker and Airflow are up after {self._screen.elapsed:.0f} s.\n")
            self._screen.head()
            connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": broker.bootstrap}}
            for phase in log.phases:
                self._hour(phase, len(log.phases) - 1, log, broker, airflow, connection, folder)
        return all(verdict.complete for verdict in self.verdicts)

    def _pipeline(self, folder: Path) -> Path:
        """Write the example's pipeline with the demo's places."""
        document = yaml.safe_load((DAGS / "shop.yaml").read_text(encoding="utf-8"))
        root = {"delta": "root", "iceberg": "warehouse"}[self.sink]
        document["sink"] = {"type": self.sink, root: str(folder / "lake")}
        document["ledger"] = f"sqlite:///{folder / 'ledger.db'}"
        document["policy"]["engine"] = self._engine
        path = folder / "shop.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        return path

    def _hour(
        self,
        phase: Phase,
        last: int,
        log: ShopLog,
        broker: Broker,
        airflow: Airflow,
        connection: Mapping[str, Any],
        folder: Path,
    ) -> None:
        where = "snapshot" if phase.number == 0 else f"hour {phase.number} of {last}"
        say = self._screen.step
        say(f"{where}: feeding the log")
        with _stderr_to(folder / "kafka.log"):
            log.feed(broker, phase)
        if self._hours is not None and phase.number not in self._hours:
            return
        say(f"{where}: DAG run")
        airflow.run(
            phase.end,
            {"AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(connection)},
            lambda line: say(f"{where}: {line}"),
        )
        say(f"{where}: comparing with the database")
        ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
        batch = ledger.last("shop", "sync")
        reported = dict(batch.result or {}) if batch is not None else {}
        tables = sink_of(self.sink, folder / "lake")
        verdict = compare(folder / "lake", phase.truth, ledger.tables("shop").values(), tables)
        self.verdicts.append(verdict)
        self._report(phase, reported, verdict)

    def _report(self, phase: Phase, result: Mapping[str, Any], verdict: Verdict) -> None:
        changes = result["changes"]
        counts = [changes.get(name, 0) or "." for name in HEAD[2:7]]
        cells = [f"{phase.end:%H:%M}", result["records"], *counts, len(result["tables"]), f"{result['seconds']:.1f}"]
        words = f"{verdict.equal} of {len(verdict.problems)} tables, {verdict.rows} rows"
        self._screen.row(cells, words if verdict.complete else f"NO: {words}")
        for text in shown(result.get("statements", ())):
            self._screen.line(f"       DDL  {text}")
        for name, problems in verdict.problems.items():
            for problem in problems[:_SHOWN_PROBLEMS]:
                self._screen.line(f"       DIFFERS  {name}: {problem}")

    def _clean(self, folder: Path) -> None:
        if not self._keep:
            shutil.rmtree(folder, ignore_errors=True)
            return
        for name in ("airflow", "tmp"):
            shutil.rmtree(folder / name, ignore_errors=True)
        self._screen.step("")
        self._screen.line(f"\nThe lake is kept at {folder / 'lake'}, Airflow's log next to it. To read a table:\n")
        for line in _READ[self.sink]:
            self._screen.line(f"    {line.format(lake=folder / 'lake')}")


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Let librdkafka, which writes to the process's standard error, warn of a broker that is still warming up there."""
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
            yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def shown(statements: Sequence[str]) -> list[str]:
    """Return DDL as the demo prints it: shortened, or counted by kind where it is many statements."""
    texts = [" ".join(text.split()) for text in statements if not _NO_DDL.match(text)]
    if len(texts) > _SHOWN_DDL:
        kinds = Counter(" ".join(text.split()[:2]).upper() for text in texts)
        return [", ".join(f"{count} × {kind}" for kind, count in kinds.items())]
    return [text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…" for text in texts]
