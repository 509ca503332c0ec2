# SPDX-License-Identifier: Apache-2.0
"""Open the table that a batch is about to change: it may hold the batch already, or not be ours."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import REBUILD, CdcError, SinkError, UnavailableError
from airflow_provider_cdc.core.model.status import ApplyStatus
from spark_jobs.lake.layout import begun_file
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import ADDED_BYTES, Choice
from spark_jobs.sinks.contract import Sink, Stored
from spark_jobs.sinks.ownership import demand_target
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask


class TargetTable:
    """The location of one task's table.

    :ivar app: application of its commits.
    :ivar seen_version: version that the location had when it was opened, None before, and where no table is.
    """

    def __init__(self, job: JobDocument, task: ApplyTask, sink: Sink[Stored], storage: Storage) -> None:
        self._job, self._task, self._sink, self._storage = job, task, sink, storage
        self.app = f"cdc/{job.pipeline}/{task.table_id}/0"
        self.location = job.at(task.location)
        self.seen_version: int | None = None
        self._rebuilds = task.rebuilt_seq == job.seq
        self._begun = begun_file(job.pipeline, task.table_id)  # says where the table was first written to

    def open(self) -> Stored | ApplyReport:
        """Return the table's location, or a report if it holds the batch already.

        :raises SinkError: the location is not what the ledger remembers.
        """
        task = self._task
        target = self._sink.open(self.location)
        self.seen_version = target.version
        done = target.applied(self.app)
        # what lies there is no reason not to rebuild it, unless it is this rebuild, or what came after
        held_from = self._job.seq if self._rebuilds else task.applied_seq + 1
        # a location that another table had since, or that was emptied, holds nothing of an earlier batch
        if done is not None and done >= held_from and (done >= self._job.seq or target.is_written_by(self.app)):
            return self._held(target, done)
        self._guard(target, done)
        return target

    def may_hold_batch(self) -> bool:
        """Return whether this attempt's commit may have gone through: such a table is never parked for the batch."""
        try:
            done = self._sink.open(self.location).applied(self.app)
        except CdcError:
            return True
        return done is not None and done >= self._job.seq

    def note_begin(self) -> None:
        """Note that what lies at the table's location without a log is ours.

        The note is as durable as the data files: no sink syncs them, and after a power loss both may be gone.
        """
        locations = self._begun_at()  # more than one where rules of target changed between attempts
        if self._task.location not in locations:
            self._storage.write_json(self._begun, {"locations": [*locations, self._task.location]}, durable=False)

    def _held(self, target: Stored, done: int) -> ApplyReport:
        """Report what the table holds already, as its own newest commit states it.

        :param done: batch of that commit: this one, or an earlier one that was not recorded as applied.
        :raises UnavailableError: a later batch is applied, so this one is carried out by somebody else.
        """
        task = self._task
        where = {"table": f"{task.database}.{task.table}", "location": self.location, "seq": done}
        if done > self._job.seq:
            raise UnavailableError(
                "apply.superseded",
                f"the table holds batch {done} already, batch {self._job.seq} ended elsewhere",
                where=where,
                hint="run again; it goes on with the newest batch",
            )
        facts = target.facts(self.app)
        if facts is None or "state" not in facts:
            raise SinkError(
                "sink.commit_unknown",
                "the table holds a batch that is not known as applied, and the batch's commit is no longer readable",
                where=where,
                hint=f"{REBUILD}; keep the history of a table longer than the time between batches",
            )
        state = replace(TableState.from_document(facts["state"]), version=target.version)
        if done < self._job.seq:
            return ApplyReport(task.table_id, ApplyStatus.AHEAD, target.version, state=state)
        counts = {name: facts[name] for name in ("upserts", "deletes", "lossy")}
        report = ApplyReport(task.table_id, ApplyStatus.REPEATED, target.version, state=state, **counts)
        report.failures, report.choice = facts["failures"], Choice.from_document(facts.get("writer"))
        report.added_bytes = facts.get(ADDED_BYTES, 0)
        return report

    def _guard(self, target: Stored, done: int | None) -> None:
        """Refuse a location that is not what the ledger remembers.

        :param done: newest batch that this table committed there, None for none.
        """
        task = self._task
        where = {"table": f"{task.database}.{task.table}", "location": self.location}
        if not target.exists:
            if task.expected is not None and not self._rebuilds:
                raise SinkError("sink.missing", "the table is gone", where=where, hint=f"restore it, or {REBUILD}")
            # a process that dies while it makes a table leaves files without a log: they are ours if we began there
            if target.holds_files() and not self._has_begun():
                raise SinkError(
                    "sink.not_ours",
                    "the location holds files but no table",
                    where=where,
                    hint="empty it or choose another root",
                )
            return
        demand_target(
            target,
            self.app,
            has_own_commit=done is not None,
            expected=task.expected,
            rebuilds=self._rebuilds,
            where=where,
        )

    def _has_begun(self) -> bool:
        """Return whether the pipeline began to make the table where it is to be."""
        return self._task.location in self._begun_at()

    def _begun_at(self) -> list[str]:
        """Return where the pipeline began to make the table."""
        begun = self._storage.read_unfinished(self._begun) or {}
        return list(begun.get("locations") or filter(None, [begun.get("location")]))
