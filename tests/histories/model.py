"""A plain model of a MySQL-like source: what statements do to tables, and which events they leave in its log.

It shares no code with the product: it is the oracle that says what the tables in the lake must hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.histories.kinds import Kind

Name = tuple[str, str]  # database, table
Row = dict[str, Any]


class RefusedError(Exception):
    """The source refuses the statement; it changes nothing and leaves no event."""


@dataclass(frozen=True)
class Column:
    """One column; ``default`` counts only where ``has_default``."""

    name: str
    kind: Kind
    nullable: bool = True
    has_default: bool = False
    default: Any = None

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

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """Return the values of the key's columns."""
        return tuple(row[name] for name in self.structure.key)


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
    """What the connector says of one table after a DDL."""

    type: str
    name: Name
    structure: Structure | None


@dataclass(frozen=True)
class DdlEvent:
    """A DDL as the connector reports it: one or several records at one place."""

    records: tuple[tuple[str, str, tuple[TableChange, ...]], ...]  # database, text, tables


Event = RowEvent | TruncateEvent | DdlEvent


@dataclass(frozen=True)
class Content:
    """What one table must hold."""

    structure: Structure
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Picture:
    """All tables at one moment, and what became of the names that no table has any more."""

    tables: dict[Name, Content]
    dropped: frozenset[Name]
    renamed_away: frozenset[Name]


class Source:
    """Tables by name."""

    def __init__(self) -> None:
        self.tables: dict[Name, Table] = {}
        self._uids = 0
        self._gone: dict[Name, int | None] = {}  # name -> table that left it by a rename, None: dropped

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
        """Give a table another name."""
        if new in self.tables:
            raise RefusedError(f"table {new} exists")
        table = self.table(old)
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

    def picture(self) -> Picture:
        """Return what the lake must hold now."""
        alive = {table.uid for table in self.tables.values()}
        return Picture(
            {
                name: Content(table.structure, tuple(dict(row) for row in table.rows))
                for name, table in self.tables.items()
            },
            frozenset(name for name, uid in self._gone.items() if uid is None),
            frozenset(name for name, uid in self._gone.items() if uid in alive),
        )


def quoted(name: str) -> str:
    """Return an identifier as SQL writes it."""
    return "`" + name.replace("`", "``") + "`"


def full(name: Name) -> str:
    """Return a table's name with its database."""
    return f"{quoted(name[0])}.{quoted(name[1])}"


class Statement:
    """One statement."""

    def run(self, source: Source) -> list[Event]:
        """Change the source and return the events; refuses before it changes anything."""
        raise NotImplementedError

    def sql(self) -> str:
        """Return the statement for people."""
        raise NotImplementedError


@dataclass(frozen=True)
class Create(Statement):
    """CREATE TABLE."""

    name: Name
    structure: Structure

    def run(self, source: Source) -> list[Event]:
        source.add(self.name, self.structure)
        return [DdlEvent(((self.name[0], self.sql(), (TableChange("CREATE", self.name, self.structure),)),))]

    def sql(self) -> str:
        return create_text(self.name, self.structure)


def create_text(name: Name, structure: Structure) -> str:
    """Return a CREATE TABLE as SHOW CREATE TABLE writes it."""
    lines = [column.sql() for column in structure.columns]
    if structure.key:
        lines.append(f"PRIMARY KEY ({','.join(quoted(part) for part in structure.key)})")
    return f"CREATE TABLE {quoted(name[1])} (\n  " + ",\n  ".join(lines) + "\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"


