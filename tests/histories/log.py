# SPDX-License-Identifier: Apache-2.0
"""A log in memory, and faults, in place of the broker.

The task reader is tested against a real broker elsewhere. Thousands of histories in minutes need a log that costs
nothing to fill and to read, so ``read_chunks`` is exchanged here, and only here; nothing else of the product is, but
that commits and documents fail where a history says so.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import spark_jobs.lake.change_log
import spark_jobs.sinks.delta.stored_files
import spark_jobs.tasks.land
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.lake.change_log import LogWriter
from spark_jobs.lake.storage import Storage
from spark_jobs.readers.task_reader import LOOK_BACK
from spark_jobs.sinks.delta import key_merge
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.iceberg import committing, row_removal
from spark_jobs.sinks.iceberg.batch_commit import BatchCommit
from tests.histories.records import Record

Partitions = dict[tuple[str, int], list[Record]]


class CrashError(BaseException):
    """The process died here; no exception, so that nothing handles it as an error of a table."""


@dataclass(frozen=True)
class Crash:
    """Name the moment in which an attempt dies.

    :param what: ``land``, ``manifest``, ``commit`` or ``result``.
    :param number: at which occurrence, from 1.
    :param after: after the deed, not before it.
    """

    what: str
    number: int = 1
    after: bool = False


@dataclass
class Log:
    """Hold what readers see, how the present attempt dies, and how many commits there were."""

    partitions: Partitions = field(default_factory=dict)
    crash: Crash | None = None
    commits: int = 0
    _seen: int = 0

    def arm(self, crash: Crash | None) -> None:
        """Begin an attempt that dies at ``crash``."""
        self.crash, self._seen = crash, 0

    def reached(self, what: str, deed: Callable[[], Any]) -> Any:
        """Do a deed, unless the attempt dies before or after it."""
        crash = self.crash
        if crash is None or crash.what != what:
            return deed()
        self._seen += 1
        if self._seen == crash.number and not crash.after:
            raise CrashError(what)
        answer = deed()
        if self._seen == crash.number:
            raise CrashError(what)
        return answer

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put this log in place of the broker, and the faults in place."""
        guarded, create_json, close = DeltaLocation.guarded, Storage.create_json, LogWriter.close

        def commit(location: DeltaLocation, action: Any) -> None:
            self.commits += 1
            self.reached("commit", lambda: guarded(location, action))

        def create(storage: Storage, name: str, data: Any) -> bool:
            document = name.rsplit("/", 1)[-1].removesuffix(".json")
            return bool(self.reached(document, lambda: create_json(storage, name, data)))

        monkeypatch.setattr(spark_jobs.tasks.land, "read_chunks", reader(self.partitions))
        settle = committing.settle

        def settled(*arguments: Any) -> None:
            self.commits += 1
            self.reached("commit", lambda: settle(*arguments))

        monkeypatch.setattr(DeltaLocation, "guarded", commit)
        at_once = BatchCommit._settled

        def settled_at_once(*arguments: Any) -> Exception | None:
            self.commits += 1
            problem: Exception | None = self.reached("commit", lambda: at_once(*arguments))
            return problem

        monkeypatch.setattr(committing, "settle", settled)
        monkeypatch.setattr(BatchCommit, "_settled", settled_at_once)
        for module in (key_merge, row_removal):  # of so small files most rows are gone at once
            monkeypatch.setattr(module, "_REWRITTEN", 0.8)
        monkeypatch.setattr(Storage, "create_json", create)
        monkeypatch.setattr(spark_jobs.lake.change_log, "_ROW_GROUP_BYTES", 4_000)  # so that tables have several
        monkeypatch.setattr(spark_jobs.sinks.delta.stored_files, "PIECE_BYTES", 300)  # a few rows at a time
        monkeypatch.setattr(LogWriter, "close", lambda writer: self.reached("land", lambda: close(writer)))


def reader(partitions: Partitions) -> Callable[..., Iterator[Records]]:
    """Return what reads chunks of this log, each in two pieces, those of all chunks mixed, as Kafka hands them out."""

    def read_chunks(
        chunks: Sequence[OffsetRange],
        config: dict[str, Any],
        *,
        deadline_seconds: float = 60.0,
        grouped: bool = False,
        headers: bool = False,
    ) -> Iterator[Records]:
        middles = [(chunk.start + chunk.end) // 2 for chunk in chunks]
        starts = [max(0, chunk.start - LOOK_BACK) if grouped else chunk.start for chunk in chunks]
        pieces = list(zip(chunks, starts, middles, strict=True))
        pieces += [(chunk, middle, chunk.end) for chunk, middle in zip(chunks, middles, strict=True)]
        for chunk, start, end in pieces:
            piece = partitions[chunk.topic, chunk.partition][start:end]
            if piece:
                yield Records(
                    chunk.topic,
                    chunk.partition,
                    list(range(start, end)),
                    [record.time for record in piece],
                    [record.key for record in piece],
                    [record.value for record in piece],
                    [record.headers for record in piece] if grouped or headers else [],
                )

    return read_chunks


def with_log(path: str, function: Callable[[Any], Any], item: Any) -> Any:
    """Run a task in a Spark worker, which reads the log from a file."""
    with Path(path).open("rb") as file:
        spark_jobs.tasks.land.read_chunks = reader(pickle.load(file))
    return function(item)


def save(partitions: Partitions, path: Path) -> None:
    """Write the log for :func:`with_log`."""
    path.write_bytes(pickle.dumps(partitions))
