# SPDX-License-Identifier: Apache-2.0
"""Decide what contradictions between the log and a stored table mean: the table is parked, or they are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from airflow_provider_cdc.core.apply.contradictions import (
    KEY_MISSING,
    KEY_THERE,
    LOAD_OVERLAP,
    ROW_DIFFERS,
    SEQUENCE_GAP,
    Findings,
    GapWitness,
    Verification,
)
from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.apply.record_keys import is_unproven
from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.config.verify import sampled_share
from airflow_provider_cdc.core.documents import JobDocument, Proof
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.shapes.shape import PLAIN, Shape
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.tasks.table_task import ApplyTask

_SENTENCES = {
    KEY_THERE: "a row was inserted whose key another row has",
    KEY_MISSING: "a row was updated or deleted that is not in the table",
    LOAD_OVERLAP: "a row changed while the full load was read, which may have the change: no key decides it",
    SEQUENCE_GAP: "a change is missing that its transaction had before this one",
    ROW_DIFFERS: "a row was changed whose values before the change are not those of the table",
}


def verification_of(
    policy: RunPolicy, job: JobDocument, task: ApplyTask, wire: Format, shape: Shape = PLAIN
) -> Verification | None:
    """Return how far a table's changes are compared with the rows that they find, None for not at all.

    :param policy: of the table.
    :param shape: the rows of a mirror alone, and only all of them, are those that the changes found.
    """
    # what is not there may be left out by the filter; an operator's files may have some of the changes
    if task.begins_with_files or shape.filters or not shape.mode.is_mirror:
        return None
    partitions = [f"{topic}/{partition}" for topic, ends in job.end.items() for partition in ends]
    base_time = None if task.base is None else task.base.source_time
    loaded, lacked = loaded_until(task, wire), "" if task.base is None else task.base.proof.lacked
    of_table = Verification(
        marks=job.marks, partitions=partitions, loaded_until=loaded, lacked=lacked, base_time=base_time
    )
    match policy.verify:
        case "off":
            return None
        case "touched":
            return of_table
        case verify:
            return replace(of_table, share=sampled_share(verify) or 1.0, whole=True)


def loaded_until(task: ApplyTask, wire: Format) -> int:
    """Return Kafka's time of the newest row of a table's full load (``Proof.loaded_until``)."""
    known = 0 if task.base is None else task.base.proof.loaded_until
    if "younger_snapshots" in wire.carries:  # an earlier table of the name may have had a snapshot, too
        of_spans = ((span.start, one) for span in task.spans for group in span.groups for one in group.snapshots)
        return max([known, *(sent for start, (position, sent) in of_spans if position >= start)])
    if wire.snapshot_rows == "shared":
        return 0
    return max([known, *(group.loaded_until for span in task.spans for group in span.groups)])


def proof_after(task: ApplyTask, wire: Format, position: str, findings: Findings, *, compared: bool) -> Proof:
    """Return how far a table's rows are proved after a batch.

    :param position: newest that they went through.
    :param compared: as of ``Proof.after``.
    """
    before = Proof() if task.base is None else task.base.proof
    compared = compared and not findings.undecided
    loaded, lacked = loaded_until(task, wire), findings.lacked
    return before.after(
        position, findings.counts, findings.agreed, compared=compared, loaded_until=loaded, lacked=lacked
    )


_OF_ROWS = frozenset({KEY_THERE, KEY_MISSING, ROW_DIFFERS})
_OF_LOG = _OF_ROWS | {SEQUENCE_GAP}
_EVERY = _OF_LOG | {LOAD_OVERLAP}
_LOST = "a change was lost, or somebody else changed rows: a new snapshot of the table says which are right"
_REMEDIES = {
    LOAD_OVERLAP: "give the table a key, or load it again while nothing changes: by a new snapshot, or under another "
    "pipeline name",
}


def explained_kinds(
    task: ApplyTask, timeline: TableTimeline, policy: RunPolicy, plan: MergePlan, wire: Format
) -> frozenset[str]:
    """Return the kinds of contradictions that something else explains in a table, so that they are only counted.

    Each line says what explains them, whether it holds, and which kinds it can lead to. A number that is missing is
    explained by what is not in the log alone.
    """
    begins_late = timeline.from_rows and "full_snapshots" not in wire.carries
    by_clock = wire.order == "clock"
    may_have = _OF_ROWS - {KEY_MISSING} if _is_younger(task, wire) else _OF_ROWS
    is_spread = any(witness.is_spread for witness in plan.witnesses)
    ignores_cascades = policy.on_cascade == "ignore" and bool(timeline.references)
    of_later_log = any(witness.of_later_log for witness in plan.witnesses)
    explained = (
        ("a clock orders changes of several partitions", by_clock, _EVERY),
        ("records could not be read", bool(task.unread), _OF_LOG),
        ("records count no more", bool(task.settled), _OF_LOG),
        ("the source's log began again", of_later_log, _OF_LOG),
        ("rows are left out", bool(task.left_out or plan.failures), _OF_ROWS),
        ("changes were denied", bool(timeline.denied), _OF_ROWS),
        ("rows that foreign keys change are ignored", ignores_cascades, _OF_ROWS),
        ("the table begins with a snapshot that may have some of the changes", begins_with_snapshot(task), may_have),
        ("TRUNCATE is ignored", policy.on_truncate == "ignore", {KEY_THERE}),
        ("the log begins after the table", begins_late, {KEY_MISSING}),
        ("and on each partition elsewhere", begins_late and is_spread, _OF_LOG),
        ("and with a full load that has no place in it", begins_late and wire.snapshot_rows != "shared", _OF_ROWS),
        ("keys that are there are looked at apart (record_keys)", is_unproven(timeline, wire), {KEY_THERE}),
    )
    return frozenset(kind for _, holds, kinds in explained for kind in kinds if holds)


def begins_with_snapshot(task: ApplyTask) -> bool:
    """Return whether rows are resolved from a snapshot on: it may have been read in parts, while rows changed."""
    applied = "" if task.base is None else task.base.applied_position
    return applied < task.snapshot_position


def _is_younger(task: ApplyTask, wire: Format) -> bool:
    """Return whether all rows of the snapshot have one place, and times show which changes it may have."""
    full = {position for span in task.spans for group in span.groups for position, _ in group.snapshots}
    return "younger_snapshots" in wire.carries and task.snapshot_position in full


class TableWitness:
    """Takes the stored rows that a commit meets, and parks the table where the log contradicts them.

    :param witnesses: of the steps. A merge has one, and meets rows here; rows that are made again meet their own.
    :param table: ``database.table``.
    :param explained: kinds of contradictions that something else explains, so that they are only counted.
    :param done: is called once all stored rows were met, where nothing prevents the commit.
    """

    def __init__(
        self,
        witnesses: Sequence[GapWitness],
        table: str,
        policy: RunPolicy,
        explained: frozenset[str],
        done: Callable[[], None],
    ) -> None:
        self._witnesses, self._table, self._done = witnesses, table, done
        self._counted = _EVERY if policy.on_contradiction == "count" else explained

    @property
    def whole(self) -> bool:
        """Return whether rows are to be read whole."""
        return any(witness.whole for witness in self._witnesses)

    @property
    def findings(self) -> Findings:
        """Return what was found so far."""
        return Findings.joined(witness.findings for witness in self._witnesses)

    def meet(self, rows: pa.Table) -> None:
        """Take stored rows that go."""
        for witness in self._witnesses:
            witness.meet(rows)

    def demand_joined(self) -> None:
        """Refuse the commit where the changes of the batch contradict each other.

        :raises DataError: ``apply.contradicted``.
        """
        self._demand(self.findings)

    def demand_agreement(self) -> None:
        """Refuse the commit where the log contradicts the stored rows, all of which were met.

        :raises DataError: ``apply.contradicted``.
        """
        self._demand(Findings.joined([witness.finish() for witness in self._witnesses]))
        self._done()

    def demanding(self, pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield stored rows that meet their witnesses on the way; behind them the commit may be refused.

        :raises DataError: ``apply.contradicted``.
        """
        yield from pieces
        self.demand_agreement()

    def _demand(self, findings: Findings) -> None:
        count = sum(count for kind, count in findings.counts.items() if kind not in self._counted)
        if not count:
            return
        first = next(one for one in findings.first if one.kind not in self._counted)
        column = f", first in column {first.column}" if first.column else ""
        raise DataError(
            "apply.contradicted",
            f"the log contradicts the table: {_SENTENCES[first.kind]}{column} ({count} such changes in this batch)",
            where={"table": self._table, **{k: v for k, v in first.document().items() if k not in ("column", "kind")}},
            hint=_REMEDIES.get(first.kind, _LOST) + "; policy.on_contradiction: count goes on and counts them",
        )
