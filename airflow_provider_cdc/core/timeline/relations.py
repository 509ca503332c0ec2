# SPDX-License-Identifier: Apache-2.0
"""Apply schema changes that identify tables and columns by numbers of the source's catalogue.

What such a change says is the structure behind it, not what was done: that is found by comparing it with the structure
before. A number is one table, or one column, whatever it is called.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.model.position import begins_event, first_of, generation_of
from airflow_provider_cdc.core.model.relation import RelationChange, RelationEvent, RelationKind
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableName
from airflow_provider_cdc.core.timeline.asked_changes import ON_DROP_COLUMN, ON_RENAME_COLUMN, Answer, AskedChanges
from airflow_provider_cdc.core.timeline.barriers import keeps_values
from airflow_provider_cdc.core.timeline.failovers import Failovers
from airflow_provider_cdc.core.timeline.provenance import ANOTHER_TABLE
from airflow_provider_cdc.core.timeline.table_builder import TableBuilder
from airflow_provider_cdc.core.timeline.timeline import Block, SchemaChange

_PERSISTENCE, _ADDED, _TYPES = 1, 2, 4  # bits of a rewrite's reason
_CHANGES_ROWS = _PERSISTENCE | _ADDED | _TYPES
_WHOLE = frozenset({"smallint", "int", "bigint"})
_TEXT = "longtext"
_BY_INDEX = (
    "REPLICA IDENTITY USING INDEX lets a key move, or a row go, without the old key in the log: set REPLICA IDENTITY "
    "DEFAULT or FULL for the table, then send it again by a snapshot"
)
_WAS_BY_INDEX = "rows changed under REPLICA IDENTITY USING INDEX, which lets a key move without the old one in the log"
_MOVED = "a partition was attached or detached, and rows of partitions come under this name"


@dataclass
class _Relation:
    """Hold a table as its number in the catalogue means it.

    :ivar columns: by number of the column: the id of the table's column.
    :ivar rewritten: blocks of rewrites whose result is not described yet, with the bits of their reasons.
    :ivar waits: whether a change of its columns waits for a decision: until then it stays as it was.
    """

    table_id: str
    columns: dict[int, int] = field(default_factory=dict)
    rewritten: list[tuple[Block, int]] = field(default_factory=list)
    types: tuple[str, ...] = ()
    generated: tuple[int, ...] = ()
    children: tuple[int, ...] | None = None
    waits: bool = False


class Relations(Failovers):
    """The part of the timeline's builder that applies changes with numbers.

    :ivar _relations: the tables, by who numbered them and their number.
    """

    def __init__(self, server: Server, copies: dict[str, list[str]], asked: AskedChanges) -> None:
        super().__init__(server, copies, asked)
        self._relations: dict[tuple[str, int], _Relation] = {}
        self._applied: set[RelationChange] = set()
        self._rewritten_unknown: dict[tuple[str, int], list[tuple[str, RelationChange]]] = {}

    def _apply_relation(self, change: SchemaChange, relation: RelationChange) -> None:
        """Apply one change; an entry that a snapshot reads again is the same one."""
        if relation.event == RelationEvent.SERVER:
            self._take_server(change, relation)
            return
        if relation.event == RelationEvent.LACKING:
            name = TableName(relation.database, relation.table)
            if name in self._open and self.timeline.tables[self._open[name]].versions[0].position < change.position:
                self._block(change, name, relation.text)
            return
        if relation in self._applied:
            return
        self._applied.add(relation)
        number = _number(change, relation)
        known = None if number is None else self._relations.get(number)
        match relation.event:
            case RelationEvent.FAILED:
                self._not_described(change, relation, known)
            case RelationEvent.RELABELLED:
                self._relabel(change, relation, known)
            case RelationEvent.DROPPED:
                self._drop_relation(change, relation, number, known)
            case RelationEvent.REWRITTEN if known is not None:
                self._note_rewritten(known, change.position, relation)
            case RelationEvent.REWRITTEN if number is not None:
                self._rewritten_unknown.setdefault(number, []).append((change.position, relation))
            case RelationEvent.DESCRIBED if number is not None:
                known = known or self._begin_relation(change, relation, number)
                if known is not None:
                    self._describe_relation(change, relation, known)
            case _:
                pass

    def _not_described(self, change: SchemaChange, relation: RelationChange, known: _Relation | None) -> None:
        """Block the table of a statement that its triggers could not describe; without a number it may be any."""
        reason = f"the source could not describe a schema change: {relation.text}"
        names = list(self._open)
        if relation.oid is not None:
            names = [name for name, table_id in self._open.items() if known is not None and table_id == known.table_id]
        for name in names:
            self._block_columns(change, name, reason)

    def _relabel(self, change: SchemaChange, relation: RelationChange, known: _Relation | None) -> None:
        """Block the tables with columns of a type whose labels may have become other texts."""
        reason = f"ALTER TYPE {', '.join(relation.types)} may have renamed a label, which changes stored rows"
        concerned = [one for one in self._relations.values() if set(relation.types) & set(one.types)]
        for one in concerned if known is None else [known]:
            name = self.timeline.tables[one.table_id].name
            if name is not None:
                self._block(change, name, reason)

    def _drop_relation(
        self,
        change: SchemaChange,
        relation: RelationChange,
        number: tuple[str, int] | None,
        known: _Relation | None,
    ) -> None:
        name = TableName(relation.database, relation.table)
        if known is not None:
            name = self.timeline.tables[known.table_id].name or name
        elif any(one.table_id == self._open.get(name) for one in self._relations.values()):
            return  # another table has the name
        self._drop_if_approved(change, name)
        if number is not None:
            self._relations.pop(number, None)

    def _note_rewritten(self, known: _Relation, position: str, relation: RelationChange) -> None:
        """Block a table whose rows were written again, until its description shows that they can be computed."""
        if relation.rewrite & _CHANGES_ROWS or not relation.rewrite:
            block = Block(position, "ALTER TABLE wrote all rows again, and the log does not say what they are")
            self.timeline.tables[known.table_id].blocked.append(block)
            known.rewritten.append((block, relation.rewrite or _CHANGES_ROWS))

    def _begin_relation(
        self, change: SchemaChange, relation: RelationChange, number: tuple[str, int]
    ) -> _Relation | None:
        """Begin the table of a number that is not known; None where its name belongs to one that must stay.

        A table that no statement made is older than the log of changes: all rows of its name are its own.
        """
        assert relation.structure is not None, "it is described"
        name = TableName(relation.database, relation.table)
        owner = self._open.get(name)
        bound = next((key for key, one in self._relations.items() if one.table_id == owner), None)
        if owner is not None and (bound is None or bound[0] != number[0]):
            # stated by the pipeline, or numbered by another server: a copy, or the same one after an upgrade
            if bound is not None:
                del self._relations[bound]
            return self._bind(relation, number, owner)
        if owner is not None:
            if not self._drop_if_approved(change, name):
                return None
            if not relation.created:
                self._begin_unknown(change, name, ANOTHER_TABLE)
                return self._bind(relation, number, self._open[name])
        spans = self.timeline.spans(name)
        begin = self._begins_at(change, relation, spans)
        known = self._relations[number] = _Relation("")
        working = TableBuilder(begin, self._server)
        working.columns = [
            replace(column, id=self._column_id(known, number, column)) for column in relation.structure.columns
        ]
        working.key = [known.columns[attnum] for attnum in relation.structure.key]
        self._end_former_name(name, begin)
        if relation.created:
            self._settle_rows_between(change, name)
        supposed = relation.kind != RelationKind.TABLE
        known.table_id = self._begin(replace(change, position=begin), name, working, supposed=supposed)
        if not relation.created:
            self._older.add(known.table_id)
        if spans and not relation.created:
            self._block(change, name, f"{name} was free before, and the log does not show where its rows came from")
        self._note_columns(relation, known)
        for position, rewrite in self._rewritten_unknown.pop(number, ()):
            self._note_rewritten(known, position, rewrite)
        return known

    def _end_former_name(self, name: TableName, position: str) -> None:
        """Note that rows of a name are no more those of the table that was renamed from it: it may have read some."""
        owner = self.timeline.spans(name)[-1][1] if self.timeline.spans(name) else None
        if owner is not None and owner != self._open.get(name) and self.timeline.tables[owner].name is not None:
            table = self.timeline.tables[owner]
            table.names.append((max(position, table.names[-1][0]), table.name))

    def _begins_at(self, change: SchemaChange, relation: RelationChange, spans: list[tuple[str, str | None]]) -> str:
        """Return the position from which on rows of its name are those of a table that is new here.

        :param spans: of its name so far.
        """
        last, owner = spans[-1] if spans else ("", None)
        if relation.created and relation.rows_before:
            # its rows have first numbers of their own where the log names no commit before the transaction
            return last if begins_event(change.position) else max(last, first_of(change.position))
        return change.position if relation.created or owner is not None else last

    def _bind(self, relation: RelationChange, number: tuple[str, int], table_id: str) -> _Relation:
        """Let a number mean a table that is known by its name; columns of the same names are the same."""
        assert relation.structure is not None, "it is described"
        names = {column.name: column.id for column in self._working[table_id].columns if not column.dropped}
        numbers = {column.id: names[column.name] for column in relation.structure.columns if column.name in names}
        known = self._relations[number] = _Relation(table_id, numbers)
        for position, rewrite in self._rewritten_unknown.pop(number, ()):
            self._note_rewritten(known, position, rewrite)
        return known

    def _column_id(self, known: _Relation, number: tuple[str, int], column: Column, renamed: str = "") -> int:
        """Return the id of a column by the numbers of table and column: the same in every batch."""
        if column.id not in known.columns or renamed:
            text = f"{number[0]}|{number[1]}|{column.id}|{renamed}"
            digest = hashlib.blake2b(text.encode(), digest_size=7).digest()
            known.columns[column.id] = int.from_bytes(digest, "big")
        return known.columns[column.id]

    def _describe_relation(self, change: SchemaChange, relation: RelationChange, known: _Relation) -> None:
        """Carry out what the structure of a table shows that was done to it: its name, its columns, its key."""
        table = self.timeline.tables[known.table_id]
        if known.waits or table.name is None or self._open.get(table.name) != known.table_id:
            return  # it waits, or it was dropped
        name = TableName(relation.database, relation.table)
        if name != table.name:
            old = table.name
            self._end_former_name(name, change.position)
            self._rename(change, old, name)
            # the connector may not learn the new name: rows of the old one are this table's until another has it
            self.timeline.names[old].pop()
        self._note_partitions(change, relation, known, name)
        self._note_identity(change, relation, known, name)
        if not self._alter_relation(change, relation, known, name):
            known.waits = True
            return
        self._note_columns(relation, known)

    def _alter_relation(
        self, change: SchemaChange, relation: RelationChange, known: _Relation, name: TableName
    ) -> bool:
        """Begin a schema version where columns or key differ; return whether nobody has to decide about it first."""
        assert relation.structure is not None, "it is described"
        number = _number(change, relation)
        assert number is not None, "it is known"
        working, was = self._working[known.table_id], self._working[known.table_id].expressions
        before = {column.id: column for column in working.columns if not column.dropped}
        columns = [replace(column, id=self._column_id(known, number, column)) for column in relation.structure.columns]
        gone = [column for column in before.values() if column.id not in {new.id for new in columns}]
        renamed = [
            (before[new.id], attnum, new)
            for attnum, new in zip([column.id for column in relation.structure.columns], columns, strict=True)
            if new.id in before and before[new.id].name != new.name
        ]
        answers = {
            policy: self._asked.answer(change.position, name, policy, change.statement)
            for policy, some in ((ON_DROP_COLUMN, gone), (ON_RENAME_COLUMN, renamed))
            if some
        }
        if Answer.OPEN in answers.values():
            return False
        key = [known.columns[attnum] for attnum in relation.structure.key]
        stays = [column for column in working.columns if column.dropped]
        if answers.get(ON_DROP_COLUMN) == Answer.DENY:
            stays += gone
        if answers.get(ON_RENAME_COLUMN) == Answer.DENY:
            for old, attnum, new in renamed:
                own = self._column_id(known, number, replace(new, id=attnum), renamed=new.name)
                columns[columns.index(new)] = replace(new, id=own)
                key = [own if i == old.id else i for i in key]
                working.without_fill.add(own)
                stays.append(old)
        if any(column.id in working.key for column in stays):
            self._block_columns(change, name, "a column of the key is dropped or renamed, so it cannot stay as it was")
        columns = [_as_known(before.get(column.id), column) for column in columns]
        self._settle_rewrites(change, relation, known, name, before, columns)
        names = {column.name for column in columns}
        columns += [column.only_in_target() for column in stays if column.name not in names]
        working.columns, working.key = columns, key
        self._begin_version(change, name, was)
        return True

    def _settle_rewrites(
        self,
        change: SchemaChange,
        relation: RelationChange,
        known: _Relation,
        name: TableName,
        before: Mapping[int, Column],
        columns: list[Column],
    ) -> None:
        """Block a table whose stored rows got values that the log does not have; take back a block that was not so."""
        why = []
        reasons = 0
        for _, bits in known.rewritten:
            reasons |= bits
        numbers = {column_id: attnum for attnum, column_id in known.columns.items()}
        filled = [
            column.name for column in columns if column.id not in before and numbers.get(column.id) in relation.filled
        ]
        if reasons & _PERSISTENCE:
            why.append("SET LOGGED or SET UNLOGGED: rows of an unlogged table are in no log")
        if reasons & _ADDED and filled:
            why.append(f"each stored row got a value of its own in {', '.join(filled)}")
        retyped = [(before[new.id], new) for new in columns if new.id in before and before[new.id].type != new.type]
        exact = all(
            _converts_exactly(old.type, new.type, printed=numbers.get(new.id) in relation.printed)
            for old, new in retyped
        )
        if reasons & _TYPES and not (relation.plain and retyped and exact):
            why.append(f"{_types(retyped) or 'a column was converted'}: the log does not have what the values became")
        elif retyped and not exact:
            why.append(f"{_types(retyped)}: it is not known how the server would convert it")
        was_generated = set(known.generated) - set(relation.generated)
        shown = [c.name for c in columns if c.id not in before and numbers.get(c.id) in was_generated]
        if shown:
            why.append(f"no row had {', '.join(shown)} as long as it was generated")
        table = self.timeline.tables[known.table_id]
        for block, _ in known.rewritten:
            table.blocked.remove(block)
        known.rewritten = []
        for reason in why:
            self._block(change, name, reason)

    def _note_partitions(
        self, change: SchemaChange, relation: RelationChange, known: _Relation, name: TableName
    ) -> None:
        """Block tables whose rows begin to come under another name, or cease to, without a record."""
        if relation.children is None:
            if relation.moves and relation.kind != RelationKind.PARTITION:
                self._block(change, name, _MOVED)
            return
        before, known.children = known.children, relation.children
        moved = set(before or relation.children) ^ set(relation.children)
        if not relation.via_root or before is None or not relation.moves:
            return
        self._block(change, name, _MOVED)
        for oid in moved:
            child = self._relations.get(((_number(change, relation) or ("", 0))[0], oid))
            partition = None if child is None else self.timeline.tables[child.table_id].name
            if partition is not None:
                self._block(change, partition, f"it became a partition of {name}, or was one, whose name its rows have")

    def _note_identity(self, change: SchemaChange, relation: RelationChange, known: _Relation, name: TableName) -> None:
        """Block a table as long as an index names its changed rows: behind that its rows may be made known again."""
        table = self.timeline.tables[known.table_id]
        lasting = next((block for block in table.blocked if block.lasts), None)
        if relation.by_index and lasting is None:
            table.blocked.append(Block(change.position, _BY_INDEX, columns=True, lasts=True))
        elif lasting is not None and not relation.by_index:
            table.blocked.remove(lasting)
            self._block(change, name, _WAS_BY_INDEX)

    def _note_columns(self, relation: RelationChange, known: _Relation) -> None:
        """Note which columns no row has, and the types whose labels may be renamed."""
        known.types, known.generated = relation.types, relation.generated
        known.children = relation.children if known.children is None else known.children
        table = self.timeline.tables[known.table_id]
        fresh = [name for name in relation.left_out if name not in table.unwritten]
        table.unwritten += fresh
        if fresh:
            table.notes.append(f"rows of the stream lack {', '.join(fresh)}: the table is without it")


def _number(change: SchemaChange, relation: RelationChange) -> tuple[str, int] | None:
    """Return who numbered a table, and its number; a log that began again may be of another server."""
    if relation.oid is None:
        return None
    return relation.system or str(generation_of(change.position) if change.position else 0), relation.oid


def _as_known(was: Column | None, now: Column) -> Column:
    """Return a column with the default that it was added with: what it is later concerns no stored row."""
    return now if was is None else replace(now, default=was.default)


def _converts_exactly(old: ColumnType, new: ColumnType, *, printed: bool) -> bool:
    """Return whether a conversion gives what the server's own gives: of numbers to numbers, or to their text.

    A value that the new type could not hold would have failed at the source.

    :param printed: whether the new type holds numbers as the server prints them.
    """
    if keeps_values(old, new):
        return True
    if old.name in _WHOLE | {"decimal"} and new.name in _WHOLE | {"decimal"}:
        return old.name in _WHOLE or new.name == "decimal"  # a fraction is rounded half away from zero by both
    return old.name in _WHOLE | {"decimal"} and new.name == _TEXT and printed


def _types(retyped: list[tuple[Column, Column]]) -> str:
    return ", ".join(f"{new.name} from {old.type} to {new.type}" for old, new in retyped)
