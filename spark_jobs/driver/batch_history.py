# SPDX-License-Identifier: Apache-2.0
"""Read the earlier batches from the change log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.config import TargetRule
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.model.clock_position import reaches
from airflow_provider_cdc.core.timeline.asked_changes import AskedChange
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.driver.generations import Generations
from spark_jobs.lake.folded_batches import FoldedBatches, folded_meanwhile, folded_range, folded_through, read_folded
from spark_jobs.lake.layout import batch_document
from spark_jobs.lake.manifest import Manifest, RowGroup, Unreadable
from spark_jobs.lake.row_groups import read_groups
from spark_jobs.lake.storage import Storage
from spark_jobs.lake.stored_result import StoredResult, UnfitRow


def _no_rows(groups: Sequence[RowGroup], columns: Sequence[str]) -> pa.Table:
    raise NotImplementedError("this history is of documents alone")


@dataclass(slots=True)
class History:
    """The batches before this one, read only as far as needed.

    Old ones may be folded: then ``earlier`` has those of them that stand for tables.

    :param manifest: gives a batch's manifest.
    :param result: gives a batch's result.
    :param rows: reads columns of row groups.
    :param folded_states: gives batch and state of tables, ascending, of folded batches.
    """

    earlier: Sequence[int]
    manifest: Callable[[int], Manifest]
    result: Callable[[int], StoredResult]
    rows: Callable[[Sequence[RowGroup], Sequence[str]], pa.Table] = _no_rows
    folded_states: Callable[[], Sequence[tuple[int, TableState]]] = tuple

    def deferred(self) -> list[dict[str, Any]]:
        """Return the schema changes that were read but were too late for the batches so far."""
        return list(self.result(self.earlier[-1]).result.deferred) if self.earlier else []

    def generations(self) -> Generations:
        """Return the generations of the source's log that the earlier batches show."""
        return Generations.from_document(self.result(self.earlier[-1]).source_log if self.earlier else ())

    def settled(self) -> list[dict[str, Any]]:
        """Return documents of the quarantined records that operators settled (``Settled``)."""
        return list(self.result(self.earlier[-1]).settled) if self.earlier else []

    def unreadable(self) -> list[Unreadable]:
        """Return the undecodable records that the batches so far have, as far as no operator had settled them."""
        return [Unreadable(**one) for one in self.result(self.earlier[-1]).unreadable] if self.earlier else []

    def topics(self) -> dict[str, list[list[str]]]:
        """Return the tables whose rows each partition had (``StoredResult.topics``)."""
        return self.result(self.earlier[-1]).topics if self.earlier else {}

    def left_out(self) -> list[tuple[int, UnfitRow]]:
        """Return batch and row of the rows that tables lack because they do not fit."""
        return self.result(self.earlier[-1]).left_out if self.earlier else []

    def name_options(self) -> dict[str, str] | None:
        """Return the options of the source that decided names of tables, None where no batch says it."""
        return self.result(self.earlier[-1]).name_options if self.earlier else None

    def target_rules(self) -> list[TargetRule]:
        """Return the rules of ``target`` of the batch before."""
        documents = self.result(self.earlier[-1]).target_rules if self.earlier else []
        return [TargetRule.from_document(rule) for rule in documents]

    def formats(self) -> list[list[Any]]:
        """Return the formats that batches were read in (``StoredResult.formats``)."""
        return self.result(self.earlier[-1]).formats if self.earlier else []

    def commits(self) -> dict[str, Any]:
        """Return the transactions that lack changes so far (``StoredResult.commits``)."""
        return self.result(self.earlier[-1]).commits if self.earlier else {}

    def asked(self) -> list[AskedChange]:
        """Return the schema changes that the policy of a table asked about, with what was decided."""
        return [AskedChange.from_document(one) for one in self.result(self.earlier[-1]).asked] if self.earlier else []

    def log_names(self) -> dict[str, str]:
        """Return the names of the logs that all earlier batches read, with the first record of each."""
        return dict(self.result(self.earlier[-1]).log_names) if self.earlier else {}

    def last_records(self) -> dict[str, list[Any]]:
        """Return the last record of each partition that earlier batches read (``LandReport.last_records``)."""
        return dict(self.result(self.earlier[-1]).last_records) if self.earlier else {}

    def newest_position(self) -> str:
        """Return the newest position of all earlier batches."""
        return self._reached(self.earlier[-1]) if self.earlier else ""

    def clocks(self) -> list[list[Any]]:
        """Return the clocks of all partitions as the earlier batches left them."""
        return list(self.result(self.earlier[-1]).clocks) if self.earlier else []

    def newest_source_time(self) -> int | None:
        """Return the newest source time of the rows of all earlier batches, in microseconds since the epoch."""
        return self._source_time(self.earlier[-1]) if self.earlier else None

    def since_source_time(self, time: int) -> list[int]:
        """Return the batches that may hold rows of a source time or later ones, ascending."""
        seqs: list[int] = []
        for seq in reversed(self.earlier):
            newest = self._source_time(seq)
            if newest is None or newest < time:
                break
            seqs.append(seq)
        return seqs[::-1]

    def _source_time(self, seq: int) -> int | None:
        return self.result(seq).newest_source_time

    def _reached(self, seq: int) -> str:
        return self.result(seq).max_position

    def since(self, position: str) -> list[int]:
        """Return the batches that may hold rows at or after a position, ascending."""
        seqs: list[int] = []
        for seq in reversed(self.earlier):
            if self._reached(seq) < position:  # newest position of this batch and all before it
                break
            seqs.append(seq)
        return seqs[::-1]

    def state_before(
        self, timeline: TableTimeline, position: str, seqs: range, whole: Callable[[TableState], bool]
    ) -> TableState | None:
        """Return a table's newest state, of some batches, that holds nothing from a position on.

        A state made before a late schema change became known is none to go back to.

        :param seqs: the batches.
        :param whole: says whether a state holds all that its batches have of the table, as it is known now.
        """
        for seq, state in self._states(seqs):
            if state.table_id != timeline.table_id or state.version is None or state.applied_seq != seq:
                continue
            applied = state.applied_position
            known = state.timeline_mark == timeline.mark(applied)
            if known and not reaches(applied, position) and whole(state):
                return state
        return None

    def _states(self, seqs: range) -> Iterator[tuple[int, TableState]]:
        """Yield the states that batches left, of the newest batch first."""
        for seq in reversed([seq for seq in self.earlier if seq in seqs]):
            yield from ((seq, state) for state in self.result(seq).result.states)  # none of folded batches
        yield from ((seq, state) for seq, state in reversed(self.folded_states()) if seq in seqs)