@dataclass(frozen=True)
class CreateLike(Statement):
    """CREATE TABLE ... LIKE."""

    name: Name
    like: Name

    def run(self, source: Source) -> list[Event]:
        structure = source.table(self.like).structure
        source.add(self.name, structure)
        return [DdlEvent(((self.name[0], self.sql(), (TableChange("CREATE", self.name, structure),)),))]

    def sql(self) -> str:
        return f"CREATE TABLE {full(self.name)} LIKE {full(self.like)}"


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT of several rows; those whose key is taken or that do not fit are left out, as IGNORE does."""

    name: Name
    rows: tuple[Row, ...]

    def run(self, source: Source) -> list[Event]:
        table = source.table(self.name)
        return [RowEvent(self.name, table.structure, "c", None, row) for row in _inserted(table, self.rows)]

    def sql(self) -> str:
        return f"INSERT IGNORE INTO {full(self.name)} VALUES {', '.join(str(row) for row in self.rows)}"


def _inserted(table: Table, rows: Sequence[Row]) -> Iterator[Row]:
    taken = {table.key_of(row) for row in table.rows}
    for given in rows:
        row = {c.name: c.kind.stored(given.get(c.name, c.absent())) for c in table.structure.columns}
        if not _acceptable(table.structure, row) or (table.structure.key and table.key_of(row) in taken):
            continue
        taken.add(table.key_of(row))
        table.rows.append(row)
        yield dict(row)


def _acceptable(structure: Structure, row: Row) -> bool:
    return all(c.kind.fits(row[c.name]) and (c.nullable or row[c.name] is not None) for c in structure.columns)


@dataclass(frozen=True)
class CopyRows(Statement):
    """INSERT ... SELECT of the columns that both tables have."""

    name: Name
    origin: Name

    def run(self, source: Source) -> list[Event]:
        table, rows = source.table(self.name), source.table(self.origin).rows
        return [
            RowEvent(self.name, table.structure, "c", None, row)
            for row in _inserted(table, [dict(row) for row in rows])
        ]

    def sql(self) -> str:
        return f"INSERT IGNORE INTO {full(self.name)} SELECT (columns of both) FROM {full(self.origin)}"


@dataclass(frozen=True)
class Update(Statement):
    """UPDATE of some rows, chosen by number modulo the number of rows."""

    name: Name
    picks: tuple[int, ...]
    values: Row

    def run(self, source: Source) -> list[Event]:
        table = source.table(self.name)
        events: list[Event] = []
        for place in _picked(table, self.picks):
            old = table.rows[place]
            new = {c.name: c.kind.stored(self.values.get(c.name, old[c.name])) for c in table.structure.columns}
            if not _acceptable(table.structure, new) or new == old or _taken(table, place, new):
                continue
            events.append(_changed(self.name, table, place, new))
        return events

    def sql(self) -> str:
        return f"UPDATE IGNORE {full(self.name)} SET {self.values} -- rows {self.picks}"


@dataclass(frozen=True)
class ShiftKey(Statement):
    """UPDATE t SET a = a + by ORDER BY a (descending where it grows): every row takes the key its neighbour leaves."""

    name: Name
    by: int

    def run(self, source: Source) -> list[Event]:
        table = source.table(self.name)
        if not table.structure.key:
            raise RefusedError("no key")
        first = table.structure.key[0]
        kind = table.structure.named(first).kind
        if any(type(row[first]) is not int or not kind.fits(row[first] + self.by) for row in table.rows):
            raise RefusedError("the key cannot be shifted")
        order = sorted(range(len(table.rows)), key=lambda i: table.rows[i][first], reverse=self.by > 0)
        events: list[Event] = []
        for place in order:
            new = {**table.rows[place], first: table.rows[place][first] + self.by}
            if not _taken(table, place, new):
                events.append(_changed(self.name, table, place, new))
        return events

    def sql(self) -> str:
        order = "DESC" if self.by > 0 else "ASC"
        return f"UPDATE {full(self.name)} SET (first key column) = it + {self.by} ORDER BY it {order}"


def _picked(table: Table, picks: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(pick % len(table.rows) for pick in picks)) if table.rows else []


def _taken(table: Table, place: int, new: Row) -> bool:
    key = table.key_of(new)
    return bool(table.structure.key) and any(table.key_of(row) == key for i, row in enumerate(table.rows) if i != place)


def _changed(name: Name, table: Table, place: int, new: Row) -> RowEvent:
    old = table.rows[place]
    table.rows[place] = new
    moved = bool(table.structure.key) and table.key_of(old) != table.key_of(new)
    return RowEvent(name, table.structure, "k" if moved else "u", dict(old), dict(new))


@dataclass(frozen=True)
class Delete(Statement):
    """DELETE of some rows, chosen by number modulo the number of rows."""

    name: Name
    picks: tuple[int, ...]

    def run(self, source: Source) -> list[Event]:
        table = source.table(self.name)
        gone = _picked(table, self.picks)
        events: list[Event] = [
            RowEvent(self.name, table.structure, "d", dict(table.rows[place]), None) for place in gone
        ]
        table.rows[:] = [row for place, row in enumerate(table.rows) if place not in gone]
        return events

    def sql(self) -> str:
        return f"DELETE FROM {full(self.name)} -- rows {self.picks}"


@dataclass(frozen=True)
class Truncate(Statement):
    """TRUNCATE TABLE."""

    name: Name

    def run(self, source: Source) -> list[Event]:
        table = source.table(self.name)
        table.rows.clear()
        return [TruncateEvent(self.name, table.structure)]

    def sql(self) -> str:
        return f"TRUNCATE TABLE {full(self.name)}"


@dataclass(frozen=True)
class Place:
    """Where a clause puts a column: at the end, first, or after another."""

    first: bool = False
    after: str | None = None

    def sql(self) -> str:
        """Return the clause's end."""
        return " FIRST" if self.first else f" AFTER {quoted(self.after)}" if self.after else ""

    def put(self, columns: list[Column], column: Column, otherwise: int) -> None:
        """Insert a column; ``otherwise`` is where it goes when nothing is said."""
        if self.first:
            columns.insert(0, column)
        elif self.after is not None:
            place = next((i for i, c in enumerate(columns) if c.name == self.after), None)
            if place is None:
                raise RefusedError(f"no column {self.after}")
            columns.insert(place + 1, column)
        else:
            columns.insert(otherwise, column)


