# SPDX-License-Identifier: Apache-2.0
"""The model's statements that change tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from tests.histories.hard_texts import number
from tests.histories.kinds import DATED, Kind
from tests.histories.source import (
    Column,
    DdlEvent,
    Event,
    Name,
    RefusedError,
    Row,
    Source,
    Statement,
    Structure,
    Table,
    TableChange,
    create_text,
    full,
    quoted,
)


@dataclass(frozen=True)
class Create(Statement):
    """CREATE TABLE."""

    name: Name
    structure: Structure

    def run(self, source: Source) -> list[Event]:
        source.add(self.name, self.structure)
        return [_created(self.sql(), self.name, self.structure)]

    def sql(self) -> str:
        return create_text(self.name, self.structure)


def _created(text: str, name: Name, structure: Structure) -> DdlEvent:
    return DdlEvent(text, "CREATE", name, ((name[0], text, (TableChange("CREATE", name, structure),)),))


@dataclass(frozen=True)
class CreateLike(Statement):
    """CREATE TABLE ... LIKE."""

    name: Name
    like: Name

    def run(self, source: Source) -> list[Event]:
        like = source.table(self.like).structure
        structure = replace(like, columns=tuple(replace(column, was=()) for column in like.columns))
        source.add(self.name, structure)
        return [_created(self.sql(), self.name, structure)]

    def sql(self) -> str:
        return f"CREATE TABLE {full(self.name)} LIKE {full(self.like)}"


@dataclass(frozen=True)
class Place:
    """State where a clause puts a column: at the end, first, or after another."""

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
            index = next((i for i, c in enumerate(columns) if c.name == self.after), None)
            if index is None:
                raise RefusedError(f"no column {self.after}")
            columns.insert(index + 1, column)
        else:
            columns.insert(otherwise, column)


class Clause(ABC):
    """One clause of an ALTER TABLE."""

    @abstractmethod
    def change(self, structure: Structure, rows: list[Row]) -> tuple[Structure, str]:
        """Return the new structure and the clause's text, and change copies of the rows in place."""


@dataclass(frozen=True)
class AddColumn(Clause):
    """ADD COLUMN."""

    column: Column
    location: Place = Place()

    def change(self, structure: Structure, rows: list[Row]) -> tuple[Structure, str]:
        if structure.has(self.column.name):
            raise RefusedError(f"column {self.column.name} exists")
        columns = list(structure.columns)
        self.location.put(columns, self.column, len(columns))
        for row in rows:
            row[self.column.name] = self.column.kind.stored(self.column.absent())
        return replace(structure, columns=tuple(columns)), f"ADD COLUMN {self.column.sql()}{self.location.sql()}"


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
    """MODIFY, CHANGE or RENAME COLUMN: another name, a wider type, another place; the definition else stays.

    :param server: which reads texts as numbers, ``mysql`` or ``mariadb``.
    """

    name: str
    to: str
    kind: Kind | None = None
    location: Place | None = None
    server: str = ""

    def change(self, structure: Structure, rows: list[Row]) -> tuple[Structure, str]:
        old = structure.named(self.name)
        if self.to != self.name and structure.has(self.to) and self.to.lower() != self.name.lower():
            raise RefusedError(f"column {self.to} exists")
        kind = self.kind or old.kind
        new = replace(old.named(self.to), kind=kind, default=converted(old.kind, kind, old.default))
        columns = list(structure.columns)
        index = columns.index(old)
        if self.location is None:
            columns[index] = new
        else:
            columns.remove(old)
            self.location.put(columns, new, index)
        for row in rows:
            value = row.pop(self.name)
            hard = self.server and value is not None
            row[self.to] = number(value, kind, self.server) if hard else converted(old.kind, kind, value)
        key = tuple(self.to if part == self.name else part for part in structure.key)
        return replace(structure, columns=tuple(columns), key=key), self._text(new)

    def _text(self, new: Column) -> str:
        end = self.location.sql() if self.location else ""
        if self.to == self.name:
            return f"MODIFY COLUMN {new.sql()}{end}"
        if self.kind is None and self.location is None:
            return f"RENAME COLUMN {quoted(self.name)} TO {quoted(self.to)}"
        return f"CHANGE COLUMN {quoted(self.name)} {new.sql()}{end}"


_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")


def converted(old: Kind, new: Kind, value: Any) -> Any:
    """Return a stored value as an ALTER to another type leaves it; refuses what does not fit, as strict mode does."""
    if value is None:
        return None
    if new.name == "varchar" and old.name in _INTEGERS:
        value = str(value)
    elif new.name == "varchar" and old.name == "decimal":
        value = format(value, "f")
    elif new.name not in (old.name, *(_INTEGERS if old.name in _INTEGERS else ())) and (old.name, new.name) != (
        "float",
        "double",
    ):
        raise RefusedError("no conversion that this model knows")
    if not new.fits(value):
        raise RefusedError("a value does not fit")
    return new.stored(value)


