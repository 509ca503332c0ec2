# SPDX-License-Identifier: Apache-2.0
"""The course of ``airflow-cdc demo``: hour by hour the shop's log grows, a batch runs, and the tables are compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.result import BatchResult, table_states
from airflow_provider_cdc.batch.runner import run_batch
from airflow_provider_cdc.connections.lookup import sink_options
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.config.reading import read_yaml
from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from airflow_provider_cdc.core.file_log.appending import append
from airflow_provider_cdc.core.file_log.line_kinds import FileRecord
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.demo.check import Verdict, compare
from airflow_provider_cdc.demo.report import report
from airflow_provider_cdc.demo.screen import DemoScreen
from airflow_provider_cdc.demo.shop_log import Phase, ShopLog, examples
from airflow_provider_cdc.ledger import Batch, Ledger
from airflow_provider_cdc.reporting.reporter import SILENCE, Reporter
from airflow_provider_cdc.sinks.contract import UnreadableTableError
from airflow_provider_cdc.sinks.pipeline_tables import PipelineTables

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_cdc.core.documents import TableState
    from airflow_provider_cdc.engine.stopper import Stopper
    from airflow_provider_cdc.sources.kafka_reading import KafkaRecord


@dataclass(frozen=True)
class Hour:
    """Hold what came of one hour.

    :param result: of its batch.
    :param verdict: what the comparison with the database found.
    """

    phase: Phase
    result: BatchResult
    verdict: Verdict

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "until": self.phase.end.isoformat(),
            "title": self.phase.title,
            "records": self.result.records,
            "changes": self.result.changes,
            "statements": list(self.result.statements or ()),
            "seconds": self.result.seconds,
            "rows": self.verdict.rows,
            "tables": len(self.verdict.problems),
            "equal": self.verdict.equal,
            "differs": {name: problems for name, problems in self.verdict.problems.items() if problems},
        }


class ShopStory:
    """One run of the demo.

    :param folder: an empty one, which gets the log, the lake, the ledger and the pipeline's file.
    :param sink: ``sink.type``.
    :param engine: ``policy.engine``.
    """

    def __init__(self, folder: Path, sink: str, engine: str, screen: DemoScreen) -> None:
        self.folder, self.sink, self._engine, self._screen = folder, sink, engine, screen
        self.log, self.lake, self.file = folder / "log", folder / "lake", folder / "shop.yaml"
        self.pipeline = self._written()
        self._ledger = Ledger(self.pipeline.ledger)
        self._tables = PipelineTables(self.pipeline, sink_options)

    def _written(self) -> CdcPipeline:
        """Write the example's pipeline with files as its source, and the demo's places."""
        document = read_yaml((examples() / "shop.yaml").read_text(encoding="utf-8"))
        source = {key: value for key, value in document["source"].items() if key != "connection"}
        document["source"] = {"type": "files", "folder": str(self.log), **source}
        document["sink"] = {"type": self.sink, SINKS[self.sink].root_key: str(self.lake)}
        document["ledger"] = f"sqlite:///{self.folder / 'ledger.db'}"
        document["policy"] = {**document["policy"], "engine": self._engine}
        pipeline = CdcPipeline.from_dict(document)
        self.file.write_text(pipeline.to_yaml(), encoding="utf-8")
        return pipeline

    def example(self) -> list[str]:
        """Return lines of Python that read a table."""
        return self._tables.example("shop", "orders")

    def hours(self, kill: Stopper, log: ShopLog) -> list[Hour]:
        """Run all hours; return what came of them.

        :param kill: stops the running batch.
        :raises CdcError: a batch failed.
        """
        self._screen.head()
        return [self._hour(phase, log, kill) for phase in log.phases]

    def _hour(self, phase: Phase, log: ShopLog, kill: Stopper) -> Hour:
        where = "snapshot" if phase.number == 0 else f"hour {phase.number} of {len(log.phases) - 1}"
        say: Callable[[str], None] = lambda line: self._screen.step(f"{where}: {line}")  # noqa: E731
        with Reporter(say, SILENCE, say if self._screen.moves else None).at_work() as reporter:
            say("the log grows")
            self.feed(phase, log)
            result = run_batch(self.pipeline, until=phase.end, say=reporter, kill=kill)
            if result.error is not None:
                raise result.error
            say("comparing with the database")
            verdict = self.verdict(phase)
        report(self._screen, phase.end, result, verdict)
        return Hour(phase, result, verdict)

    def feed(self, phase: Phase, log: ShopLog) -> None:
        """Let the log grow by an hour."""
        append(self.log, map(line_of, log.hour(phase)))

    def verdict(self, phase: Phase) -> Verdict:
        """Compare the tables with what the database held at the end of an hour."""
        states = table_states(self._ledger, self.pipeline.name).values()
        named = {(state.database, state.table): state for state in states if state.state != TableStatus.DROPPED}
        return compare(partial(self._rows_of, named), phase.truth, states)

    def followed(self, last: Phase) -> Iterator[Batch]:
        """Yield the batches that somebody else runs as they are committed, up to the end of an hour."""
        seq, until = 0, None
        while until != last.end:
            time.sleep(1)
            for batch in self._ledger.batches(self.pipeline.name, after=seq):
                if batch.committed:
                    seq, until = batch.seq, batch.until
                    yield batch

    def _rows_of(self, states: dict[tuple[str, str], TableState], database: str, table: str) -> pa.Table | None:
        state = states.get((database, table))
        try:
            return None if state is None else self._tables.newest(state).rows()
        except UnreadableTableError:
            return None


def line_of(record: KafkaRecord) -> tuple[str, int, FileRecord]:
    """Return topic, partition and the record itself, as files have them."""
    headers = None if record.headers is None else list(record.headers)
    line = FileRecord(record.offset, record.timestamp_ms, record.key, record.value, headers)
    return record.topic, record.partition, line
