# SPDX-License-Identifier: Apache-2.0
"""Random histories: statements that mostly succeed, because they are chosen by what the source holds at that point."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tests.histories.ddl_statements import (
    AddColumn,
    Alter,
    ChangeColumn,
    ChangeKey,
    Clause,
    Create,
    CreateLike,
    Drop,
    DropColumn,
    Place,
    Rename,
    RenameColumns,
)
from tests.histories.hard_texts import HARD, NUMBERS
from tests.histories.random_kinds import Palette, other, value_of, wider
from tests.histories.row_statements import CopyRows, Delete, Insert, ShiftKey, Truncate, Update
from tests.histories.source import Column, Name, RefusedError, Row, Source, Statement, Structure, Table

_NO_DEFAULT = ("blob", "json")
_PARKS_WHERE_ADDED = ("timestamp",)  # types whose literal default leaves older rows unknown: the session's time zone
# a NOT NULL column without default: of these the source itself fills in what no message states, or nothing
_NO_IMPLICIT = ("json", "date", "datetime", "timestamp")


@dataclass(frozen=True)
class Theme:
    """Choose the subject of a history: weights of the statements and which tables it has.

    :param alike: three tables of one structure, as the parts of a sharded table.
    """

    name: str
    weights: dict[str, int]
    keyless: float
    alike: bool = False


SIZES = (5, 5, 10, 10, 15, 15, 25, 40, 60)
_ROWS = {"insert": 8, "update": 6, "delete": 3, "truncate": 1}
_KEYS = {"move": 3, "shift": 1}
_COLUMNS = {"alter": 6}
_TABLES = {"rename": 2, "swap": 2, "ghost": 2, "recreate": 2, "drop": 1, "create": 2, "again": 1}
THEMES = {
    theme.name: theme
    for theme in (
        Theme("keyed", _ROWS | _KEYS, 0.0),
        Theme("keyless", _ROWS, 1.0),
        Theme("ddl", _ROWS | _KEYS | _COLUMNS | {"create": 1}, 0.2),
        Theme("renames", _ROWS | _TABLES, 0.15),
        Theme("everything", _ROWS | _KEYS | _COLUMNS | _TABLES, 0.25),
    )
}

SHARDED = Theme("sharded", {**_ROWS, **_KEYS, "truncate": 0, "alter": 1, "create": 1}, 0.0, alike=True)


def history(
    theme: Theme,
    rnd: random.Random,
    palette: Palette | None = None,
    lacks: Collection[str] = (),
    sizes: Sequence[int] = SIZES,
) -> list[Statement]:
    """Return some statements on one to three tables.

    :param lacks: statements, as :attr:`Theme.weights` names them, that the tool does not carry.
    :param sizes: numbers of statements to choose from.
    """
    maker = _Maker(theme, rnd, palette or Palette(), lacks)
    maker.create()
    count = rnd.choice(sizes)
    for _ in range(2 if theme.alike else rnd.choice((0, 0, 1))):
        maker.create()
    kinds, weights = zip(*((kind, weight) for kind, weight in theme.weights.items() if kind not in lacks), strict=True)
    while len(maker.statements) < count:
        getattr(maker, rnd.choices(kinds, weights)[0])()
    return maker.statements


class _Maker:
    """Adds statements to a history, each by the source's present state."""

    def __init__(self, theme: Theme, rnd: random.Random, palette: Palette, lacks: Collection[str]) -> None:
        self.statements: list[Statement] = []
        self._lacks = lacks
        self._theme, self._rnd, self._palette = theme, rnd, palette
        self._source = Source()

    def _add(self, statement: Statement) -> None:
        self._source.run(statement)
        self.statements.append(statement)

    def _some(self, keyed: bool | None = None) -> tuple[Name, Table] | None:
        candidates = [(n, t) for n, t in self._source.tables.items() if keyed is None or bool(t.structure.key) == keyed]
        return self._rnd.choice(candidates) if candidates else None

    def _free(self, database: str | None = None) -> Name:
        """Return a name that no table has, in another database where all of this one are taken."""
        databases, tables = self._palette.databases, self._palette.tables
        free = [(d, t) for d in databases for t in tables if (d, t) not in self._source.tables]
        return self._rnd.choice([name for name in free if name[0] == database] or free)

    def create(self) -> None:
        if len(self._source.tables) < 3:
            alike = [table.structure for table in self._source.tables.values()] if self._theme.alike else []
            self._add(Create(self._free(), alike[0] if alike else self._structure()))

    def _structure(self) -> Structure:
        rnd = self._rnd
        names = rnd.sample(self._palette.columns, rnd.randint(1, 6))
        columns = [self._column(name) for name in names]
        key: tuple[str, ...] = ()
        if rnd.random() >= self._theme.keyless:
            size = 2 if len(columns) > 2 and rnd.random() < 0.3 else 1
            indexes = rnd.sample(range(len(columns)), size)
            for index in indexes:
                columns[index] = Column(names[index], rnd.choice(self._palette.keys), nullable=False)
            key = tuple(names[index] for index in indexes)
        if self._palette.extra and rnd.random() < 0.7:
            columns.insert(rnd.randint(0, len(columns)), self._column(self._palette.extra))
        return Structure(tuple(columns), key)

    def _column(self, name: str, *, added: bool = False) -> Column:
        rnd = self._rnd
        kind = rnd.choice(self._palette.kinds)
        nullable = rnd.random() < 0.7 or (added and kind.name in _NO_IMPLICIT)
        if kind.name not in _NO_DEFAULT and rnd.random() < 0.4:
            default = None if nullable and rnd.random() < 0.2 else value_of(kind, rnd)
            if added and kind.name in _PARKS_WHERE_ADDED:
                return Column(name, kind, nullable)
            return Column(name, kind, nullable, has_default=True, default=default)
        return Column(name, kind, nullable)

    def insert(self) -> None:
        if picked := self._some():
            name, table = picked
            rows = tuple(self._row(table.structure) for _ in range(self._rnd.choice((1, 1, 2, 3, 10))))
            if not table.structure.key and self._rnd.random() < 0.4:
                rows += rows[:1]
            self._add(Insert(name, rows))

    def _row(self, structure: Structure) -> Row:
        row = {c.name: self._cell(c, key=c.name in structure.key) for c in structure.columns}
        if not structure.key and self._rnd.random() < 0.5:
            row = dict.fromkeys(row, None) | {c.name: c.kind.implicit() for c in structure.columns if not c.nullable}
        return row

    def _cell(self, column: Column, *, key: bool = False) -> Any:
        if column.nullable and self._rnd.random() < 0.2:
            return None
        if self._palette.server and column.kind.name == "varchar" and not key:
            return self._rnd.choice(HARD)[: column.kind.length]
        return value_of(column.kind, self._rnd, few=key or self._rnd.random() < 0.3)

    def _picks(self) -> tuple[int, ...]:
        return tuple(self._rnd.randrange(100) for _ in range(self._rnd.choice((1, 1, 2, 4))))

    def update(self) -> None:
        if picked := self._some():
            name, table = picked
            free = [c for c in table.structure.columns if c.name not in table.structure.key]
            if free:
                dropped = self._rnd.sample(free, self._rnd.randint(1, min(3, len(free))))
                self._add(Update(name, self._picks(), {c.name: self._cell(c) for c in dropped}))

    def move(self) -> None:
        if picked := self._some(keyed=True):
            name, table = picked
            part = table.structure.named(self._rnd.choice(table.structure.key))
            self._add(Update(name, self._picks()[:2], {part.name: self._cell(part, key=True)}))

    def shift(self) -> None:
        if picked := self._some(keyed=True):
            self._add(ShiftKey(picked[0], self._rnd.choice((1, -1, 1, 3))))

    def delete(self) -> None:
        if picked := self._some():
            self._add(Delete(picked[0], self._picks()))

    def truncate(self) -> None:
        if picked := self._some():
            self._add(Truncate(picked[0]))

    def again(self) -> None:
        """Delete a row and insert the very same one."""
        if picked := self._some():
            name, table = picked
            if table.rows:
                row = dict(table.rows[0])
                self._add(Delete(name, (0,)))
                self._add(Insert(name, (row,)))

    def alter(self) -> None:
        if picked := self._some():
            name, table = picked
            clauses: list[Clause] = []
            structure = table.structure
            if self._rnd.random() < 0.25 and (clause := self._whole(structure)):
                self._add(Alter(name, (clause,)))
                return
            touched: set[str] = set()
            for _ in range(self._rnd.choice((1, 1, 1, 2, 3))):
                clause = self._clause(structure, touched)
                if clause is not None:
                    try:
                        structure = clause.change(structure, [])[0]
                    except RefusedError:  # a default that does not fit
                        continue
                    clauses.append(clause)
            if clauses:
                to = self._free(name[0]) if self._rnd.random() < 0.1 and "rename" in self._theme.weights else None
                self._add(Alter(name, tuple(clauses), to))

    def _whole(self, structure: Structure) -> Clause | None:
        """Return a clause that concerns several columns."""
        rnd, extra = self._rnd, self._palette.extra
        names = [column.name for column in structure.columns if column.name != extra]
        if rnd.random() < 0.5:
            able = [c.name for c in structure.columns if c.kind in self._palette.keys and c.name != extra]
            return ChangeKey(tuple(rnd.sample(able, rnd.randint(0, min(2, len(able))))))
        if len(names) < 2 or "exchange" in self._lacks:
            return None
        a, b = rnd.sample(names, 2)
        free = [name for name in self._palette.columns if not structure.has(name)]
        chain = free and rnd.random() < 0.3
        return RenameColumns(((a, b), (b, rnd.choice(free) if chain else a)), rnd.random() < 0.5)

    def _clause(self, structure: Structure, touched: set[str]) -> Clause | None:
        rnd = self._rnd
        free = [name for name in self._palette.columns if not structure.has(name) and name not in touched]
        location = rnd.choice([Place(), Place(), Place(first=True), Place(after=rnd.choice(structure.columns).name)])
        what = rnd.choice(("add", "add", "drop", "rename", "widen", "convert", "move"))
        if location.after is not None:
            touched.add(location.after)  # AFTER names a column as the statement leaves it
        column = rnd.choice([c for c in structure.columns if c.name not in touched] or [None])
        if what == "add" and free and len(structure.columns) < 9:
            name = rnd.choice(free)
            touched.add(name)
            return AddColumn(self._column(name, added=True), location)
        if column is None:
            return None
        touched.add(column.name)
        others = [c for c in structure.columns if c.name not in (column.name, self._palette.extra)]
        if what == "drop" and column.name not in structure.key and others:
            return DropColumn(column.name)
        if what == "rename" and free and column.name != self._palette.extra:
            name = rnd.choice(free)
            touched.add(name)
            return ChangeColumn(column.name, name, location=rnd.choice((None, None, Place())))
        if what == "widen" and (kind := wider(column.kind, rnd)):
            return ChangeColumn(column.name, column.name, kind)
        if what == "convert" and self._palette.server and column.kind.name == "varchar" and not column.has_default:
            carried = {kind.name for kind in self._palette.kinds}
            number = rnd.choice([kind for kind in NUMBERS if kind.name in carried])
            return ChangeColumn(column.name, column.name, number, server=self._palette.server)
        if what == "convert" and (kind := other(column.kind, rnd)):
            return ChangeColumn(column.name, column.name, kind)
        if what == "move" and location.after != column.name and location != Place():
            return ChangeColumn(column.name, column.name, location=location)
        return None

    def rename(self) -> None:
        if picked := self._some():
            name, _ = picked
            # a table seldom moves to another database
            to = self._free(name[0] if self._rnd.random() < 0.8 else None)
            self._add(Alter(name, (), to) if self._rnd.random() < 0.3 else Rename(((name, to),)))

    def swap(self) -> None:
        names = list(self._source.tables)
        if len(names) > 1:
            a, b = self._rnd.sample(names, 2)
            away = (a[0], "tmp")
            pairs = ((a, away), (b, a), (away, b))
            if self._rnd.random() < 0.3:  # as three statements
                for pair in pairs:
                    self._add(Rename((pair,)))
            else:
                self._add(Rename(pairs))

    def ghost(self) -> None:
        """Switch as gh-ost does: a changed copy takes the table's name."""
        if not (picked := self._some()):
            return
        name, table = picked
        copy, old = (name[0], f"_{name[1]}_gho"), (name[0], f"_{name[1]}_del")
        if copy in self._source.tables or old in self._source.tables:
            return
        self._add(CreateLike(copy, name))
        clause = self._clause(table.structure, set(table.structure.key))
        if clause is not None:
            self._add(Alter(copy, (clause,)))
        self._add(CopyRows(copy, name))
        if table.rows and self._rnd.random() < 0.5:
            self.update()
        self._add(Rename(((name, old), (copy, name))))
        if self._rnd.random() < 0.8:
            self._add(Drop((old,)))

    def drop(self) -> None:
        names = list(self._source.tables)
        if len(names) > 1:
            self._add(Drop(tuple(self._rnd.sample(names, self._rnd.choice((1, 1, 2)) if len(names) > 2 else 1))))

    def recreate(self) -> None:
        """Drop a table and create one of its name with other columns and another key."""
        if picked := self._some():
            name, _ = picked
            self._add(Drop((name,)))
            if self._rnd.random() < 0.3:
                self.insert()
            self._add(Create(name, self._structure()))
