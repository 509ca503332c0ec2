# SPDX-License-Identifier: Apache-2.0
"""The demo's course: a broker, Airflow, then hour by hour the shop's log, a DAG run and a comparison."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from airflow_provider_cdc.batch.result import stored_result, table_states
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from airflow_provider_cdc.demo.check import Verdict
from airflow_provider_cdc.demo.report import report
from airflow_provider_cdc.demo.screen import DemoScreen
from airflow_provider_cdc.demo.shop_log import Phase, ShopLog
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.sinks.pipeline_tables import PipelineTables
from tests.demo.check import compare
from tests.demo.feeding import feed
from tests.demo.process import DAGS, Airflow
from tests.services.broker import Broker, OwnBroker
from tests.sinks.kinds import sink_of

DAG_ID = "shop_hourly"


class Demo:
    """One run of the demo.

    :param engine: ``spark`` or ``inline``.
    :ivar sink: ``sink.type``.
    :param keep: whether the lake stays.
    :param hours: those after which the DAG runs, None for all.
    """

    def __init__(
        self,
        screen: DemoScreen,
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
        document["sink"] = {"type": self.sink, SINKS[self.sink].root_key: str(folder / "lake")}
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
            feed(broker, log, phase)
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
        assert batch is not None
        result = stored_result(batch)
        assert result is not None
        tables = sink_of(self.sink, folder / "lake")
        verdict = compare(folder / "lake", phase.truth, table_states(ledger, "shop").values(), tables)
        self.verdicts.append(verdict)
        report(self._screen, phase.end, result, verdict)

    def _clean(self, folder: Path) -> None:
        if not self._keep:
            shutil.rmtree(folder, ignore_errors=True)
            return
        for name in ("airflow", "tmp"):
            shutil.rmtree(folder / name, ignore_errors=True)
        self._screen.step("")
        self._screen.line(f"\nThe lake is kept at {folder / 'lake'}, Airflow's log next to it. To read a table:\n")
        pipeline = CdcPipeline.from_yaml(folder / "shop.yaml")
        for line in PipelineTables(pipeline, lambda sink: sink.options()).example("shop", "orders"):
            self._screen.line(f"    {line}")


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
