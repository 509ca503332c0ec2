# SPDX-License-Identifier: Apache-2.0
"""A plain model of a PostgreSQL server: what statements do to tables, and what they leave in its WAL.

It shares no code with the product: it is the oracle that says what the tables in the lake must hold.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from tests.histories.source import RefusedError
from tests.postgres_histories.kinds import Kind

Name = tuple[str, str]  # schema, table
Row = dict[int, Any]  # by number of the column
START = 1_700_000_000_000  # milliseconds since 1970 at which histories begin


@dataclass(frozen=True)
class Column:
    """One column.

    :param default: of rows that do not name it: none or one value.
    :param missing: what rows have that were stored before the column was added: none or one value.
    """

    attnum: int
    name: str
    kind: Kind
    notnull: bool = False
    default: tuple[Any, ...] = ()
    missing: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False)
class Structure:
    """A table as the catalogue has it at one moment.

    :param key: numbers of the primary key's columns.
    :param identity: ``d`` (DEFAULT), ``f`` (FULL), ``n`` (NOTHING) or ``i`` (USING INDEX, of the column ``index``).
    :param version: of the catalogue, unlike after each change of the table.
    """

    oid: int
    name: Name
    columns: tuple[Column, ...]
    key: tuple[int, ...] = ()
    identity: str = "d"
    index: int | None = None
    version: int = 0

    def named(self, name: str) -> Column:
        """Return a column; refuses when there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise RefusedError(f"no column {name}")

    def has(self, name: str) -> bool:
        """Return whether there is a column of this name."""
        return any(column.name == name for column in self.columns)

    @property
    def identifying(self) -> tuple[int, ...]:
        """The columns of the replica identity: none where the server cannot say which row changed."""
        if self.identity == "f":
            return tuple(column.attnum for column in self.columns)
        if self.identity == "i" and self.index is not None:
            return (self.index,)
        return self.key if self.identity == "d" else ()


@dataclass
class Table:
    """A table now; rows by a number that an UPDATE keeps."""

    structure: Structure
    rows: dict[int, Row] = field(default_factory=dict)

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """Return the values of the key's columns."""
        return tuple(row[attnum] for attnum in self.structure.key)


@dataclass(frozen=True, eq=False)
class Change:
    """One change in the WAL.

    :param op: ``c``, ``u``, ``d``, ``t``, or ``k`` for an update of what identifies the row.
    :param unchanged: columns whose long values the WAL lacks.
    :param uid: number of the row.
    """

    op: str
    structure: Structure
    lsn: int
    before: Row | None = None
    after: Row | None = None
    unchanged: frozenset[int] = frozenset()
    uid: int = 0


@dataclass(frozen=True)
class Content:
    """State what one table must hold."""

    structure: Structure
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Picture:
    """All tables at one moment.

    :param hazards: by table what may keep it from being equal to the source: parts of reasons.
    """

    tables: dict[Name, Content]
    hazards: dict[Name, frozenset[str]]


@dataclass
class Transaction:
    """Hold what one transaction leaves in the WAL.

    :param end: place behind its commit.
    :param millis: time of its commit.
    """

    xid: int
    changes: list[Change] = field(default_factory=list)
    end: int = 0
    millis: int = 0
    picture: Picture | None = None
    described: set[int] = field(default_factory=set)  # numbers of the tables that DDL changed


