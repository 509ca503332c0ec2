# SPDX-License-Identifier: Apache-2.0
"""A plain model of a MySQL-like source: what statements do to tables, and which events they leave in its log.

It shares no code with the product: it is the oracle that says what the tables in the lake must hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.histories.kinds import Kind

Name = tuple[str, str]  # database, table
Row = dict[str, Any]


class RefusedError(Exception):
    """The source refuses the statement; it changes nothing and leaves no event."""


@dataclass(frozen=True)
class Column:
    """One column; ``default`` counts only where ``has_default``, and ``was`` where rules follow a name."""

    name: str
    kind: Kind
    nullable: bool = True
    has_default: bool = False
    default: Any = None
    was: tuple[str, ...] = field(default=(), compare=False)  # names that it had

    def named(self, name: str) -> Column:
        """Return the column under another name."""
        return replace(self, name=name, was=(*self.was, self.name))

    def sql(self) -> str:
        """Return the column's definition."""
        text = f"{quoted(self.name)} {self.kind.sql()} {'NULL' if self.nullable else 'NOT NULL'}"
        return text + (f" DEFAULT {self.kind.literal(self.default)}" if self.has_default else "")

    def absent(self) -> Any:
        """Return what a row has that does not name the column."""
        return self.default if self.has_default or self.nullable else self.kind.implicit()


@dataclass(frozen=True)
class Structure:
    """Columns in order and the names of the key's columns."""

    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    def named(self, name: str) -> Column:
        """Return a column; refuses when there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise RefusedError(f"no column {name}")

    def has(self, name: str) -> bool:
        """Return whether there is a column of this name, in whatever case."""
        return any(column.name.lower() == name.lower() for column in self.columns)


@dataclass
class Table:
    """A table now: ``uid`` stays over renames."""

    uid: int
    structure: Structure
    rows: list[Row] = field(default_factory=list)
    feed: list[tuple[str, Row]] = field(default_factory=list)  # row after each change, of a delete before it
    dead: list[Row] = field(default_factory=list)  # rows that went, with their last values, one a key
    has_first_key: bool = True
    knows_dead: bool = True  # else a change of the structure would have no meaning for one of them

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """Return the values of the key's columns."""
        return tuple(row[name] for name in self.structure.key)

    def bury(self, rows: Iterable[Row]) -> None:
        """Remember rows that went."""
        self.dead += [dict(row) for row in rows]
        self.settle()

    def restate(self, seen: Table) -> None:
        """Take the rows as a new full snapshot reads them: nobody saw what happened to them since.

        :param seen: the table as it was then.
        """
        keys = {self.key_of(row) for row in self.rows}
        went = [row for row in seen.rows if self.key_of(row) not in keys]
        read = [("snapshot_begin", {}), *(("missing", row) for row in went), *(("snapshot", row) for row in self.rows)]
        self.feed = [*seen.feed, *((op, dict(row)) for op, row in read)]
        self.dead = list(seen.dead)
        self.bury(went)

    def settle(self) -> None:
        """Forget rows that went whose key another row has, or went with later."""
        later: set[tuple[Any, ...]] = {self.key_of(row) for row in self.rows}
        others = []
        for row in reversed(self.dead):
            if self.key_of(row) not in later:
                others.append(row)
            later.add(self.key_of(row))
        self.dead = others[::-1]


@dataclass(frozen=True)
class RowEvent:
    """One row changed: ``c``, ``u``, ``d``, or ``k`` for an update that changes the key."""

    name: Name
    structure: Structure
    op: str
    before: Row | None
    after: Row | None


@dataclass(frozen=True)
class TruncateEvent:
    """TRUNCATE, which is DDL to the source and a row record to the connector."""

    name: Name
    structure: Structure


@dataclass(frozen=True)
class TableChange:
    """State what the connector says of one table after a DDL."""

    type: str
    name: Name
    structure: Structure | None


@dataclass(frozen=True)
class DdlEvent:
    """A DDL statement.

    :param statement: its text as the server logs it; names are qualified, but for that of a CREATE TABLE.
    :param kind: ``CREATE``, ``ALTER``, ``DROP`` or ``RENAME`` (also an ALTER that begins with RENAME TO).
    :param name: first table that it names, of a rename the new name.
    :param records: what Debezium makes of it, one or several records at one place: database, text, tables.
    """

    statement: str
    kind: str
    name: Name
    records: tuple[tuple[str, str, tuple[TableChange, ...]], ...]


