# SPDX-License-Identifier: Apache-2.0
"""Decide what contradictions between the log and a stored table mean: the table is parked, or they are counted."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from airflow_provider_cdc.core.apply.contradictions import (
    KEY_MISSING,
    KEY_THERE,
    ROW_DIFFERS,
    SEQUENCE_GAP,
    Findings,
    GapWitness,
    Verification,
)
from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.config.verify import sampled_share
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import REBUILD, DataError
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.shapes.shape import PLAIN, Shape
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.tasks.table_task import ApplyTask

_SENTENCES = {
    KEY_THERE: "a row was inserted whose key another row has",
    KEY_MISSING: "a row was updated or deleted that is not in the table",
    SEQUENCE_GAP: "a change is missing that its transaction had before this one",
    ROW_DIFFERS: "a row was changed whose values before the change are not those of the table",
}


def verification_of(policy: RunPolicy, job: JobDocument, wire: Format, shape: Shape = PLAIN) -> Verification | None:
    """Return how far a table's changes are compared with the rows that they find, None for not at all.

    :param policy: of the table.
    :param shape: the rows of a mirror alone, and only all of them, are those that the changes found.
    """
    # rows of one moment may have been applied in another order; what is not there may be left out by the filter
    if wire.order == "clock" or shape.filters or not shape.mode.is_mirror:
        return None
    partitions = [f"{topic}/{partition}" for topic, ends in job.end.items() for partition in ends]
    match policy.verify:
        case "off":
            return None
        case "touched":
            return Verification(marks=job.marks, partitions=partitions)
        case verify:
            share = sampled_share(verify) or 1.0
            return Verification(share, whole=True, marks=job.marks, partitions=partitions)


def explanation(task: ApplyTask, timeline: TableTimeline, policy: RunPolicy, plan: MergePlan, wire: Format) -> str:
    """Return what explains contradictions of a table, so that they are only counted; empty for nothing."""
    explained = {
        "rows are left out": bool(task.left_out or plan.failures),
        "records could not be read": bool(task.unread),
        "records count no more": bool(task.settled),
        "changes were denied": bool(timeline.denied),
        "TRUNCATE is ignored": policy.on_truncate == "ignore",
        "rows that foreign keys change are ignored": policy.on_cascade == "ignore" and bool(timeline.references),
        "the log begins after the table": timeline.from_rows and "full_snapshots" not in wire.carries,
        "the table begins with a snapshot that may have some of the changes": begins_with_snapshot(task),
        "the table begins with files that may have some of the changes": task.begins_with_files,
        "the source's log began again": bool(
            plan.steps and plan.steps[0].witness and plan.steps[0].witness.of_later_log
        ),
    }
    return next((reason for reason, holds in explained.items() if holds), "")


def begins_with_snapshot(task: ApplyTask) -> bool:
    """Return whether rows are resolved from a snapshot on: it may have been read in parts, while rows changed."""
    applied = "" if task.base is None else task.base.applied_position
    return applied < task.snapshot_position


class TableWitness:
    """Takes the stored rows that a merge meets, and parks the table where the log contradicts them.

    :param table: ``database.table``.
    :param explained: what else explains contradictions, so that they are only counted; empty for nothing.
    :param done: is called once all stored rows were met, where nothing prevents the commit.
    """

    def __init__(
        self, witness: GapWitness, table: str, policy: RunPolicy, explained: str, done: Callable[[], None]
    ) -> None:
        self._witness, self._table, self._done = witness, table, done
        self._counts_only = bool(explained) or policy.on_contradiction == "count"

    @property
    def whole(self) -> bool:
        """Return whether rows are to be read whole."""
        return self._witness.whole

    @property
    def findings(self) -> Findings:
        """Return what was found so far."""
        return self._witness.findings

    def meet(self, rows: pa.Table) -> None:
        """Take stored rows that go."""
        self._witness.meet(rows)

    def demand_joined(self) -> None:
        """Refuse the commit where the changes of the batch contradict each other.

        :raises DataError: ``apply.contradicted``.
        """
        self._demand(self._witness.findings)

    def demand_agreement(self) -> None:
        """Refuse the commit where the log contradicts the stored rows, all of which were met.

        :raises DataError: ``apply.contradicted``.
        """
        self._demand(self._witness.finish())
        self._done()

    def _demand(self, findings: Findings) -> None:
        if not findings.counts or self._counts_only:
            return
        first = findings.first[0]
        column = f", first in column {first.column}" if first.column else ""
        count = sum(findings.counts.values())
        raise DataError(
            "apply.contradicted",
            f"the log contradicts the table: {_SENTENCES[first.kind]}{column} ({count} such changes in this batch)",
            where={"table": self._table, **{k: v for k, v in first.document().items() if k not in ("column", "kind")}},
            hint=f"a change was lost or somebody else changed the table: {REBUILD}; "
            "policy.on_contradiction: count goes on and counts them",
        )