@dataclass(frozen=True)
class RenameColumns(Clause):
    """Several RENAME or CHANGE COLUMN whose names refer to the table before the statement: columns swap names.

    :param pairs: old and new names.
    :param changes: as CHANGE, which repeats each column's definition.
    """

    pairs: tuple[tuple[str, str], ...]
    changes: bool = False

    def change(self, structure: Structure, rows: list[Row]) -> tuple[Structure, str]:
        to, texts = dict(self.pairs), []
        columns = tuple(column.named(to.get(column.name, column.name)) for column in structure.columns)
        if len({column.name.lower() for column in columns}) < len(columns):
            raise RefusedError("a name twice")
        for old, new in self.pairs:
            definition = structure.named(old).named(new)
            change = f"CHANGE COLUMN {quoted(old)} {definition.sql()}"
            texts.append(change if self.changes else f"RENAME COLUMN {quoted(old)} TO {quoted(new)}")
        for row in rows:
            renamed = {to.get(name, name): value for name, value in row.items()}
            row.clear()
            row.update(renamed)
        key = tuple(to.get(part, part) for part in structure.key)
        return replace(structure, columns=columns, key=key), ", ".join(texts)


@dataclass(frozen=True)
class ChangeKey(Clause):
    """DROP and ADD PRIMARY KEY; a table may lose its key, or get one.

    :param key: columns of the new key; none for a table without.
    """

    key: tuple[str, ...]

    def change(self, structure: Structure, rows: list[Row]) -> tuple[Structure, str]:
        if not self.key and not structure.key:
            raise RefusedError("there is no key to drop")
        named = [structure.named(name) for name in self.key]
        values = [tuple(row[name] for name in self.key) for row in rows]
        if self.key and (len(set(values)) < len(values) or any(None in value for value in values)):
            raise RefusedError("rows without a key of their own")
        if any(column.has_default and column.default is None for column in named):
            raise RefusedError("a key column whose default is NULL")
        columns = tuple(
            replace(column, nullable=False) if column.name in self.key else column for column in structure.columns
        )
        texts = ["DROP PRIMARY KEY"] if structure.key else []
        texts += [f"ADD PRIMARY KEY ({', '.join(map(quoted, self.key))})"] if self.key else []
        return replace(structure, columns=columns, key=self.key), ", ".join(texts)


@dataclass(frozen=True)
class Alter(Statement):
    """ALTER TABLE with one or several clauses, and possibly a rename."""

    name: Name
    clauses: tuple[Clause, ...]
    to: Name | None = None

    def run(self, source: Source) -> list[Event]:
        table = source.table(self.name)
        self._check_names(table.structure)
        structure, rows = table.structure, [dict(row) for row in table.rows]
        texts = []
        for clause in self.clauses:
            structure, text = clause.change(structure, rows)
            texts.append(text)
        self._change_dead(table)
        table.has_first_key &= not any(isinstance(clause, ChangeKey) for clause in self.clauses)
        now = self.to or self.name
        if self.to is not None:
            source.move(self.name, self.to)
            texts.append(f"RENAME TO {full(self.to)}")
        table.structure, table.rows = structure, rows
        before = len({table.key_of(row) for row in table.dead})
        table.knows_dead &= before == len(table.dead)  # of two with one key that went at once any may stay
        table.settle()
        text = f"ALTER TABLE {full(self.name)} " + ", ".join(texts)
        records = ((now[0], text, (TableChange("ALTER", now, structure),)),)
        renames = not self.clauses
        return [DdlEvent(text, "RENAME" if renames else "ALTER", now if renames else self.name, records)]

    def _change_dead(self, table: Table) -> None:
        """Change rows of before as the others; how one that does not fit is converted is not known here."""
        structure = table.structure
        try:
            for clause in self.clauses:
                gone = [*table.dead, *(row for _, row in table.feed if row)]
                structure, _ = clause.change(structure, [] if isinstance(clause, ChangeKey) else gone)
                for row in gone if isinstance(clause, ChangeKey) else ():
                    kinds = {n: structure.named(n).kind for n in clause.key if row[n] is None}
                    # a zero date is NULL in the lake
                    row.update({n: kind.implicit() for n, kind in kinds.items() if kind.name not in DATED})
        except RefusedError:
            table.dead, table.feed, table.knows_dead = [], [], False

    def _check_names(self, structure: Structure) -> None:
        """Refuse what the server refuses: clauses name columns from before the statement, AFTER those that result."""
        named = [clause.name for clause in self.clauses if isinstance(clause, DropColumn | ChangeColumn)]
        if len({*named}) < len(named) or not {*named} <= {column.name for column in structure.columns}:
            raise RefusedError("a column that another clause made or changed")
        left = {*named}
        left -= {clause.to for clause in self.clauses if isinstance(clause, ChangeColumn)}
        positions = [clause.location for clause in self.clauses if isinstance(clause, AddColumn | ChangeColumn)]
        if any(position is not None and position.after in left for position in positions):
            raise RefusedError("a column that goes, or gets another name")

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
        return [DdlEvent(self.sql(), "RENAME", self.pairs[0][1], tuple(records))]

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
        records = tuple((n[0], text.format(full(n)), (TableChange("DROP", n, None),)) for n in self.names)
        return [DdlEvent(text.format(",".join(map(full, self.names))), "DROP", self.names[0], records)]

    def sql(self) -> str:
        return "DROP TABLE " + ", ".join(full(name) for name in self.names)
