# SPDX-License-Identifier: Apache-2.0
"""Hold the timeline of a pipeline: which table a name means at a position, and its schema version there."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from airflow_provider_cdc.core.model.clock_position import SOURCE, is_clock_position
from airflow_provider_cdc.core.model.formula import Computed
from airflow_provider_cdc.core.model.relation import RelationChange
from airflow_provider_cdc.core.model.schema import Default, TableName, TableSchema
from airflow_provider_cdc.core.timeline.taken_name import TakenName


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """Hold one DDL record as the ledger stores it.

    :param position: its position in the source's log.
    :param order: breaks ties between records of one position: batch and topic offset.
    :param database: database of unqualified names.
    :param statement: DDL text.
    :param structure: (database, table, schema after the change or None when dropped), if the tool states it.
    :param time: source time in microseconds since the epoch; for a structure from rows that of the newest row.
    :param twice: the statement came before with the same source time; whether it was executed twice is not known.
    :param fallback: the structure comes from rows and counts only for a table without a statement.
    :param server: ``mysql`` or ``mariadb`` if the record shows it.
    :param snapshot: Kafka's time in milliseconds if a snapshot wrote it.
    :param dialect: as in :func:`core.ddl.parser.parse`.
    :param stale: the tool built the record before others that precede it on its partition, so it was sent before.
    :param sent: Kafka's time in milliseconds, for formats that are ordered by clock.
    :param copy_of: position of the same statement on another partition, if a tool writes each to every partition.
    :param relation: what the source's own log says, by numbers; then the statement's text is for people only.
    :param chosen_key: the key of the structure may be one that the tool was set to write, not the table's.
    :param keyless: the rows that show the structure have no key, which says nothing of the table's.
    :param rows: in a log without DDL the rows that show it: ``read`` by a full snapshot, or ``streamed``.
    """

    position: str
    order: int
    database: str
    statement: str
    structure: tuple[tuple[str, str, TableSchema | None], ...] = ()
    time: int | None = None
    fallback: bool = False
    server: str | None = None
    snapshot: int | None = None
    twice: bool = False
    dialect: str | None = None
    stale: bool = False
    sent: int | None = None
    copy_of: str | None = None
    chosen_key: bool = False
    relation: RelationChange | None = None
    keyless: bool = False
    rows: str = ""

    @property
    def identity(self) -> tuple[Any, ...]:
        """Identify a change with an exact position, so that a repeat of it is recognized.

        A statement that is sent again after a restart has the same position and text; so have its copies on other
        partitions.
        The DROP TABLE that begins a snapshot counts each time: the snapshot began again.
        """
        if not self.statement:
            return self.position, self.database, "", (self.structure, self.keyless, self.rows)
        begins = self.snapshot is not None and self.statement.lstrip()[:10].upper() == "DROP TABLE"
        return self.position, self.database, self.statement, (self.snapshot, self.order) if begins else None

    @property
    def describes(self) -> bool:
        """Return whether a snapshot describes a table with it; what the source itself logged did happen."""
        return self.snapshot is not None and self.relation is None

    def structure_of(self, name: TableName) -> TableSchema | None:
        """Return the structure that the tool describes a table with, None without."""
        return next((s for d, t, s in self.structure if s is not None and (d, t) == name), None)

    def described(self) -> set[TableName]:
        """Return the names of the tables that the tool describes."""
        return {TableName(database, table) for database, table, _ in self.structure}

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "position": self.position,
            "order": self.order,
            "database": self.database,
            "statement": self.statement,
            "structure": [[d, t, s.document() if s else None] for d, t, s in self.structure],
            "time": self.time,
            **({"fallback": True} if self.fallback else {}),
            **({} if self.server is None else {"server": self.server}),
            **({"snapshot": self.snapshot} if self.snapshot is not None else {}),
            **({"twice": True} if self.twice else {}),
            **({} if self.dialect is None else {"dialect": self.dialect}),
            **({"stale": True} if self.stale else {}),
            **({} if self.sent is None else {"sent": self.sent}),
            **({} if self.copy_of is None else {"copy_of": self.copy_of}),
            **({"chosen_key": True} if self.chosen_key else {}),
            **({} if self.relation is None else {"relation": self.relation.document()}),
            **({"keyless": True} if self.keyless else {}),
            **({"rows": self.rows} if self.rows else {}),
        }

    @staticmethod
    def from_document(data: dict[str, Any]) -> SchemaChange:
        """Rebuild from :meth:`document`."""
        structure = tuple((d, t, TableSchema.from_document(s) if s else None) for d, t, s in data["structure"])
        relation = RelationChange.from_document(data["relation"]) if data.get("relation") else None
        return SchemaChange(**{**data, "structure": structure, "relation": relation})


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """Hold the schema that a table has from a position on.

    :param server: ``mysql`` or ``mariadb`` if the schema change shows which of them made it.
    :param computed: generated columns that the schema change computed for stored rows, each after its operands.
    :param streamed: whether a statement of the stream made it: rows that a snapshot read at its position are older.
    """

    position: str
    schema: TableSchema
    server: str | None = None
    computed: tuple[Computed, ...] = ()
    streamed: bool = False

    def document(self) -> list[Any]:
        """Return plain JSON data."""
        computed = [item.document() for item in self.computed]
        return [self.position, self.schema.document(), self.server, computed, self.streamed]

    @staticmethod
    def from_document(data: list[Any]) -> SchemaVersion:
        """Rebuild from :meth:`document`."""
        position, schema, server, items, streamed = data
        computed = tuple(Computed.from_document(item) for item in items)
        return SchemaVersion(position, TableSchema.from_document(schema), server, computed, streamed)


@dataclass(slots=True)
class Reference:
    """Hold a foreign key by which deleting or changing a parent's row changes rows without row events.

    :param position: position since which it exists.
    :param columns: ids of the table's columns.
    :param parents: the parent's name, and its later names.
    :param parent_columns: names of the parent's columns then; empty for its primary key.
    :param until: position of its end, None while it exists.
    """

    position: str
    columns: tuple[int, ...]
    parents: list[TableName]
    parent_columns: tuple[str, ...] = ()
    until: str | None = None

    def document(self) -> list[Any]:
        """Return plain JSON data."""
        return [self.position, list(self.columns), [list(n) for n in self.parents], self.parent_columns, self.until]

    @staticmethod
    def from_document(data: list[Any]) -> Reference:
        """Rebuild from :meth:`document`."""
        position, columns, parents, parent_columns, until = data
        return Reference(position, tuple(columns), [TableName(*n) for n in parents], tuple(parent_columns), until)


class Block(NamedTuple):
    """Hold a change whose effect on a table the log does not state.

    :param columns: whether the table's columns are unknown too; else only the rows stored then are.
    :param by_rule: whether it is one because of what a pipeline states: rows that were made before did not meet it.
    :param lasts: whether only another change of the table ends it: no TRUNCATE, and no snapshot.
    """

    position: str
    reason: str
    columns: bool = False
    by_rule: bool = False
    lasts: bool = False

    def __str__(self) -> str:
        ends = "DROP TABLE and CREATE TABLE" if self.columns else "TRUNCATE TABLE, or DROP TABLE and CREATE TABLE,"
        return self.reason if self.lasts else f"{self.reason} -> {ends} at the source makes the table known again"


@dataclass(slots=True)
class TableTimeline:
    """Hold the history of one table from its creation on, under all its names.

    :param versions: its schema versions by position.
    :param fills: column id -> value that rows older than the column have.
    :param clears: positions of TRUNCATEs known from DDL text.
    :param clear_times: the source's times of these, in microseconds since the epoch, as far as they are known.
    :param names: (position, name) since which it has the name; None when dropped.
    :param blocked: changes whose effect cannot be known.
    :param notes: known inexact values, for people.
    :param references: foreign keys by which its rows change without row events.
    :param snapshots: (position, Kafka's time in milliseconds) of snapshots that began after the table was known.
    :param copies: position of a statement -> positions of its copies on other partitions.
    :param asked: positions of changes that wait for a decision.
    :param denied: positions of changes that were denied: they are left out.
    :param from_rows: whether only rows show that the table exists, and its structure.
    :param taken: the names of other tables that it took, where nothing else shows that its rows are known.
    :param supposed: whether no statement that is understood shows that the table exists; without rows it counts not.
    :param left_out: patterns of columns that are in no row, as the pipeline states them, in lower case.
    :param unwritten: columns of the source that its rows lack in the stream, though a snapshot may have them.
    :param unseen: positions of changes that only rows show, in a log without DDL.
    :param failovers: positions at which another server took over, which may lack rows of the table.
    :param comment: what the source says of it, empty where it says nothing any more, None where it never did.
    :param comments: the same of columns, by id.
    :param described_at: Kafka's time, in milliseconds, of the snapshot's statement that made it known, None where no
        snapshot did.
    """

    table_id: str
    versions: list[SchemaVersion]
    fills: dict[int, Default] = field(default_factory=dict)
    clears: list[str] = field(default_factory=list)
    names: list[tuple[str, TableName | None]] = field(default_factory=list)
    blocked: list[Block] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    snapshots: list[tuple[str, int]] = field(default_factory=list)
    copies: dict[str, list[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    from_rows: bool = False
    taken: list[TakenName] = field(default_factory=list)
    supposed: bool = False
    left_out: list[str] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)
    described_at: int | None = None
    unseen: list[str] = field(default_factory=list)
    failovers: list[str] = field(default_factory=list)
    clear_times: dict[str, int] = field(default_factory=dict)
    comment: str | None = field(default=None, compare=False)
    comments: dict[int, str] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> TableName | None:
        """The present name, None when dropped."""
        return self.names[-1][1]

    @property
    def last_name(self) -> TableName:
        """The present name, or the last one it had before it was dropped."""
        return next(name for _, name in reversed(self.names) if name is not None)

    @property
    def schema(self) -> TableSchema:
        """The present schema."""
        return self.versions[-1].schema

    @property
    def dropped_at(self) -> str | None:
        """The position of the DROP, None while the table exists."""
        return self.names[-1][0] if self.names[-1][1] is None else None

    def unknown_since(
        self, clears: Iterable[str] = (), *, settled: Collection[Block] = (), snapshot: str = ""
    ) -> Block | None:
        """Return the first change since which the table is unknown, None if it is known.

        :param clears: positions of TRUNCATEs that came as rows.
        :param settled: changes that the stored rows passed since, with a TRUNCATE after them.
        :param snapshot: position of the snapshot that the rows begin with: it states structure and rows.
        """
        cleared = max([*self.clears, *clears], default="")
        unsettled = (b for b in self.blocked if b not in settled and (b.lasts or not snapshot or b.position > snapshot))
        return next((block for block in unsettled if block.columns or block.position >= cleared), None)

    def cleared(self, position: str, time: int | None) -> None:
        """Note a TRUNCATE, and the source's time of it in microseconds since the epoch."""
        self.clears.append(position)
        if time is not None:
            self.clear_times[position] = time

    def leaves_out(self, column: str) -> bool:
        """Return whether a column is one of those that are in no row, as the pipeline or the source says."""
        return column in self.unwritten or any(fnmatchcase(column.lower(), pattern) for pattern in self.left_out)

    def version_at(self, position: str) -> int:
        """Return the index of the schema version valid at a position (0 also before the first)."""
        return max(0, bisect_right([version.position for version in self.versions], position) - 1)

    def events(self) -> list[tuple[str, str]]:
        """Return all events of the table as (position, text); the texts are part of stored digests."""
        return [
            *((version.position, f"schema {version.schema}") for version in self.versions),
            *((position, "clear") for position in self.clears),
            *((position, f"name {name}") for position, name in self.names),
            *((block.position, f"blocked {block.reason}") for block in self.blocked),
            *((item.position, f"references {item.columns}") for item in self.references),
            *((position, f"copy {copy}") for position, copies in self.copies.items() for copy in copies),
            *((position, "asked") for position in self.asked),
            *((position, "denied") for position in self.denied),
        ]

    def mark(self, position: str) -> str:
        """Return a digest of all events up to a position (inclusive)."""
        events = sorted(event for event in self.events() if event[0] <= position)
        return hashlib.blake2b(repr(events).encode(), digest_size=8).hexdigest()

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "table_id": self.table_id,
            "versions": [version.document() for version in self.versions],
            "fills": [[column, fill.kind, fill.text] for column, fill in self.fills.items()],
            "clears": self.clears,
            "names": [[position, list(name) if name else None] for position, name in self.names],
            "blocked": [list(item) for item in self.blocked],
            "notes": self.notes,
            "references": [item.document() for item in self.references],
            "snapshots": self.snapshots,
            "copies": self.copies,
            "asked": self.asked,
            "denied": self.denied,
            "from_rows": self.from_rows,
            **({"left_out": self.left_out} if self.left_out else {}),
            **({"unwritten": self.unwritten} if self.unwritten else {}),
            **({"clear_times": self.clear_times} if self.clear_times else {}),
            **({} if self.comment is None else {"comment": self.comment}),
            **({"comments": [*self.comments.items()]} if self.comments else {}),
        }

    @staticmethod
    def from_document(data: dict[str, Any]) -> TableTimeline:
        """Rebuild from :meth:`document`."""
        return TableTimeline(
            data["table_id"],
            [SchemaVersion.from_document(item) for item in data["versions"]],
            {column: Default(kind, text) for column, kind, text in data["fills"]},
            list(data["clears"]),
            [(position, TableName(*name) if name else None) for position, name in data["names"]],
            [Block(*item) for item in data["blocked"]],
            list(data["notes"]),
            [Reference.from_document(item) for item in data["references"]],
            [(position, sent) for position, sent in data["snapshots"]],
            {position: list(copies) for position, copies in data["copies"].items()},
            list(data["asked"]),
            list(data["denied"]),
            data["from_rows"],
            left_out=list(data.get("left_out", ())),
            unwritten=list(data.get("unwritten", ())),
            clear_times=dict(data.get("clear_times", {})),
            comment=data.get("comment"),
            comments={column: text for column, text in data.get("comments", ())},
        )