Event = RowEvent | TruncateEvent | DdlEvent


@dataclass(frozen=True)
class Content:
    """State what one table must hold."""

    structure: Structure
    rows: tuple[Row, ...]
    dead: tuple[Row, ...] | None = ()  # rows that went, None where that is not known
    feed: tuple[tuple[str, Row], ...] | None = ()  # None where that is not known
    has_first_key: bool = True


@dataclass(frozen=True)
class Picture:
    """All tables at one moment, and the fate of the names that no table has any more."""

    tables: dict[Name, Content]
    dropped: frozenset[Name]
    renamed_away: frozenset[Name]


class Source:
    """Tables by name."""

    def __init__(self) -> None:
        self.tables: dict[Name, Table] = {}
        self._uids = 0
        self._gone: dict[Name, int | None] = {}  # name -> table that left it by a rename, None: dropped
        self._filled: set[Name] = set()  # names that a table with rows has had

    def run(self, statement: Statement) -> list[Event]:
        """Carry out a statement and return its events; none when it is refused."""
        try:
            return statement.run(self)
        except RefusedError:
            return []

    def table(self, name: Name) -> Table:
        """Return a table; refuses when there is none."""
        if name not in self.tables:
            raise RefusedError(f"no table {name}")
        return self.tables[name]

    def add(self, name: Name, structure: Structure) -> Table:
        """Create a table."""
        if name in self.tables:
            raise RefusedError(f"table {name} exists")
        self._uids += 1
        self.tables[name] = Table(self._uids, structure)
        self._gone.pop(name, None)
        return self.tables[name]

    def move(self, old: Name, new: Name) -> None:
        """Give a table another name: that of one with rows, where it had none yet, leaves open what it was."""
        if new in self.tables:
            raise RefusedError(f"table {new} exists")
        table = self.table(old)
        if table.feed:
            self._filled |= {old, new}
        elif new in self._filled:
            table.knows_dead = False
        del self.tables[old]
        self.tables[new] = table
        self._gone[old] = table.uid
        self._gone.pop(new, None)

    def remove(self, name: Name) -> None:
        """Drop a table."""
        self.table(name)
        del self.tables[name]
        self._gone[name] = None

    def forget(self) -> None:
        """Forget the names that no table has: the connector starts here and never hears of them."""
        self._gone.clear()
        for table in self.tables.values():
            columns = tuple(replace(column, was=()) for column in table.structure.columns)
            table.structure, table.dead, table.knows_dead = replace(table.structure, columns=columns), [], True
            table.has_first_key = True
            table.feed = [("snapshot", dict(row)) for row in table.rows]

    def picture(self) -> Picture:
        """Return what the lake must hold now."""
        alive = {table.uid for table in self.tables.values()}
        return Picture(
            {
                name: Content(
                    table.structure,
                    _copies(table.rows),
                    _copies(table.dead) if table.knows_dead else None,
                    tuple((op, dict(row)) for op, row in table.feed) if table.knows_dead else None,
                    table.has_first_key,
                )
                for name, table in self.tables.items()
            },
            frozenset(name for name, uid in self._gone.items() if uid is None),
            frozenset(name for name, uid in self._gone.items() if uid in alive),
        )


def _copies(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(dict(row) for row in rows)


def quoted(name: str) -> str:
    """Return an identifier as SQL writes it."""
    return "`" + name.replace("`", "``") + "`"


def full(name: Name) -> str:
    """Return a table's name with its database."""
    return f"{quoted(name[0])}.{quoted(name[1])}"


class Statement(ABC):
    """One statement."""

    @abstractmethod
    def run(self, source: Source) -> list[Event]:
        """Change the source and return the events; refuses before it changes anything."""

    @abstractmethod
    def sql(self) -> str:
        """Return the statement for people."""


def create_text(name: Name, structure: Structure) -> str:
    """Return a CREATE TABLE as SHOW CREATE TABLE writes it."""
    lines = [column.sql() for column in structure.columns]
    if structure.key:
        lines.append(f"PRIMARY KEY ({','.join(quoted(part) for part in structure.key)})")
    return f"CREATE TABLE {quoted(name[1])} (\n  " + ",\n  ".join(lines) + "\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
