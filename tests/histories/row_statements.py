# SPDX-License-Identifier: Apache-2.0
"""The model's statements that change rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.histories.source import (
    Event,
    Name,
    RefusedError,
    Row,
    RowEvent,
    Source,
    Statement,
    Structure,
    Table,
    TruncateEvent,
    full,
)


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
    for values in rows:
        row = {c.name: c.kind.stored(values.get(c.name, c.absent())) for c in table.structure.columns}
        if not _acceptable(table.structure, row) or (table.structure.key and table.key_of(row) in taken):
            continue
        taken.add(table.key_of(row))
        table.rows.append(row)
        table.settle()
        table.feed.append(("insert", dict(row)))
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
        for index in _picked(table, self.picks):
            old = table.rows[index]
            new = {c.name: c.kind.stored(self.values.get(c.name, old[c.name])) for c in table.structure.columns}
            if not _acceptable(table.structure, new) or new == old or _taken(table, index, new):
                continue
            events.append(_changed(self.name, table, index, new))
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
        for index in order:
            new = {**table.rows[index], first: table.rows[index][first] + self.by}
            if not _taken(table, index, new):
                events.append(_changed(self.name, table, index, new))
        return events

    def sql(self) -> str:
        order = "DESC" if self.by > 0 else "ASC"
        return f"UPDATE {full(self.name)} SET (first key column) = it + {self.by} ORDER BY it {order}"


def _picked(table: Table, picks: Sequence[int]) -> list[int]:
    return list(dict.fromkeys(pick % len(table.rows) for pick in picks)) if table.rows else []


def _taken(table: Table, index: int, new: Row) -> bool:
    key = table.key_of(new)
    return bool(table.structure.key) and any(table.key_of(row) == key for i, row in enumerate(table.rows) if i != index)


def _changed(name: Name, table: Table, index: int, new: Row) -> RowEvent:
    old = table.rows[index]
    table.rows[index] = new
    moved = bool(table.structure.key) and table.key_of(old) != table.key_of(new)
    table.bury([old] if moved else [])
    table.feed += [("moved from", dict(old)), ("moved to", dict(new))] if moved else [("update", dict(new))]
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
            RowEvent(self.name, table.structure, "d", dict(table.rows[index]), None) for index in gone
        ]
        went = [table.rows[index] for index in gone]
        table.rows[:] = [row for index, row in enumerate(table.rows) if index not in gone]
        table.bury(went)
        table.feed += [("delete", dict(row)) for row in went]
        return events

    def sql(self) -> str:
        return f"DELETE FROM {full(self.name)} -- rows {self.picks}"


@dataclass(frozen=True)
class Truncate(Statement):
    """TRUNCATE TABLE."""

    name: Name

    def run(self, source: Source) -> list[Event]:
        table = source.table(self.name)
        went = list(table.rows)
        table.rows.clear()
        table.bury(went)
        table.feed.append(("truncate", {}))
        return [TruncateEvent(self.name, table.structure)]

    def sql(self) -> str:
        return f"TRUNCATE TABLE {full(self.name)}"