def demand_document(job: JobDocument, storage: Storage, seq: int, kind: str) -> dict[str, Any]:
    """Return the manifest or the result of an earlier batch.

    :raises SinkError: ``log.missing``.
    :raises BusyError: ``log.folded``, maintenance made it part of another document since the job began.
    """
    content = storage.read_json(batch_document(job.pipeline, seq, kind))
    if content is None and folded_through(storage, job.pipeline) >= seq:
        raise folded_meanwhile(storage, job.pipeline)
    if content is None:
        raise SinkError(
            "log.missing",
            f"the change log lacks batch {seq}, which the ledger has as committed",
            where={"root": job.lake_root, "pipeline": job.pipeline},
            hint="is the right lake mounted? restore its _cdc folder, or rebuild the pipeline under another name",
        )
    return dict(content)


def history_of(job: JobDocument, storage: Storage) -> History:
    """Return the batches before a job's, as the change log has them.

    :raises SinkError: the log lacks one that the ledger has as committed.
    :raises BusyError: ``log.folded``.
    """
    old = folded_range(storage, job.pipeline)
    earlier = [*old.batches, *(seq for seq in job.earlier if seq > old.through)]

    @cache
    def folded() -> FoldedBatches:
        return read_folded(storage, job.pipeline, old.through)

    @cache
    def result(seq: int) -> StoredResult:
        if seq <= old.through:
            return folded().result
        return StoredResult.from_document(demand_document(job, storage, seq, "result"))

    @cache
    def manifest(seq: int) -> Manifest:
        if seq <= old.through:
            return folded().manifest(seq)
        return Manifest.from_document(demand_document(job, storage, seq, "manifest"))

    def folded_states() -> list[tuple[int, TableState]]:
        return folded().states if old.through else []

    return History(earlier, manifest, result, partial(read_groups, storage), folded_states)
