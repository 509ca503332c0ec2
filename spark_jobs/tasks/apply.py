# SPDX-License-Identifier: Apache-2.0
"""Apply: one table's changes become one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import chain
from typing import Any, Self

import pyarrow as pa

from airflow_provider_cdc.core.apply.contradictions import ROW_MISSING, Findings
from airflow_provider_cdc.core.apply.merge_plan import ImagesLack, MergePlan, MergeStep, OpenRemovals, RowFailure
from airflow_provider_cdc.core.apply.ordered_changes import Changes
from airflow_provider_cdc.core.apply.resolve import ordered, resolve
from airflow_provider_cdc.core.apply.table_rewrite import after_steps, goes_in_pieces, remaining_pieces
from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import DataError, SinkError
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.model.status import ApplyStatus
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.fields import REMEDIES, REMEDY
from airflow_provider_cdc.core.values.types import TypeOptions
from spark_jobs.lake import pending_deletes
from spark_jobs.lake.layout import staged_folder
from spark_jobs.lake.row_groups import StoredImages
from spark_jobs.lake.scratch import lake_of
from spark_jobs.sinks.commits import ADDED_BYTES, Commit
from spark_jobs.sinks.contract import Action, Stored, Writer
from spark_jobs.sinks.registry import open_sink
from spark_jobs.tasks.base_rows import BaseRows
from spark_jobs.tasks.committed_state import committed_state
from spark_jobs.tasks.comparing_writer import ComparingWriter
from spark_jobs.tasks.foreign_keys import ForeignKeys
from spark_jobs.tasks.pending_deletes import demand_explained, noted
from spark_jobs.tasks.reporting import reported
from spark_jobs.tasks.table_changes import TableChanges
from spark_jobs.tasks.table_shape import TableShape
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask
from spark_jobs.tasks.table_witness import TableWitness, explained_kinds, proof_after, verification_of
from spark_jobs.tasks.tables_together import ResolvedTable
from spark_jobs.tasks.target_table import TargetTable
from spark_jobs.tasks.unlogged import Unlogged
from spark_jobs.tasks.writer_rules import writer_rule

_REFUSED = 1_000  # rows that a report names of a table that is parked for them


def apply(
    job: JobDocument, task: ApplyTask, secrets: dict[str, dict[str, str]], resolved: ResolvedTable | None = None
) -> ApplyReport:
    """Resolve one table, and commit it or stage it for the Spark writer; an error is reported, not raised.

    :param resolved: what resolving gave, where that was done with other tables.
    """
    return reported(TableApply(job, task, secrets, resolved), TableApply.run)


class TableApply:
    """One table's way through apply.

    :param resolved: what resolving gave, where that was done already.
    :ivar refused: rows that do not fit, where they are too many, the first of them.
    """

    def __init__(
        self,
        job: JobDocument,
        task: ApplyTask,
        secrets: dict[str, dict[str, str]],
        resolved: ResolvedTable | None = None,
    ) -> None:
        self.job, self.task = job, task
        self._secrets, self._resolved_before = secrets, resolved
        self._storage = lake_of(job, secrets)
        self._sink = open_sink(job, secrets)
        self._target = TargetTable(job, task, self._sink, self._storage)
        self._app = self._target.app
        self._base = BaseRows(job, task, self._sink, self._app, self._storage)
        self._policy = job.tables.policy(name := f"{task.database}.{task.table}", job.policy)
        self._types = TypeOptions.of(self._policy)
        self._timeline = TableTimeline.from_document(task.timeline) if resolved is None else resolved.timeline
        self._format = open_format(job.format, job.format_options)
        self._shape = TableShape(job, task, self._timeline, secrets)
        self._pending: OpenRemovals | None = None  # after this batch
        self._verification = verification_of(self._policy, job, task, self._format, self._shape.rules)
        self._witness: TableWitness | None = None
        self._removals = Findings()  # of a table without key
        self._is_compared = False
        self._states: dict[int | None, TableState] = {}  # by the batch that left pending deletes
        self._committing = False
        self._added_bytes = 0
        self.refused: list[dict[str, Any]] = []
        rule = writer_rule(job, name, [*self._shape.names.values()], self._sink)
        self._preview = self._sink.preview(rule)
        staged = staged_folder(job.pipeline, job.seq, task.table_id)
        self._comparing = ComparingWriter.of(job, name, self._preview, self._shape.key_names)
        written = self._preview if job.scratch else self._sink.writer(rule, self._storage, staged)
        self._writer: Writer[Stored] = self._comparing or written
        self._spark_may_write = task.base is not None and task.base.spark_may_write
        verifies = self._verification is not None and self._verification.compares_rows(self._format)
        further, unlogged = self._shape.rules.of_change, Unlogged.of(job, self._format)
        self._changes = TableChanges(
            self._storage, task, self._timeline, self._format, verifies=verifies, further=further, unlogged=unlogged
        )
        if resolved is not None:
            self._changes.first = resolved.first

    def again(self) -> Self:
        """Return the same, to be tried once more."""
        return type(self)(self.job, self.task, self._secrets)

    @property
    def first(self) -> dict[str, Any]:
        """Topic, partition and offset of its first record, once changes were read."""
        return self._changes.first

    @property
    def seen_version(self) -> int | None:
        """Version that the table's location had, None where no table could be opened."""
        return self._target.seen_version

    @property
    def findings(self) -> Findings:
        """Return the outcome of comparing its changes with the rows that they found."""
        if self._comparing is not None:
            return self._comparing.findings
        return Findings.joined([self._removals, *([] if self._witness is None else [self._witness.findings])])

    def may_hold_batch(self) -> bool:
        """Return whether this attempt's commit may have gone through: such a table is never parked for the batch."""
        return self._committing and self._target.may_hold_batch()

    def run(self) -> ApplyReport:
        """Resolve and commit the table."""
        target = self._target.open()
        if isinstance(target, ApplyReport):
            return target
        task = self.task
        base_schema = TableSchema.from_document(task.base.schema) if task.base and task.base.schema else None
        try:
            return self._resolved(target, base_schema, in_pieces=self._is_large())
        except ImagesLack:
            return self._resolved(target, base_schema, in_pieces=False)

    def _is_large(self) -> bool:
        """Return whether the images of the changes are left in the change log until rows are made of them.

        Late rows are compared with applied ones, rows with what parents lost, and rows that may be repeats with those
        that they may repeat, all at once.
        """
        task = self.task
        compared = bool(task.parents) or (task.late_from is not None and bool(task.context))
        compared = compared or any(span.older for span in task.spans) or self._changes.unlogged is not None
        return task.image_bytes > self.job.policy.apply_bytes and not compared

    def _resolved(self, target: Stored, base_schema: TableSchema | None, *, in_pieces: bool) -> ApplyReport:
        """Resolve the changes and commit what comes of them.

        :raises ImagesLack: rows typed in pieces lack columns.
        """
        task = self.task
        resolved = self._resolved_before
        plan = self._resolve(base_schema, in_pieces=in_pieces) if resolved is None else resolved.plan
        self._demand_fit(plan.failures)
        rows, mapper = self._base.rows, self._shape.mapper()
        keys = ForeignKeys(task, self._timeline, self._format, self._types, self._changes, rows, mapper)
        keys.check(base_schema, plan)
        action, version, upserts = self._commit(target, base_schema, plan)
        return ApplyReport(
            task.table_id,
            ApplyStatus.COMMITTED if action else ApplyStatus.UNCHANGED,
            version,
            upserts,
            plan.steps[-1].deletes.num_rows + plan.steps[-1].netted,
            failures=[asdict(item) for item in plan.failures],
            lossy=dict(plan.lossy),
            action=action,
            state=self._state(committed=bool(action)),
            files=self._preview.files,
            file_bytes=self._preview.file_bytes,
            choice=self._writer.choice,
            findings=self.findings,
            differences=[] if self._comparing is None else self._comparing.differences,
            added_bytes=self._added_bytes,
        )

    def _resolve(self, base_schema: TableSchema | None, *, in_pieces: bool) -> MergePlan:
        task = self.task
        images = {name: StoredImages(self._storage, name) for name in ("before", "after")} if in_pieces else None
        return resolve(
            self._ordered(images),
            self._timeline,
            base_schema,
            self._format,
            self._types,
            base_position=task.base.applied_position if task.base else "",
            read=self._base.rows,
            snapshots=[position for position, _ in task.every_snapshot],
            open_removals=pending_deletes.read(self._storage, self.job.pipeline, task.base),
            verification=self._verification,
            columns=self._shape.rules_and_laid,
        )

    def _ordered(self, images: dict[str, StoredImages] | None) -> Changes:
        """Read the changes in source order; what they are sorted from, which is as large, is gone then."""
        fresh, applied = self._changes.read(images)
        return ordered(fresh, applied, images)

    def _demand_fit(self, failures: Sequence[RowFailure]) -> None:
        """Refuse a table of which too many rows do not fit."""
        budget, count = self._policy.quarantine_limit, self.task.left_out + len(failures)
        if failures and count > budget:
            first = failures[0]
            self.refused = [asdict(failure) for failure in failures[:_REFUSED]]
            raise SinkError(
                "apply.quarantine_exceeded",
                f"{count} rows do not fit their columns, policy.quarantine_limit is {budget}",
                where=asdict(first),
                hint=f"{REMEDIES.get(first.reason, REMEDY)}; the table goes on from its present version",
            )

    def _state(self, *, committed: bool) -> TableState:
        """Return the table's state after this batch."""
        pending_seq = None
        if self._pending is not None:
            pending_seq = self.job.seq if committed or self.task.base is None else self.task.base.pending_seq
        if pending_seq not in self._states:
            state = committed_state(self.task, self._timeline, self.job.seq, pending_seq)
            state = noted(state, self._pending, exact=self._format.order == "exact")
            laid, said = self._shape.laid_then().document(), self._shape.comments.mark
            state = replace(state, laid=laid, comments=said)
            self._states[pending_seq] = replace(state, spark_may_write=self._spark_may_write)
        state = self._states[pending_seq]
        compared = self._is_compared and self._pending is None
        proof = proof_after(self.task, self._format, state.applied_position, self.findings, compared=compared)
        return replace(state, proof=proof)

    def _commit(self, target: Stored, base_schema: TableSchema | None, plan: MergePlan) -> tuple[str, int | None, int]:
        """Make the cheapest commit that makes the table right; return what it does, its version and its upserts."""
        step = plan.steps[-1]
        upserts, deletes = step.upserts.num_rows + step.netted, step.deletes.num_rows + step.netted
        facts = self._facts(plan, upserts, deletes)
        action = self._action(target, base_schema, plan, Commit(self._app, self.job.seq, facts))
        if action is None:
            self._compare(None, plan)
            return "", self.task.expected, 0

        def typed(rows: int) -> None:
            if action.later is not None:
                self._demand_fit(plan.failures)
                facts["upserts"] = rows
                facts["failures"] = [asdict(item) for item in plan.failures]

        action.typed, action.unmatched = typed, self._settles(facts, plan)
        self._compare(action, plan)
        version = self._carry_out(target, action)
        return action.verb, version, int(facts["upserts"])

    def _compare(self, action: Action | None, plan: MergePlan) -> None:
        """Compare the changes with the rows that they find, or leave that to the writer, which meets them.

        :raises DataError: ``apply.contradicted``.
        """
        kinds = {step.keyed for step in plan.steps}
        exact = self._verification is not None and self._format.order == "exact"
        self._is_compared = exact and (kinds == {False} or not plan.witnesses)
        if not plan.witnesses or action is None or self._comparing is not None:
            return

        def done() -> None:
            self._is_compared = exact and len(kinds) == 1  # a key that comes ends what was missing without one
            action.commit.facts["state"] = self._state(committed=True).document()

        explained = explained_kinds(self.task, self._timeline, self._policy, plan, self._format)
        name = f"{self.task.database}.{self.task.table}"
        self._witness = TableWitness(plan.witnesses, name, self._policy, explained, done)
        self._witness.demand_joined()
        if action.verb == "merge":
            action.met = self._witness
        elif action.remaining is not None:
            action.remaining = self._witness.demanding(action.remaining)
        elif kinds != {False}:  # all stored rows were met, or there are none
            self._witness.demand_agreement()

    def _settles(self, facts: dict[str, Any], plan: MergePlan) -> Callable[[pa.Table], None]:
        """Return what takes the removals that found no row, before the commit that states them."""
        step = plan.steps[-1]

        def take(unmatched: pa.Table) -> None:
            self._write_pending(step.still_open(unmatched), plan)
            if self._verification is not None and not step.keyed:
                self._removals.agreed = step.netted + step.deletes.num_rows - unmatched.num_rows
            facts["state"] = self._state(committed=True).document()

        return take

    def _facts(self, plan: MergePlan, upserts: int, deletes: int) -> dict[str, Any]:
        """Return what a commit states of itself."""
        return {
            "app": self._app,
            "seq": self.job.seq,
            "changes": plan.changes,
            "upserts": upserts,
            "deletes": deletes,
            "lossy": plan.lossy,
            "failures": [asdict(item) for item in plan.failures],
        }

    def _carry_out(self, target: Stored, action: Action) -> int | None:
        """Commit an action with the state that the table has then; return the version that it made."""
        if action.verb == "create":
            self._target.note_begin()
        if action.verb == "merge":
            self._spark_may_write = self._writer.may_need_spark(target)
        action.commit.facts["state"] = self._state(committed=True).document()
        action.columns = self._columns
        self._committing = True
        version = self._writer.commit(target, action)
        self._added_bytes = action.commit.facts.get(ADDED_BYTES, 0)
        return version

    def _action(
        self, target: Stored, base_schema: TableSchema | None, plan: MergePlan, commit: Commit
    ) -> Action | None:
        """Choose how the plan is carried out; None where the table is right as it is."""
        task, step = self.task, plan.steps[-1]
        pending = plan.steps[0].open
        in_place = not task.has_moved and task.rewind_to is None and len(plan.steps) == 1 and not step.begins_empty
        stays = in_place and base_schema is not None and self._shape.stay(base_schema, step.version)
        same = stays and base_schema is not None and self._columns.has_same_columns(self._shape.so_far(base_schema))
        stays = same or (stays and self._evolves(target, base_schema, step))
        if same and not step.adds and not step.deletes.num_rows and not step.settled:
            self._demand_explained(OpenRemovals.joined(pending), plan)
            return None
        if stays and pending is None and not step.deletes.num_rows and (not step.keyed or target.is_empty()):
            return Action("append", commit, step.upserts, later=step.later)
        if stays and step.keyed:
            return Action("merge", commit, step.upserts, step.deletes, step.key, step.later)
        mapper = self._shape.mapper(plan.lossy)
        if same and base_schema is not None and self._writer.subtracts(target):
            self._type_now(plan, commit)
            return Action("subtract", commit, step.upserts, step.deletes, forms=mapper.forms(step.version))
        keeps = base_schema is not None and not plan.steps[0].clear
        if keeps or (step.deletes.num_rows and not step.keyed):
            self._type_now(plan, commit)
        remaining = None
        if keeps and base_schema is not None and goes_in_pieces(base_schema, plan.steps, mapper):
            none = self._shape.so_far(base_schema).columns.empty_table()  # a filter may pass rows that it lacks
            pieces = chain([none], self._base.pieces(self._shape.first_key(base_schema)))
            remaining = remaining_pieces(pieces, base_schema, plan.steps, mapper)
        content = self._base.rows() if keeps and remaining is None else None
        rows, pending = after_steps(content, base_schema, plan.steps, mapper, compared=True)
        self._write_pending(pending, plan)
        return Action("overwrite" if target.exists else "create", commit, rows, later=step.later, remaining=remaining)

    def _type_now(self, plan: MergePlan, commit: Commit) -> None:
        """Type the rows that were left for later.

        :raises SinkError: too many of them do not fit.
        """
        step = plan.steps[-1]
        step.type_now()
        self._demand_fit(plan.failures)
        commit.facts["upserts"] = step.upserts.num_rows + step.netted
        commit.facts["failures"] = [asdict(item) for item in plan.failures]

    def _write_pending(self, pending: OpenRemovals | None, plan: MergePlan) -> None:
        """Write the removals that have found no row so far.

        :raises DataError: neither a partition nor the quarantine is left that may have the rows.
        """
        self._demand_explained(pending, plan)
        pending_deletes.write(self._storage, self.job.pipeline, self.task.table_id, self.job.seq, pending)

    def _demand_explained(self, pending: OpenRemovals | None, plan: MergePlan) -> None:
        self._pending = pending
        if pending is not None and self._format.order == "exact":
            table = f"{self.task.database}.{self.task.table}"
            lacking = self.task.lacking + len(plan.failures)
            try:
                demand_explained(pending, self.job.marks, self._changes.topics(), table, lacking)
            except DataError:
                self._removals.counts[ROW_MISSING] = pending.rows.num_rows
                raise

    def _evolves(self, target: Stored, old: TableSchema | None, step: MergeStep) -> bool:
        """Return whether the table gets other columns, and no stored value changes with them."""
        if old is None or not self._shape.keeps_values(old, step.schema):
            return False
        merges = step.keyed and (step.adds or step.deletes.num_rows > 0)
        return self._writer.evolves(target, self._shape.so_far(old), self._columns, merges=merges)

    @property
    def _columns(self) -> TargetSchema:
        """The columns that the table has after the batch."""
        return self._shape.columns