@dataclass(slots=True)
class Timeline:
    """Hold every table of a pipeline and, for each name, which table it meant since which position.

    :param doubtful: names whose table is not known, each with the reason.
    :param doubts: per name the spans in which it was doubtful, each ended by a CREATE TABLE that is certain.
    :param copies: position of a statement -> positions of its copies on other partitions, ascending.
    """

    tables: dict[str, TableTimeline] = field(default_factory=dict)
    names: dict[TableName, list[tuple[str, str | None]]] = field(default_factory=dict)
    doubtful: dict[TableName, str] = field(default_factory=dict)
    doubts: dict[TableName, list[tuple[str, str]]] = field(default_factory=dict)
    copies: dict[str, list[str]] = field(default_factory=dict)

    def spans(self, name: TableName) -> list[tuple[str, str | None]]:
        """Return (first position, table id or None) of a name, in order; of several at one position the last counts."""
        return self.names.get(name, [])

    def owner(self, name: TableName, position: str) -> str | None:
        """Return the id of the table that has this name at a position, None if there is no such table."""
        spans = self.names.get(name, [])
        index = bisect_right([start for start, _ in spans], position) - 1
        return spans[index][1] if index >= 0 else None

    def sent_again(self, name: TableName, position: str, source_time: int | None) -> bool:
        """Return whether rows with a name that no table has at a position were sent before a table lost the name.

        By the tool's clock they seem to come after the statement that freed the name. At the source no table had the
        name after it: so the rows are not newer than the statement, or a later statement about the name is known, and
        with it all rows before.

        :param source_time: of the newest row, in microseconds since the epoch.
        """
        spans = self.names.get(name, [])
        index = bisect_right([start for start, _ in spans], position) - 1
        if index < 0 or spans[index][1] is not None or not is_clock_position(position):
            return False
        freed = int(spans[index][0][SOURCE])
        return index + 1 < len(spans) or (source_time is not None and source_time // 1_000_000 <= freed)