class Server:
    """Tables by name, and the WAL: transactions in the order of their commits.

    :param logs_ddl: whether event triggers write each DDL into a table.
    """

    def __init__(self, seed: str, *, logs_ddl: bool) -> None:
        self.chance, self.logs_ddl = random.Random(seed), logs_ddl
        self.tables: dict[Name, Table] = {}
        self.wal: list[Transaction] = []
        self.lsn, self.millis = 26_000_000, START
        self.ddl_rows: list[Row] = []
        self.ddl_id, self.system = 0, "7577000000000000001"
        self.open: list[Transaction] = []
        self.hazards: dict[int, set[str]] = {}
        self.names: dict[int, set[Name]] = {}  # that each table ever had
        self.had: dict[Name, int] = {}  # by name: the table that had it last
        self.unread: dict[Name, set[str]] = {}  # by name: reasons of records that stay in the quarantine
        self._attnums: dict[int, int] = {}
        self._xid, self._oid, self._uid, self._version = 700, 16_400, 0, 0

    def run(self, statements: Sequence[Statement]) -> bool:
        """Carry out a transaction; return whether it was committed: nothing is left of one that is refused."""
        transaction = self._execute(statements)
        if transaction is None:
            return False
        self._commit(transaction)
        return True

    def begin(self, statement: Statement) -> None:
        """Carry out a statement in a transaction that stays open, and locks its rows."""
        before = {name: dict(table.rows) for name, table in self.tables.items()}
        transaction = self._execute([statement])
        if transaction is not None:
            for name, rows in before.items():
                self.tables[name].rows = rows
            if transaction.changes:
                self.open.append(transaction)

    def end(self) -> None:
        """Commit the oldest transaction that is open."""
        if not self.open:
            raise RefusedError("no transaction is open")
        transaction = self.open.pop(0)
        for change in transaction.changes:
            rows = self.tables[change.structure.name].rows
            rows.pop(change.uid, None)
            if change.after is not None:
                rows[change.uid] = dict(change.after)
        self._commit(transaction)

    def _execute(self, statements: Sequence[Statement]) -> Transaction | None:
        saved = deepcopy(self.tables, _shared(self.tables)), list(self.ddl_rows), deepcopy(self.hazards)
        self._xid += 1
        transaction = Transaction(self._xid)
        try:
            for statement in statements:
                statement.apply(self, transaction)
        except RefusedError:
            self.tables, self.ddl_rows, self.hazards = saved
            return None
        return transaction

    def _commit(self, transaction: Transaction) -> None:
        self.step()
        self.millis += self.chance.choice((0, 1, 40, 5000))
        transaction.end, transaction.millis = self.lsn, self.millis
        if self.logs_ddl or not transaction.described:  # else only the next row shows what changed
            transaction.picture = self.picture()
        self.wal.append(transaction)

    def step(self) -> int:
        """Return the next place in the WAL."""
        self.lsn += 8 * self.chance.randint(5, 400)
        return self.lsn

    def restore(self) -> None:
        """Go on as another cluster that was made from a dump: with lower places, and other numbers of tables."""
        self.lsn //= 3
        self.system = str(int(self.system) + 1)
        for table in self.tables.values():
            structure = table.structure
            number = {column.attnum: n for n, column in enumerate(structure.columns, 1)}
            columns = tuple(replace(column, attnum=number[column.attnum], missing=()) for column in structure.columns)
            hazards = self.hazards.pop(structure.oid, None)
            self._version += 1
            table.structure = Structure(
                self.oid(),
                structure.name,
                columns,
                tuple(number[part] for part in structure.key),
                structure.identity,
                None if structure.index is None else number[structure.index],
                self._version,
            )
            table.rows = {
                uid: {number[attnum]: value for attnum, value in row.items()} for uid, row in table.rows.items()
            }
            if hazards:
                self.hazards[table.structure.oid] = hazards

    def uid(self) -> int:
        """Return a number for a new row."""
        self._uid += 1
        return self._uid

    def oid(self) -> int:
        """Return a number for a new table."""
        self._oid += 5
        return self._oid

    def new_attnum(self, oid: int, columns: Sequence[Column]) -> int:
        """Return a number for a new column, which no column of the table ever had."""
        newest = max([self._attnums.get(oid, 0), *(column.attnum for column in columns)])
        self._attnums[oid] = newest + 1
        return newest + 1

    def table(self, name: Name) -> Table:
        """Return a table; refuses when there is none."""
        if name not in self.tables:
            raise RefusedError(f"no table {name}")
        return self.tables[name]

    def change(self, name: Name, /, **how: Any) -> Structure:
        """Give a table another structure; refuses while an open transaction has rows of it."""
        table = self.table(name)
        self.unlocked(table)
        oid, numbers = table.structure.oid, [column.attnum for column in table.structure.columns]
        self._attnums[oid] = max([self._attnums.get(oid, 0), *numbers])
        self._version += 1
        table.structure = replace(table.structure, version=self._version, **how)
        return table.structure

    def unlocked(self, table: Table) -> None:
        """Refuse where an open transaction has rows of a table."""
        if any(change.structure.oid == table.structure.oid for one in self.open for change in one.changes):
            raise RefusedError("the table is locked")

    def free_rows(self, table: Table) -> list[int]:
        """Return the rows that no open transaction has."""
        locked = {change.uid for one in self.open for change in one.changes}
        return [uid for uid in table.rows if uid not in locked]

    def is_taken(self, table: Table, row: Row, but: int = 0) -> bool:
        """Return whether another row, also of an open transaction, has the key or the indexed value."""
        structure, others = table.structure, [other for uid, other in table.rows.items() if uid != but]
        for transaction in self.open:
            mine = [change for change in transaction.changes if change.structure.oid == structure.oid]
            others += [image for change in mine for image in (change.before, change.after) if image is not None]
        unique = [structure.key] if structure.key else []
        unique += [(structure.index,)] if structure.index is not None else []
        return any(all(other[part] == row[part] for part in parts) for parts in unique for other in others)

    def take(self, name: Name) -> None:
        """Note that a table took a name; of another one's rows, read again, the key is then looked up in this one."""
        self.names.setdefault(self.table(name).structure.oid, set()).add(name)
        if self.had.setdefault(name, self.table(name).structure.oid) != self.table(name).structure.oid:
            self.endanger(name, "record.key_made_up")

    def endanger(self, name: Name, *reasons: str) -> None:
        """Note what may keep a table from being equal to the source."""
        self.unread.setdefault(name, set()).update(one for one in reasons if one.startswith("record."))
        self.hazards.setdefault(self.table(name).structure.oid, set()).update(reasons)

    def picture(self) -> Picture:
        """Return what the lake must hold now."""
        contents = {
            name: Content(table.structure, tuple(dict(row) for row in table.rows.values()))
            for name, table in self.tables.items()
        }
        return Picture(contents, {name: self._hazards_of(name, one.structure.oid) for name, one in contents.items()})

    def _hazards_of(self, name: Name, oid: int) -> frozenset[str]:
        """Return those of a table, and those of records that came under a name which it has or had."""
        names = {name, *self.names.get(oid, ())}
        return frozenset(self.hazards.get(oid, ())).union(*(self.unread.get(one, ()) for one in names))


def _shared(tables: dict[Name, Table]) -> dict[int, Any]:
    """Return the memory of a deep copy that keeps structures as they are."""
    return {id(table.structure): table.structure for table in tables.values()}


class Statement(ABC):
    """One statement."""

    @abstractmethod
    def apply(self, server: Server, transaction: Transaction) -> None:
        """Change the server's tables and note what the WAL has of it; refuses what the server refuses."""

    @abstractmethod
    def sql(self) -> str:
        """Return the statement for people."""


def full(name: Name) -> str:
    """Return a table's name with its schema."""
    return f'"{name[0]}"."{name[1]}"'


def names_of(structure: Structure, attnums: Collection[int]) -> list[str]:
    """Return the names of columns."""
    by_number = {column.attnum: column.name for column in structure.columns}
    return [by_number[attnum] for attnum in attnums]