class Clause:
    """One clause of an ALTER TABLE."""

    def change(self, structure: Structure, rows: list[Row]) -> tuple[Structure, str]:
        """Return the new structure and the clause's text, and change copies of the rows in place."""
        raise NotImplementedError


@dataclass(frozen=True)
class AddColumn(Clause):
    """ADD COLUMN."""

    column: Column
    place: Place = Place()

    def change(self, structure: Structure, rows: list[Row]) -> tuple[Structure, str]:
        if structure.has(self.column.name):
            raise RefusedError(f"column {self.column.name} exists")
        columns = list(structure.columns)
        self.place.put(columns, self.column, len(columns))
        for row in rows:
            row[self.column.name] = self.column.kind.stored(self.column.absent())
        return replace(structure, columns=tuple(columns)), f"ADD COLUMN {self.column.sql()}{self.place.sql()}"


@dataclass(frozen=True)
class DropColumn(Clause):
    """DROP COLUMN, never of the key."""

    name: str

    def change(self, structure: Structure, rows: list[Row]) -> tuple[Structure, str]:
        structure.named(self.name)
        if self.name in structure.key or len(structure.columns) == 1:
            raise RefusedError("the key, or the last column")
        for row in rows:
            del row[self.name]
        columns = tuple(c for c in structure.columns if c.name != self.name)
        return replace(structure, columns=columns), f"DROP COLUMN {quoted(self.name)}"


