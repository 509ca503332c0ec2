# SPDX-License-Identifier: Apache-2.0
"""Hold what planning a batch works with: the schema changes on timelines, the tables' states, what was read of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_provider_cdc.core.apply.modes import mode_of
from airflow_provider_cdc.core.apply.stored_layout import StoredLayouts
from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.asked_changes import ON_DROP_TABLE, AskedChanges
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.left_out_columns import without_left_out
from airflow_provider_cdc.core.timeline.new_changes import new_changes
from airflow_provider_cdc.core.timeline.stated import stated_changes
from airflow_provider_cdc.core.timeline.stated_tables import without_keys
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline, Timeline
from spark_jobs.driver.applied_rows import AppliedRows
from spark_jobs.driver.asked_changes import asked_changes
from spark_jobs.driver.base_states import BaseStates
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.full_snapshots import FullSnapshots
from spark_jobs.driver.late_schema_changes import LateSchemaChanges
from spark_jobs.driver.parent_rows import ParentRows
from spark_jobs.driver.paths import Paths
from spark_jobs.driver.quarantine import Quarantine
from spark_jobs.driver.read_rows import ReadRows
from spark_jobs.driver.table_groups import TableGroups, groups_by_name
from spark_jobs.driver.tried_rules import tried_before
from spark_jobs.driver.unsettled import set_aside, waiting
from spark_jobs.lake.manifest import Manifest
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.contract import Sink, Stored

NEWEST = "~"
"""A position behind every other."""


class Planning:
    """The timelines before and after the batch's schema changes, and what belongs to them.

    :ivar was: the tables as they were known before the batch; ``now`` with its schema changes.
    :ivar fresh: schema changes that are new in the batch.
    :ivar by_name: row groups of the batch by table; ``groups`` finds them of a table, in earlier batches too.
    :ivar starts: finds from where each table is resolved; ``late`` schema changes that came late, ``applied`` rows that
        may come again, ``parents`` rows of tables that foreign keys refer to, ``snapshots`` full snapshots.
    :ivar states: the tables' states before the batch, by table id.
    :ivar tables: the timelines that count, by table id.
    :ivar unclear: by table why what its rows say of their columns cannot be read.
    :ivar paths: where each table lies.
    :ivar only_rows_show: whether nothing but rows shows that a table exists, and what columns it has.
    """

    def __init__(
        self,
        job: JobDocument,
        manifest: Manifest,
        read: Sequence[SchemaChange],
        observed: Sequence[SchemaChange],
        history: History,
        unclear: Mapping[TableName, str],
        storage: Storage,
        sink: Sink[Stored],
        salt: bytes = b"",
    ) -> None:
        """Put the schema changes onto the timelines."""
        self.job, self.storage, self.sink = job, storage, sink
        self.rules = job.tables
        known = [*stated_changes(self.rules), *(SchemaChange.from_document(item) for item in job.schema_changes)]
        server = Server.of(job.format_options)
        self.layouts = StoredLayouts(job.tables, job.policy, job.format, job.format_options, salt)
        wire = open_format(job.format, job.format_options)
        self.exact = wire.order == "exact"
        self.only_rows_show = "full_snapshots" in wire.carries and job.schema_topic is None
        self.fresh = new_changes(known, read, observed, exact=self.exact, server=server)
        self.was = self._stated(build_timeline(known, server, AskedChanges(history.asked())))
        lower_case, self.case_is_known = server.lower_case_names is True, server.lower_case_names is not None
        self.by_name = groups_by_name(manifest, lower_case=lower_case)
        self.asked = asked_changes(job, self.by_name, self.fresh, manifest.approvals, history, self.was)
        new = self.fresh or self.asked.news()
        self.now = self.was
        if new:
            self.now = self._stated(build_timeline([*known, *self.fresh], server, self.asked))
        self.states = {state.table_id: state for state in job.states}  # as known before the batch
        self.history = history
        self.groups = TableGroups(self.now, self.by_name, history, lower_case=lower_case)
        self.late = LateSchemaChanges(self.was, self.now, self.groups, history)
        self.applied = AppliedRows(self.groups, history)
        self.parents = ParentRows(self.now, self.groups, history)
        self.snapshots = FullSnapshots(job.schema_topic is not None, "full_snapshots" in wire.carries, self._keeps)
        self.starts = BaseStates(job.seq, self.groups, self.late, self.applied, history, self.snapshots, self.layouts)
        self.read = ReadRows(self.was, self.now, self.states, self.groups, history)
        self.tables = {i: timeline for i, timeline in self.now.tables.items() if self.read.shows(timeline)}
        self.quarantine = Quarantine(job, self.rules, self.now, [*known, *self.fresh], manifest, history)
        self.unclear = unclear
        tried = tried_before(job, manifest), history.target_rules()
        self.paths = Paths(job, sink, self.now, self.states, self.is_selected, *tried)

    def _stated(self, timeline: Timeline) -> Timeline:
        """Return a timeline as the rules of the pipeline change it."""
        timeline = without_left_out(timeline, self.rules)
        if not self.rules.state_modes:
            return timeline
        return without_keys(timeline, lambda name: mode_of(self.rules, name).has_key)

    def _keeps(self, name: TableName) -> bool:
        """Return whether a table keeps what a later full snapshot lacks."""
        return not mode_of(self.rules, name).is_mirror

    def is_selected(self, name: TableName) -> bool:
        """Return whether the pipeline selects a table."""
        return self.rules.selects(name)

    def policy_of(self, name: TableName) -> RunPolicy | None:
        """Return the policy of a table, None where the pipeline does not select it."""
        return self.rules.policy(name, self.job.policy) if self.is_selected(name) else None

    def checks_references(self, timeline: TableTimeline) -> bool:
        """Return whether a table has foreign keys that change rows, and is to be parked where they did."""
        policy = self.rules.policy(timeline.last_name, self.job.policy)
        return bool(timeline.references) and policy.on_cascade == "park"

    def referring(self) -> list[str]:
        """Return the ids of the tables that are parked where a foreign key changed rows."""
        return [i for i, timeline in self.tables.items() if self.checks_references(timeline)]

    def empties(self, timeline: TableTimeline) -> bool:
        """Return whether a table's content goes from its location when the table does, or was never there."""
        value = self.rules.policy(timeline.last_name, self.job.policy).on_drop_table
        if value == "ask":  # about a DROP; without one nobody is asked
            dropped_at = timeline.dropped_at
            return dropped_at is None or self.asked.is_approved(dropped_at, timeline.last_name, ON_DROP_TABLE)
        return value == "apply"

    def parked(self, timeline: TableTimeline, state: TableState | None, reason: str, code: str = "") -> TableState:
        """Return the state of a table that is parked with a reason."""
        return set_aside(self.job, self.not_applied(timeline, state), reason, code)

    def nameless(self, timeline: TableTimeline, state: TableState | None) -> TableState:
        """Let a table wait whose name another table has taken: its rows must not meet the other's location."""
        reason = f"another table took its name {timeline.last_name}: the RENAME or DROP before that is still missing"
        return waiting(self.job, self.not_applied(timeline, state), reason)

    def not_applied(self, timeline: TableTimeline, state: TableState | None) -> TableState:
        """Return the state of a table that takes no part in the batch, under its present name."""
        name = timeline.last_name
        state = state or TableState(timeline.table_id, *name, self.paths.free(timeline))
        back_to = self.late.oldest_difference(timeline.table_id, state)
        return replace(state, database=name.database, table=name.table, rewind_to=back_to)
