# SPDX-License-Identifier: Apache-2.0
"""Statements that change rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.histories.source import RefusedError
from tests.postgres_histories.server import Change, Name, Row, Server, Statement, Table, Transaction, full, names_of

# what may come of a table whose replica identity is another index than the primary key's
GHOST = (
    "record.key_made_up",
    "reason=image_missing",
    "reason=row_unknown",
    "apply.row_not_found",
    "apply.contradicted",
    "apply.key_unproven",
)


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT of some rows; ``copy`` for COPY, whose rows share a place in the WAL. Rows with a taken key are left out.

    :param rows: by name of the column; what they do not name is the default.
    """

    name: Name
    rows: tuple[dict[str, Any], ...]
    copy: bool = False

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Add the rows."""
        table, lsn = server.table(self.name), server.step()
        for values in self.rows:
            row = {
                column.attnum: values.get(column.name, column.default[0] if column.default else None)
                for column in table.structure.columns
            }
            if any(column.notnull and row[column.attnum] is None for column in table.structure.columns):
                raise RefusedError("NULL in a NOT NULL column")
            if server.is_taken(table, row):
                continue
            lsn = lsn if self.copy else server.step()
            uid = server.uid()
            table.rows[uid] = row
            transaction.changes.append(Change("c", table.structure, lsn, None, dict(row), uid=uid))

    def sql(self) -> str:
        """Return the statement."""
        return f"{'COPY' if self.copy else 'INSERT INTO'} {full(self.name)} {list(map(_short, self.rows))}"


@dataclass(frozen=True)
class Update(Statement):
    """UPDATE of the rows at these places among those that are there, each modulo their count.

    :param values: by name of the column.
    """

    name: Name
    picks: tuple[int, ...]
    values: dict[str, Any]

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Change the rows."""
        table = server.table(self.name)
        structure = table.structure
        if not structure.identifying:
            raise RefusedError("the table has no replica identity")
        numbers = {structure.named(name).attnum: value for name, value in self.values.items()}
        if any(numbers.get(c.attnum, 0) is None for c in structure.columns if c.notnull):
            raise RefusedError("NULL in a NOT NULL column")
        for uid in _picked(server, table, self.picks):
            row = table.rows[uid]
            new = row | numbers
            if not server.is_taken(table, new, uid):
                table.rows[uid] = new
                transaction.changes.append(_updated(server, table, uid, row, new, frozenset(numbers)))

    def sql(self) -> str:
        """Return the statement."""
        return f"UPDATE {full(self.name)} SET {_short(self.values)} of rows {self.picks}"


def _updated(server: Server, table: Table, uid: int, row: Row, new: Row, touched: frozenset[int]) -> Change:
    """Return what the WAL has of an update."""
    structure = table.structure
    long = {c.attnum for c in structure.columns if c.attnum not in touched and c.kind.is_long(new[c.attnum])}
    moved = any(row[part] != new[part] for part in structure.key)
    if structure.identity == "i":
        logged = server.logs_ddl and structure.key  # then the table is parked whatever its rows are
        if not logged and (
            moved or not structure.key or row[structure.identifying[0]] != new[structure.identifying[0]]
        ):
            server.endanger(structure.name, *GHOST)
        moved = row[structure.identifying[0]] != new[structure.identifying[0]]
    unchanged = frozenset() if structure.identity == "f" else frozenset(long)
    if moved and unchanged:
        server.endanger(structure.name, "record.value_missing")
    return Change("k" if moved else "u", structure, server.step(), dict(row), dict(new), unchanged, uid)


@dataclass(frozen=True)
class Delete(Statement):
    """DELETE of the rows at these places among those that are there."""

    name: Name
    picks: tuple[int, ...]

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Remove the rows."""
        table = server.table(self.name)
        structure = table.structure
        if not structure.identifying:
            raise RefusedError("the table has no replica identity")
        for uid in _picked(server, table, self.picks):
            if structure.identity == "i":
                server.endanger(self.name, *GHOST)
            transaction.changes.append(Change("d", structure, server.step(), table.rows.pop(uid), None, uid=uid))

    def sql(self) -> str:
        """Return the statement."""
        return f"DELETE FROM {full(self.name)} of rows {self.picks}"


@dataclass(frozen=True)
class Truncate(Statement):
    """TRUNCATE of some tables, all at one place in the WAL."""

    names: tuple[Name, ...]

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Empty the tables."""
        lsn = server.step()
        for name in self.names:
            table = server.table(name)
            server.unlocked(table)
            table.rows = {}
            transaction.changes.append(Change("t", table.structure, lsn))

    def sql(self) -> str:
        """Return the statement."""
        return f"TRUNCATE {', '.join(map(full, self.names))}"


def _picked(server: Server, table: Table, picks: tuple[int, ...]) -> list[int]:
    free = server.free_rows(table)
    return list(dict.fromkeys(free[pick % len(free)] for pick in picks)) if free else []


def _short(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={str(value)[:40]!r}" for name, value in values.items())


def key_names(table: Table) -> list[str]:
    """Return the names of the key's columns."""
    return names_of(table.structure, table.structure.key)
