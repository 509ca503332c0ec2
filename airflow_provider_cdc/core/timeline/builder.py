# SPDX-License-Identifier: Apache-2.0
"""Build a timeline by applying schema changes in source order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from airflow_provider_cdc.core.ddl import alter_actions as clause
from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.ddl import table_parts as parts
from airflow_provider_cdc.core.ddl.generated import Expression, recomputed
from airflow_provider_cdc.core.ddl.named_tables import mentioned_tables, named_tables
from airflow_provider_cdc.core.ddl.parser import is_mysql, parse
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.faults import summary
from airflow_provider_cdc.core.model.clock_position import one_instant
from airflow_provider_cdc.core.model.schema import Default, TableName, TableSchema
from airflow_provider_cdc.core.timeline.added_columns import Fill, fill_of
from airflow_provider_cdc.core.timeline.asked_changes import (
    DENIABLE,
    ON_CREATE_TABLE,
    ON_DROP_TABLE,
    ON_MISSING_CREATE,
    ON_RENAME_TABLE,
    ON_TRUNCATE,
    Answer,
    AskedChanges,
)
from airflow_provider_cdc.core.timeline.change_kinds import ROWS_WITHOUT_CREATE, kinds_between, unseen_change
from airflow_provider_cdc.core.timeline.change_order import copies_of, in_source_order
from airflow_provider_cdc.core.timeline.clauses import policies_of
from airflow_provider_cdc.core.timeline.final_notes import note_asked, note_copies
from airflow_provider_cdc.core.timeline.foreign_keys import ForeignKeys, altered_keys
from airflow_provider_cdc.core.timeline.provenance import ANOTHER_TABLE
from airflow_provider_cdc.core.timeline.relations import Relations
from airflow_provider_cdc.core.timeline.table_builder import TableBuilder
from airflow_provider_cdc.core.timeline.timeline import (
    Block,
    SchemaChange,
    SchemaVersion,
    TableTimeline,
    Timeline,
)
from airflow_provider_cdc.core.timeline.tool_accounts import unexplained_loss
from airflow_provider_cdc.core.timeline.unordered import REASON, TWICE, Effect, creates, effect_of, in_doubt, still_near

# sql/table.cc of MariaDB: TABLE::delete_row, vers_insert_history_row
_VERSIONED = (
    "MariaDB logs a DELETE of a table WITH SYSTEM VERSIONING as an UPDATE, and its history as rows of the table"
)


class TimelineBuilder(Relations):
    """Apply schema changes one after the other, and hold the state of all tables after them."""

    def __init__(
        self, server: Server, copies: dict[str, list[str]] | None = None, asked: AskedChanges | None = None
    ) -> None:
        super().__init__()
        self._server, self._asked = server, asked or AskedChanges()
        self.timeline = Timeline(copies=copies or {})
        self._open: dict[TableName, str] = {}  # name -> id of the table that has it now
        self._working: dict[str, TableBuilder] = {}  # id -> columns, key and indexes now
        self._alike: dict[TableName, list[TableName]] = {}  # lower-case name -> names that tables have now
        self._foreign_keys = ForeignKeys(self._case)
        # database -> position of its newest snapshot, and the tables known before that it has not described so far
        self._undescribed: dict[str, tuple[str, dict[TableName, str]]] = {}
        self._rows_only: list[SchemaChange] = []  # structures observed in rows, until the next statement is known
        self._doubtful_since: dict[TableName, str] = {}
        self._not_dropped: set[TableName] = set()  # names whose DROP TABLE is left out
        self._charsets: dict[str, str | None] = {}  # of databases: default of the tables that are created in them
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

    def describe(self, change: SchemaChange, position: str) -> None:
        """Apply a snapshot's description of tables: its DROP and CREATE state structures, the tables did not change.

        :param position: where the structure begins to hold; not below that of a statement that was sent before it.
        """
        try:
            statements = parse(change.statement, change.dialect)
        except DataError:
            return  # a row that does not fit the known structure of its table waits or parks
        for item in statements:
            match item:
                case ddl.DropTable():
                    for table_id in filter(None, (self._open.get(self._full(name, change)) for name in item.names)):
                        self.timeline.tables[table_id].snapshots.append((change.position, change.snapshot or 0))
                case ddl.DropDatabase():
                    database = self._case(item.database)
                    owners = {name: table for name, table in self._open.items() if name.database == database}
                    self._undescribed[database] = position, owners
                case ddl.CreateTable(temporary=False):
                    self._describe(change, position, item)
                case _:
                    pass

    def _describe(self, change: SchemaChange, position: str, item: ddl.CreateTable) -> None:
        name = self._full(item.name, change)
        table_id = self._open.get(name)
        if table_id is None:
            new = name not in self.timeline.names
            self._create(change if new else replace(change, position=position), item)
            return
        if name.database in self._undescribed:
            self._undescribed[name.database][1].pop(name, None)
        described, known = self._new_table(change, name), change.structure_of(name)
        described.define(item)
        if known is not None:
            described.confirm(known)
        working = self._working[table_id]
        self._refer(change, name, self._foreign_keys.unknown(working, name, item.references))
        working.take_comments(described)
        if described.schema().shape() == working.schema().shape():
            return
        lost, was = unexplained_loss(working.schema(), described.schema()), working.expressions
        working.become(described, position)
        working.take_comments(described)
        self._begin_version(replace(change, position=position, server=None), name, was)
        if lost is not None:
            self._block(change, name, f"a snapshot describes the table otherwise, and no statement says why: {lost}")

    def note_undescribed(self) -> None:
        """Add a note to tables that the newest snapshot of their database lacks: they may have been dropped."""
        for position, known in self._undescribed.values():
            for name, table_id in known.items():
                if self._open.get(name) == table_id:
                    text = f"the snapshot at {position} lacks this table: dropped or left out? its content is kept"
                    self.timeline.tables[table_id].notes.append(text)

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

    def _full(self, name: parts.Name, change: SchemaChange) -> TableName:
        """Return the qualified name; if a tool omits the session's database, that of the only open table so named."""
        table = self._case(name.table)
        if name.database is not None:
            return TableName(self._case(name.database), table)
        if change.database:
            return TableName(change.database, table)
        matches = [full for full in self._open if full.table == table]
        for full in matches if len(matches) > 1 else ():
            self._block_columns(
                change, full, f"a statement names {name.table!r} without a database, and several have one"
            )
        return matches[0] if len(matches) == 1 else TableName("", table)

    def _case(self, name: str) -> str:
        return name.lower() if self._server.lower_case_names else name

    def _named(self, change: SchemaChange, name: TableName) -> str | None:
        """Return the id of the table with a name; if case may decide, block the tables that the name may also mean."""
        table_id = self._open.get(name)
        if table_id is None and self._server.lower_case_names is None and is_mysql(change.dialect):
            for other in list(self._alike.get(_lower(name), ())):
                reason = f"a statement names {name}, which is this table if the server has lower_case_table_names=1"
                self._block_columns(change, other, f"{reason}: state source.options.lower_case_table_names")
        return table_id

    def _create(self, change: SchemaChange, item: ddl.CreateTable) -> None:
        name = self._full(item.name, change)
        stays = item.if_not_exists or not item.or_replace
        if not item.if_not_exists:
            self._end_supposed(change, name)
            self._settle_rows_between(change, name)
        if name in self._open and (stays or not self._drop_if_approved(change, name)):
            return
        known = change.structure_of(name)
        working = self._new_table(change, name)
        source = None if item.like is None else self._open.get(self._full(item.like, change))
        if source is not None:
            working.copy_structure(self._working[source])
        else:
            working.define(item)
        if known is not None and (item.as_select or item.unknown is not None):
            working.adopt(known)
        elif known is not None:
            working.confirm(known)
        table_id = self._begin(change, name, working)
        if source is not None:
            self._copied[table_id] = source
        self._refer(change, name, item.references)
        if item.versioned:
            self._block_columns(change, name, _VERSIONED)
        if known is None and (item.as_select or (item.like is not None and not working.columns)):
            self._block_columns(change, name, "the columns of this CREATE TABLE cannot be known from its text")
        if known is None and item.unknown is not None:
            self._block_columns(change, name, item.unknown)
        if known is None:
            self._check_identity(change, name)

    def _new_table(self, change: SchemaChange, name: TableName) -> TableBuilder:
        return TableBuilder(change.position, self._server, self._charsets.get(name.database), self._said(name))

    def _is_known(self, database: str) -> bool:
        return database in self._charsets or any(name.database == database for name in self._open)

    def _check_identity(self, change: SchemaChange, name: TableName) -> None:
        """Block a table whose rows cannot be told apart."""
        unfit = self._working[self._open[name]].unfit_identity()
        if unfit is not None:
            reason = f"the NUMBER {unfit!r} without a scale cannot tell rows apart"
            self._block_columns(change, name, f"{reason}: state its columns under tables.<name>.create")

    def _new_structure(self, position: str) -> TableBuilder:
        return TableBuilder(position, self._server)

    def _begin(self, change: SchemaChange, name: TableName, working: TableBuilder, *, supposed: bool = False) -> str:
        self._end_supposed(change, name)
        text = f"{change.position}|{change.order}|{name.database}|{name.table}"
        table_id = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        self.timeline.tables[table_id] = TableTimeline(
            table_id,
            [SchemaVersion(change.position, working.schema())],
            names=[(change.position, name)],
            from_rows=not change.statement,
            supposed=supposed,
            described_at=change.snapshot,
        )
        self._working[table_id] = working
        self._own(change, name, table_id)
        if change.position and not supposed:  # else the pipeline's own rules state it
            self._ask(change, table_id, name, ON_CREATE_TABLE, "CREATE TABLE")
        if not change.statement:
            self._ask(change, table_id, name, ON_MISSING_CREATE, ROWS_WITHOUT_CREATE)
        return table_id

    def _own(self, change: SchemaChange, name: TableName, table_id: str | None) -> None:
        spans = self.timeline.names.setdefault(name, [])
        if spans and spans[-1][0] == change.position:
            spans.pop()
        spans.append((change.position, table_id))
        alike = self._alike.setdefault(_lower(name), [])
        if table_id is None:
            self._open.pop(name, None)
            self._alike[_lower(name)] = [other for other in alike if other != name]
        else:
            self._open[name] = table_id
            if name not in alike:
                alike.append(name)

    def _drop(self, change: SchemaChange, name: TableName) -> None:
        table_id = self._named(change, name)
        if table_id is not None:
            self.timeline.tables[table_id].names.append((change.position, None))
            self._own(change, name, None)

    def _drop_if_approved(self, change: SchemaChange, name: TableName) -> bool:
        """Drop a table unless nobody has approved that; return whether no table has the name any more."""
        self._end_supposed(change, name)
        if name in self._open and not self._approved(change, name, ON_DROP_TABLE):
            self._not_dropped.add(name)
            return False
        self._not_dropped.discard(name)
        self._drop(change, name)
        return True

    def _approved(self, change: SchemaChange, name: TableName, policy: str) -> bool:
        """Return whether a change of a table that exists is carried out; it may wait for a decision, or be denied."""
        return self._asked.answer(change.position, name, policy, change.statement) == Answer.APPLY

    def _ask(self, change: SchemaChange, table_id: str, name: TableName, policy: str, kind: str) -> None:
        """Let a table wait with a change that is on its timeline and that nobody has approved.

        :param kind: what to call the change where rows show it.
        """
        answer = self._asked.answer(change.position, name, policy, change.statement or kind)
        if answer == Answer.OPEN:
            self.timeline.tables[table_id].asked.append(change.position)

    def _rename(self, change: SchemaChange, old: TableName, new: TableName, *, if_exists: bool = False) -> None:
        table_id = self._named(change, old)
        if table_id is None:
            self._bring_in(change, old, new, if_exists=if_exists)
            return
        if new in self._open and new in self._not_dropped:
            # the rows at that name stay there, so this table's rows have nowhere to go
            self._block_columns(change, old, f"it took the name of {new}, whose DROP TABLE is not approved")
        self._end_supposed(change, new)
        self._settle_rows_between(change, new)
        if new in self._open and new != old:
            self._block_columns(change, new, ANOTHER_TABLE)
        self._note_taken(change, self.timeline.tables[table_id], old, new)
        self.timeline.tables[table_id].names.append((change.position, new))
        self._ask(change, table_id, old, ON_RENAME_TABLE, "RENAME TABLE")
        self._foreign_keys.follow(old, new)
        self._take_said(table_id, new)
        self._own(change, old, None)
        self._own(change, new, table_id)

    def _discover(self, change: SchemaChange, name: TableName) -> bool:
        """Begin a table that existed before the log, if the tool states its structure."""
        known = change.structure_of(name)
        if known is None:
            return False
        working = TableBuilder(change.position, self._server)
        working.adopt(known)
        self._older.add(self._begin(change, name, working))
        return True

    def _apply_observed(self, change: SchemaChange) -> None:
        """Apply the structure that rows themselves show: if a tool carries no DDL, a new name is a new column."""
        for database, table, known in change.structure:
            name = TableName(database, table)
            if name in self.timeline.doubtful or self.timeline.sent_again(name, change.position, change.time):
                continue
            if name not in self.timeline.names:
                if self._discover(change, name) and change.rows == "streamed":
                    self._ask_unseen(change, name, "a table that no snapshot had: made, renamed, moved or empty before")
                continue
            if known is not None and name not in self._open:
                self._go_on_without_create(change, name, known)
                continue
            table_id = self._open.get(name)
            if known is None or table_id is None:
                continue
            if table_id in self._columnless:
                self._describe_unknown(table_id, known)
                continue
            if change.rows == "read":
                self._settle_unseen(table_id)
            if change.keyless or (change.chosen_key and not self.timeline.tables[table_id].from_rows):
                known = self._working[table_id].with_own_key(known)  # a statement knows it
            if not change.fallback and self._may_lose_columns(change, name, known):
                self._apply_structure(change, name, known)

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
                self._block_columns(change, name, _VERSIONED)
            elif isinstance(action, clause.Versioning):
                self._block(change, name, "DROP SYSTEM VERSIONING removes rows without row events")

    def _apply_structure(self, change: SchemaChange, name: TableName, known: TableSchema) -> None:
        """Begin a schema version as a tool's account, or rows, have it, where no text says what changed."""
        working = self._working[self._open[name]]
        before = working.schema()
        working.adopt(known, change.position)
        self._begin_version(change, name, working.expressions)
        if change.rows == "streamed" and (what := unseen_change(before, working.schema())):
            self._ask_unseen(change, name, what)

    def _begin_version(self, change: SchemaChange, name: TableName, was: Mapping[int, Expression]) -> None:
        table, working = self.timeline.tables[self._open[name]], self._working[self._open[name]]
        before, schema = table.schema, working.schema()
        computed, unknown = recomputed(before, schema, was, working.expressions)
        if not is_mysql(change.dialect):
            named = [schema.column(item.column_id) for item in computed]
            unknown += [(column, "arithmetic of Oracle is not computed") for column in named if column is not None]
            computed = []
        for column, why in unknown:
            self._block(change, name, f"the generated column {column.name!r} cannot be computed for stored rows: {why}")
        if not schema.key and len(schema.columns_in_rows) < len(schema.columns):
            self._block_columns(change, name, "columns that the source dropped cannot stay in a table without a key")
        if schema != before or computed:
            streamed = bool(change.statement) and not change.describes
            server = self._kind_of(change)
            table.versions.append(SchemaVersion(change.position, schema, server, tuple(computed), streamed))
        for kind, policy in kinds_between(before, schema):
            if policy not in DENIABLE:
                self._ask(change, table.table_id, name, policy, kind)
        self._fill(change, table, name, before, schema)

    def _refer(self, change: SchemaChange, name: TableName, keys: Iterable[parts.ForeignKey]) -> None:
        """Record foreign keys."""
        table_id = self._open[name]
        table, working = self.timeline.tables[table_id], self._working[table_id]
        for reason in self._foreign_keys.refer(table, working, name, keys, change.position):
            self._block_columns(change, name, reason)

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

    def _fill(
        self, change: SchemaChange, table: TableTimeline, name: TableName, before: TableSchema, after: TableSchema
    ) -> None:
        """Record the value that stored rows get in each added column."""
        for column in after.columns:
            if before.column(column.id) is not None:
                continue
            fill = fill_of(column, change.time, self._server, self._kind_of(change))
            if column.id in self._working[table.table_id].without_fill:
                fill = Fill(Default("constant", None))
            if fill.unknown is not None:
                self._block(change, name, fill.unknown)
            if fill.note is not None:
                table.notes.append(fill.note)
            table.fills[column.id] = fill.default

    def _kind_of(self, change: SchemaChange) -> str | None:
        """Return ``mysql`` or ``mariadb``: what the record shows, else what the pipeline states."""
        return change.server or self._server.kind

    def _block(self, change: SchemaChange, name: TableName, reason: str) -> None:
        """Record that the rows stored so far are unknown from the change on."""
        table_id = self._open.get(name)
        if table_id is not None:
            self.timeline.tables[table_id].blocked.append(Block(change.position, reason))

    def _block_columns(self, change: SchemaChange, name: TableName, reason: str) -> None:
        """Record that the table's columns are unknown from the change on."""
        table_id = self._open.get(name)
        if table_id is not None:
            self.timeline.tables[table_id].blocked.append(Block(change.position, reason, columns=True))

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


def _lower(name: TableName) -> TableName:
    return TableName(name.database.lower(), name.table.lower())
