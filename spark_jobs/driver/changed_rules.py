# SPDX-License-Identifier: Apache-2.0
"""Ask before a table becomes what its rules say now, where its rows were made with others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from airflow_provider_cdc.core.apply.changed_rules import RuleChange
from airflow_provider_cdc.core.apply.table_rewrite import keeps_values
from airflow_provider_cdc.core.apply.target_schema import stored_schema, target_schema
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import DataError, SinkError
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.timeline.asked_changes import ON_RULE_CHANGE, Answer, AskedChange
from airflow_provider_cdc.core.timeline.rule_costs import RuleCost, Work
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions
from spark_jobs.driver.base_states import snapshot_of
from spark_jobs.driver.planning import Planning
from spark_jobs.lake.folded_batches import folded_range
from spark_jobs.lake.layout import batch_of, log_folder
from spark_jobs.lake.manifest import RowGroup
from spark_jobs.sinks.contract import Stored, TableSize
from spark_jobs.tasks.table_shape import laid_of
from spark_jobs.tasks.table_task import Span


class ChangedRules:
    """The tables whose rules are others than those that their rows were made with.

    :param goes_on: as of ``TaskMaker.goes_on_from_rows``.
    """

    def __init__(self, planning: Planning, goes_on: Callable[[TableTimeline, TableState], bool]) -> None:
        self._p, self._goes_on, self._waiting = planning, goes_on, set[tuple[str, ...]]()

    @staticmethod
    def wait(state: TableState) -> bool:
        """Return whether a table waits for approval."""
        return state.code == "shape.changed"

    def question(self, timeline: TableTimeline, state: TableState | None, spans: list[Span]) -> DataError | None:
        """Return why a table is parked until its rules are approved, None where it may go on.

        :param spans: what this batch holds of it.
        """
        if state is None or state.version is None or not (state.applied_position or state.provided):
            return None
        change = self._p.layouts.rule_change(timeline, state)
        if change is None:
            return None
        item = AskedChange("", *timeline.last_name, ON_RULE_CHANGE, "; ".join(change.changes), mark=change.mark)
        known = self._p.asked.known(item)
        if known is not None and known.answer == Answer.APPLY:
            return None
        stored = self._stored(state)
        size = TableSize(None, None) if stored is None else stored.size()
        if size.rows == 0:
            return None
        if known is None or known.answer == Answer.WITHDRAWN or self._p.job.scratch:
            cost = self._cost(timeline, state, spans, change, stored)
            item = replace(item, cost=replace(cost, rows=size.rows, size=size.size))
        asked = self._p.asked.ask_about_rules(item)
        if asked is None:
            return None
        self._waiting.add(asked.key)
        return _error(asked)

    def withdraw(self) -> None:
        """Note which questions of earlier batches are none any more, once all tables were looked at."""
        self._p.asked.withdraw_rules(self._waiting)

    def _stored(self, state: TableState) -> Stored | None:
        """Return what lies at a table's location, None where it cannot be opened."""
        try:
            return self._p.sink.open(self._p.job.at(state.location))
        except SinkError:
            return None

    def _cost(
        self,
        timeline: TableTimeline,
        state: TableState,
        spans: list[Span],
        change: RuleChange,
        stored: Stored | None,
    ) -> RuleCost:
        """Return what carrying a change out costs, without the size of the table."""
        cost = RuleCost(self._p.job.created_at, Work.ROWS, None, None, still_shown=list(change.still_shown))
        cost = replace(cost, kept_out=list(change.kept_out), lacking=list(change.lacking))
        if change.from_rows and self._goes_on(timeline, state):
            evolves = stored is not None and self._evolves(timeline, state, stored)
            return replace(cost, work=Work.METADATA) if evolves else cost
        start = self._p.starts.start(timeline, None, spans, None, snapshot_of(state), state.provided)
        groups = [group for span in start.spans for group in span.groups]
        count, size = sum(group.rows for group in groups), sum(group.image_bytes for group in groups)
        return replace(cost, work=Work.LOG, log_rows=count, log_size=size, is_whole=self._has_all(groups))

    def _evolves(self, timeline: TableTimeline, state: TableState, stored: Stored) -> bool:
        """Return whether a table gets its columns without a row that is written again."""
        job, name = self._p.job, timeline.last_name
        types, layout = TypeOptions.of(job.tables.policy(name, job.policy)), job.tables.layout(name)
        schema, shape = TableSchema.from_document(state.schema or {}), self._p.layouts.shape(timeline)
        laid = laid_of(state)
        if not keeps_values(schema, schema, timeline, shape.columns(schema, types), laid):
            return False
        old, new = stored_schema(schema, types, layout, shape, laid), target_schema(schema, types, layout, shape)
        return self._p.sink.task_writer().evolves(stored, old, new, merges=False)

    def _has_all(self, groups: Sequence[RowGroup]) -> bool:
        """Return whether the change log has all files of some rows: the oldest batches lose theirs first."""
        storage, pipeline = self._p.storage, self._p.job.pipeline
        folded, files = folded_range(storage, pipeline), {group.file for group in groups}
        for seq in sorted({batch_of(file) for file in files}):
            if not folded.is_expired(storage, pipeline, seq):
                break
            left = {name for name, _ in storage.files(log_folder(pipeline, seq), ".parquet")}
            if any(batch_of(file) == seq and file not in left for file in files):
                return False
        return True


def _error(item: AskedChange) -> DataError:
    table, cost = str(item.name), [] if item.cost is None else item.cost.sentences(str(item.name))
    return DataError(
        "shape.changed",
        f"its rules are others than those that its rows were made with ({item.statement})"
        + "".join(f"; {sentence}" for sentence in cost),
        where={"table": table},
        hint=f"`airflow-cdc approve PIPELINE.yaml {table} --change {item.id}` carries that out; once the rules are "
        "taken back the table goes on as it was",
    )
