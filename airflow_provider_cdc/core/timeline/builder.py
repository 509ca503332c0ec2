# SPDX-License-Identifier: Apache-2.0
"""Build a timeline by applying schema changes in source order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_provider_cdc.core.ddl import alter_actions as clause
from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.ddl.named_tables import mentioned_tables, named_tables
from airflow_provider_cdc.core.ddl.parser import is_mysql, parse
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.faults import summary
from airflow_provider_cdc.core.model.clock_position import one_instant
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.asked_changes import ON_TRUNCATE, Answer, AskedChanges
from airflow_provider_cdc.core.timeline.change_order import copies_of, in_source_order
from airflow_provider_cdc.core.timeline.clauses import policies_of
from airflow_provider_cdc.core.timeline.described_tables import DescribedTables
from airflow_provider_cdc.core.timeline.final_notes import note_asked, note_copies
from airflow_provider_cdc.core.timeline.foreign_keys import altered_keys
from airflow_provider_cdc.core.timeline.table_builder import TableBuilder
from airflow_provider_cdc.core.timeline.table_lives import VERSIONED
from airflow_provider_cdc.core.timeline.timeline import Block, SchemaChange, Timeline
from airflow_provider_cdc.core.timeline.unordered import REASON, TWICE, Effect, creates, effect_of, in_doubt, still_near


class TimelineBuilder(DescribedTables):
    """Apply schema changes one after the other, and hold the state of all tables after them."""

    def __init__(self, server: Server, copies: dict[str, list[str]], asked: AskedChanges) -> None:
        super().__init__(server, copies, asked)
        self._rows_only: list[SchemaChange] = []  # structures observed in rows, until the next statement is known
        self._doubtful_since: dict[TableName, str] = {}
        self._near: list[Effect] = []  # the last statements that the clock may not order with the next one

    def apply(self, change: SchemaChange) -> None:
        """Apply one change; a statement that is not understood blocks the tables that it names."""
        if change.relation is not None:
            self._apply_relation(change, change.relation)
            return
        if not change.statement:
            if not change.fallback:
                self._apply_observed(change)
            elif not any(change.described() & effect.changed for effect in still_near(self._near, change.position)):
                self._rows_only.append(change)
            return
        self.take_rows(before=change.position)
        try:
            self._apply_statements(change, parse(change.statement, change.dialect))
        except DataError as error:
            self._not_understood(change, error)
        except Exception as error:  # our own fault must not stop tables that the statement does not name
            text = f"a statement cannot be carried out: {summary(error)}"
            self._not_understood(change, DataError("ddl.fault", text, hint="please report it with the statement"))

    def _apply_statements(self, change: SchemaChange, statements: Sequence[ddl.Statement]) -> None:
        """Apply the statements of one change, unless a statement of the same instant may come before or after it."""
        copies = self.timeline.copies.get(change.position, [])
        effect = effect_of(change, statements, self.timeline.names, self._case, copies)
        self._rows_only = [other for other in self._rows_only if not other.described() & effect.changed]
        self._near = still_near(self._near, change.position)
        doubtful = self._doubtful_names(change, statements, effect)
        self._near.append(effect)
        for name, reason in doubtful.items():
            self.timeline.doubtful.setdefault(name, reason)
            self._doubtful_since.setdefault(name, change.position)
            if name in self._open:
                # before other blocks of the table: the wrong order may be their only cause
                self.timeline.tables[self._open[name]].blocked.insert(0, Block(change.position, reason, columns=True))
        if not doubtful.keys() & effect.changed:
            for item in statements:
                self._statement(change, item)

    def _doubtful_names(
        self, change: SchemaChange, statements: Sequence[ddl.Statement], effect: Effect
    ) -> dict[TableName, str]:
        """Return the names whose owner is not known after a statement, each with the reason.

        A statement about such a name makes the other names that it frees or takes uncertain too.
        """
        if change.twice:
            return dict.fromkeys(effect.changed, TWICE)
        doubtful = dict.fromkeys(in_doubt(effect, self._near), REASON)
        created = creates(statements, effect)
        if created is not None and created in self.timeline.doubtful and created not in doubtful:
            del self.timeline.doubtful[created]
            ended = self._doubtful_since.pop(created), change.position
            self.timeline.doubts.setdefault(created, []).append(ended)
            self._drop(change, created)  # no table has the name, or the statement would have failed
        reasons = [self.timeline.doubtful.get(name) or doubtful.get(name) for name in effect.changed | effect.read]
        reason = next(filter(None, reasons), None)
        return doubtful if reason is None else {**dict.fromkeys(effect.changed, reason), **doubtful}

    def take_rows(self, *, before: str | None = None) -> None:
        """Apply structures that only rows show, unless a statement that freed their name may be older or newer.

        :param before: position of the next statement, None at the end.
        """
        unsettled = [other for other in self._rows_only if before is not None and one_instant(other.position, before)]
        for change in self._rows_only:
            if change not in unsettled:
                self._apply_observed(change)
        self._rows_only = unsettled

    def _statement(self, change: SchemaChange, item: ddl.Statement) -> None:
        match item:
            case ddl.CreateTable(temporary=False):
                self._create(change, item)
            case ddl.AlterTable():
                self._alter(change, item)
            case ddl.DropTable(temporary=False):
                for name in item.names:
                    self._drop_if_approved(change, self._full(name, change))
            case ddl.TruncateTable():
                self._truncate(change, item)
            case ddl.RenameTable():
                for old, new in item.pairs:
                    names = self._full(old, change), self._full(new, change)
                    self._rename(change, *names, if_exists=item.if_exists)
            case ddl.CommentOn():
                self._comment(change, item)
            case ddl.RestoreTable():
                self._restore(change, item)
            case ddl.RevertRows():
                self._revert(change, item)
            case _:
                self._statement_of_database(change, item)

    def _statement_of_database(self, change: SchemaChange, item: ddl.Statement) -> None:
        match item:
            case ddl.CreateDatabase():
                if not (item.if_not_exists and self._is_known(self._case(item.database))):
                    self._charsets[self._case(item.database)] = item.charset
            case ddl.AlterDatabase():
                self._charsets[self._case(item.database) or change.database] = item.charset
            case ddl.RenameDatabase():
                for full in [full for full in self._open if full.database == self._case(item.database)]:
                    self._rename(change, full, TableName(self._case(item.new_name), full.table))
            case ddl.DropDatabase():
                self._charsets.pop(self._case(item.database), None)
                for full in [full for full in self._open if full.database == self._case(item.database)]:
                    self._drop_if_approved(change, full)
            case ddl.RestoreDatabase():
                self._restore_database(change, item)
            case _:
                pass

    def _truncate(self, change: SchemaChange, item: ddl.TruncateTable) -> None:
        name = self._full(item.name, change)
        table_id = self._named(change, name)
        if table_id and self._approved(change, name, ON_TRUNCATE):
            self.timeline.tables[table_id].cleared(change.position, change.time)
        if table_id and item.cascade:  # the source emptied the others, whatever becomes of this one
            self._block_emptied(change, name)

    def _block_emptied(self, change: SchemaChange, name: TableName) -> None:
        """Block the tables that TRUNCATE ... CASCADE of a table also empties, as far as their references are known."""
        parents, emptied = [name], {name}
        while parents:
            parent = parents.pop()
            for child, table_id in self._open.items():
                references = self._working[table_id].emptied_with
                if child not in emptied and any(reference.parents[-1] == parent for reference in references):
                    self._block(change, child, f"TRUNCATE TABLE {name} CASCADE empties this table, too")
                    parents.append(child)
                    emptied.add(child)

    def _alter(self, change: SchemaChange, item: ddl.AlterTable) -> None:
        name = self._full(item.name, change)
        target = next((self._full(a.name, change) for a in item.actions if isinstance(a, clause.RenameTo)), name)
        table_id = self._named(change, name)
        if table_id is None:
            self._alter_unowned(change, name, target, if_exists=item.if_exists)
            return
        if table_id in self._columnless:
            if (stated := change.structure_of(target)) is not None:
                self._describe_unknown(table_id, stated)
            if target != name:
                self._rename(change, name, target)
            return
        concerned = policies_of(item.actions)
        answers = {p: self._asked.answer(change.position, name, p, change.statement) for p in concerned}
        if Answer.OPEN in answers.values():
            return
        working, known = self._working[table_id], change.structure_of(target)
        was = working.expressions
        if item.ignore and working.may_merge_rows(item.actions):
            self._block(change, name, "ALTER IGNORE removed rows that a key makes equal without row events")
        try:
            working.alter(item.actions, change.position, denied=[p for p in answers if answers[p] == Answer.DENY])
            if known is not None:
                working.confirm(known, change.position)
        except DataError as error:
            if known is None:
                self._block_columns(change, name, str(error))
            else:
                working.adopt(known, change.position)
                self._block(change, name, str(error))
        if self._server.explicit_timestamps is None and is_mysql(change.dialect):
            for column in working.undecided_timestamps(item.actions, self.timeline.tables[table_id].schema):
                reason = f"older rows' value of the TIMESTAMP {column!r} depends on explicit_defaults_for_timestamp"
                self._block(change, name, f"{reason}: state source.options.explicit_defaults_for_timestamp")
        self._begin_version(change, name, was)
        if known is None:
            self._check_identity(change, name)
        self._refer(change, name, altered_keys(self._working[table_id], item.actions, change.position))
        self._note_altered(table_id, item.actions)
        self._change_rows_unseen(change, name, item.actions)
        if target != name:
            self._rename(change, name, target)

    def _alter_unowned(self, change: SchemaChange, name: TableName, target: TableName, *, if_exists: bool) -> None:
        """Begin the table of an ALTER whose name no table is known to have, as far as something is known of it."""
        if target != name:
            self._bring_in(change, name, target, if_exists=if_exists)
        elif name not in self.timeline.names:
            self._discover(change, target)
        elif not if_exists:
            self._alter_unknown(change, name)

    def _change_rows_unseen(self, change: SchemaChange, name: TableName, actions: Iterable[clause.AlterAction]) -> None:
        """Block a table where clauses change rows without row events."""
        for action in actions:
            if isinstance(action, clause.PartitionRows):
                self._partition_rows(change, name, action)
            elif isinstance(action, clause.Versioning) and action.added:
                self._block_columns(change, name, VERSIONED)
            elif isinstance(action, clause.Versioning):
                self._block(change, name, "DROP SYSTEM VERSIONING removes rows without row events")

    def _partition_rows(self, change: SchemaChange, name: TableName, action: clause.PartitionRows) -> None:
        """Record that rows appeared or disappeared without row events, also in the table that exchanged a partition."""
        reason = f"{action.kind.upper()} PARTITION changes rows without row events"
        self._block(change, name, reason)
        if action.other is None:
            return
        other = self._full(action.other, change)
        if action.kind == "attach":
            self._drop(change, other)
            return
        if action.kind == "detach" and other not in self._open:
            working = TableBuilder(change.position, self._server)
            working.copy_structure(self._working[self._open[name]])
            self._begin(change, other, working)
        self._block(change, other, reason)

    def _not_understood(self, change: SchemaChange, error: DataError) -> None:
        """Block the tables that the tool states for a statement, else those that its text names."""
        reason = str(error)
        for database, table, known in change.structure:
            name = TableName(database, table)
            if name in self._open and known is not None:
                self._apply_structure(change, name, known)
                self._block(change, name, reason)
            elif known is not None:
                self._suppose(change, name, reason)
            else:
                self._block_columns(change, name, reason)
        if not change.structure:
            cases = {
                "lower_case": self._server.lower_case_names is True,
                "upper_case": not is_mysql(change.dialect),
            }
            for name in named_tables(change.statement, change.database, self._open, **cases):
                self._block_columns(change, name, reason)
            for name in mentioned_tables(change.statement, change.database, **cases):
                self._suppose(change, name, reason)


def build_timeline(
    changes: Iterable[SchemaChange], server: Server | None = None, asked: AskedChanges | None = None
) -> Timeline:
    """Build a timeline from schema changes in any order, with repeats.

    :param server: settings of the source's server, None if they are not known.
    :param asked: changes that wait for a decision or have one, to which new ones are added.
    """
    server = server or Server()
    changes = list(changes)
    asked = asked or AskedChanges()
    builder = TimelineBuilder(server, copies_of(changes), asked)
    for position, change in in_source_order(changes, server):
        if change.describes:
            builder.take_rows(before=position)
            builder.describe(change, position)
        else:
            builder.apply(change)
    builder.take_rows()
    builder.note_undescribed()
    builder.note_comments()
    note_copies(builder.timeline)
    note_asked(builder.timeline, asked)
    return builder.timeline