@dataclass(frozen=True)
class ChangeColumn(Clause):
    """MODIFY, CHANGE or RENAME COLUMN: another name, a wider type, another place; the definition else stays."""

    name: str
    to: str
    kind: Kind | None = None
    place: Place | None = None

    def change(self, structure: Structure, rows: list[Row]) -> tuple[Structure, str]:
        old = structure.named(self.name)
        if self.to != self.name and structure.has(self.to) and self.to.lower() != self.name.lower():
            raise RefusedError(f"column {self.to} exists")
        kind = self.kind or old.kind
        if kind.name not in _WIDER.get(old.kind.name, (old.kind.name,)):
            raise RefusedError("no widening")
        new = replace(old, name=self.to, kind=kind, default=kind.stored(old.default))
        columns = list(structure.columns)
        place = columns.index(old)
        if self.place is None:
            columns[place] = new
        else:
            columns.remove(old)
            self.place.put(columns, new, place)
        for row in rows:
            row[self.to] = kind.stored(row.pop(self.name))
        key = tuple(self.to if part == self.name else part for part in structure.key)
        return replace(structure, columns=tuple(columns), key=key), self._text(new)

    def _text(self, new: Column) -> str:
        end = self.place.sql() if self.place else ""
        if self.to == self.name:
            return f"MODIFY COLUMN {new.sql()}{end}"
        if self.kind is None and self.place is None:
            return f"RENAME COLUMN {quoted(self.name)} TO {quoted(self.to)}"
        return f"CHANGE COLUMN {quoted(self.name)} {new.sql()}{end}"


_WIDER = {
    "tinyint": ("tinyint", "smallint", "int"),
    "smallint": ("smallint", "int", "bigint"),
    "int": ("int", "bigint"),
    "float": ("float", "double"),
}


@dataclass(frozen=True)
class Alter(Statement):
    """ALTER TABLE with one or several clauses, and possibly a rename."""

    name: Name
    clauses: tuple[Clause, ...]
    to: Name | None = None

    def run(self, source: Source) -> list[Event]:
        table = source.table(self.name)
        structure, rows = table.structure, [dict(row) for row in table.rows]
        texts = []
        for clause in self.clauses:
            structure, text = clause.change(structure, rows)
            texts.append(text)
        now = self.to or self.name
        if self.to is not None:
            source.move(self.name, self.to)
            texts.append(f"RENAME TO {full(self.to)}")
        table.structure, table.rows = structure, rows
        text = f"ALTER TABLE {full(self.name)} " + ", ".join(texts)
        return [DdlEvent(((now[0], text, (TableChange("ALTER", now, structure),)),))]

    def sql(self) -> str:
        return f"ALTER TABLE {full(self.name)} {self.clauses} {self.to or ''}"


@dataclass(frozen=True)
class Rename(Statement):
    """RENAME TABLE of one or several pairs; the connector splits it."""

    pairs: tuple[tuple[Name, Name], ...]

    def run(self, source: Source) -> list[Event]:
        trial = {name: name for name in source.tables}
        for old, new in self.pairs:
            if old not in trial or new in trial:
                raise RefusedError("a name that is not there, or taken")
            trial[new] = trial.pop(old)
        records = []
        for old, new in self.pairs:
            source.move(old, new)
        for old, new in self.pairs:
            # of an intermediate name the connector knows nothing when it looks, which is after the statement
            now = source.tables.get(new)
            known = (TableChange("ALTER", new, now.structure),) if now is not None else ()
            records.append((new[0], f"RENAME TABLE {full(old)} TO {full(new)}", known))
        return [DdlEvent(tuple(records))]

    def sql(self) -> str:
        return "RENAME TABLE " + ", ".join(f"{full(old)} TO {full(new)}" for old, new in self.pairs)


@dataclass(frozen=True)
class Drop(Statement):
    """DROP TABLE of one or several tables; the connector splits it."""

    names: tuple[Name, ...]

    def run(self, source: Source) -> list[Event]:
        for name in self.names:
            source.table(name)
        for name in self.names:
            source.remove(name)
        text = "DROP TABLE {} /* generated by server */"
        return [DdlEvent(tuple((n[0], text.format(full(n)), (TableChange("DROP", n, None),)) for n in self.names))]

    def sql(self) -> str:
        return "DROP TABLE " + ", ".join(full(name) for name in self.names)
