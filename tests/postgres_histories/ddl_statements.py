# SPDX-License-Identifier: Apache-2.0
"""Statements that change tables.

Each one says which reasons it gives for a table not to be equal to the source, with a log of DDL; without one
(docs/formats/debezium-postgres.md, "Structure without DDL") a change is asked about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tests.histories.kinds import WIDE
from tests.histories.source import RefusedError
from tests.postgres_histories.ddl_log import note
from tests.postgres_histories.kinds import KINDS, Kind
from tests.postgres_histories.server import (
    Change,
    Column,
    Name,
    Row,
    Server,
    Statement,
    Structure,
    Table,
    Transaction,
    full,
)

ASKED = ("on_unseen_ddl is ask", "apply.contradicted", "apply.row_not_found", "apply.key_unproven")
"""Reasons of a table that was changed without a record of the change."""
BY_RULE = "on_unseen_ddl is ask"
UNREAD = "the log has no row of it"  # a table of which no row was read took a name
KEY_CHANGED = ("on_key_change",)
"""Reasons of a table whose key was changed."""
_ADDED, _TYPES = 2, 4  # reasons of a rewrite


def _changed(server: Server, name: Name, *, harmless: bool = False) -> None:
    """Note that a table was changed, where only rows can show it."""
    if not server.logs_ddl:
        server.endanger(name, *((BY_RULE,) if harmless else ASKED))


@dataclass(frozen=True)
class Create(Statement):
    """CREATE TABLE; columns have the numbers of their order."""

    name: Name
    columns: tuple[Column, ...]
    key: tuple[int, ...] = ()
    identity: str = "d"
    index: int | None = None

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Make the table."""
        if self.name in server.tables:
            raise RefusedError("the table exists")
        server.tables[self.name] = Table(Structure(server.oid(), self.name, self.columns, self.key))
        created = server.change(self.name)
        server.take(self.name)
        note(server, transaction, created, self.sql(), tag="CREATE TABLE")
        if self.identity != "d":
            changed = server.change(self.name, identity=self.identity, index=self.index)
            note(server, transaction, changed, f"ALTER TABLE {full(self.name)} REPLICA IDENTITY …")
        _changed(server, self.name, harmless=True)

    def sql(self) -> str:
        """Return the statement."""
        columns = [
            f"{c.name} {c.kind.name}{' NOT NULL' * c.notnull}{f' DEFAULT {c.default[0]!r}' if c.default else ''}"
            for c in self.columns
        ]
        return f"CREATE TABLE {full(self.name)} ({', '.join(columns)}, key {self.key}, {self.identity}, {self.index})"


@dataclass(frozen=True)
class CreateAs(Statement):
    """CREATE TABLE AS: rows come before the statement is logged."""

    name: Name
    of: Name

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Make the table, and copy the rows."""
        if self.name in server.tables:
            raise RefusedError("the table exists")
        source = server.table(self.of)
        numbers = {column.attnum: n for n, column in enumerate(source.structure.columns, 1)}
        columns = tuple(Column(numbers[column.attnum], column.name, column.kind) for column in source.structure.columns)
        table = server.tables[self.name] = Table(Structure(server.oid(), self.name, columns))
        structure = server.change(self.name)
        server.take(self.name)
        for old in list(source.rows.values()):
            row: Row = {numbers[attnum]: value for attnum, value in old.items()}
            uid = server.uid()
            table.rows[uid] = row
            transaction.changes.append(Change("c", structure, server.step(), None, dict(row), uid=uid))
        note(server, transaction, structure, self.sql(), tag="CREATE TABLE AS")
        _changed(server, self.name, harmless=True)

    def sql(self) -> str:
        """Return the statement."""
        return f"CREATE TABLE {full(self.name)} AS SELECT * FROM {full(self.of)}"


@dataclass(frozen=True)
class Drop(Statement):
    """DROP TABLE."""

    name: Name

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Remove the table."""
        table = server.table(self.name)
        server.unlocked(table)
        del server.tables[self.name]
        note(server, transaction, table.structure, self.sql(), event="sql_drop", tag="DROP TABLE")

    def sql(self) -> str:
        """Return the statement."""
        return f"DROP TABLE {full(self.name)}"


@dataclass(frozen=True)
class Rename(Statement):
    """ALTER TABLE … RENAME TO, or SET SCHEMA: one part of the name changes."""

    name: Name
    to: Name

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Give the table its new name."""
        if self.to in server.tables or sum(a != b for a, b in zip(self.name, self.to, strict=True)) != 1:
            raise RefusedError("the name is taken")
        structure = server.change(self.name, name=self.to)
        server.tables[self.to] = server.tables.pop(self.name)
        server.take(self.to)
        note(server, transaction, structure, self.sql())
        if not server.tables[self.to].rows and server.logs_ddl:
            server.endanger(self.to, UNREAD)
        _changed(server, self.to)

    def sql(self) -> str:
        """Return the statement."""
        what = f"SET SCHEMA {self.to[0]}" if self.to[0] != self.name[0] else f'RENAME TO "{self.to[1]}"'
        return f"ALTER TABLE {full(self.name)} {what}"


@dataclass(frozen=True)
class AddColumn(Statement):
    """ALTER TABLE … ADD COLUMN.

    :param filled: values that a volatile default gives to the rows, in turn; empty without one.
    """

    name: Name
    column: str
    kind: Kind
    default: tuple[Any, ...] = ()
    notnull: bool = False
    filled: tuple[Any, ...] = ()

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Add the column."""
        table = server.table(self.name)
        structure = table.structure
        empty = not self.default and not self.filled
        if structure.has(self.column) or (self.notnull and empty and table.rows):
            raise RefusedError("the column exists, or rows have no value for it")
        attnum = server.new_attnum(structure.oid, structure.columns)
        default = self.default if not self.filled else ()
        column = Column(attnum, self.column, self.kind, self.notnull, default, missing=default)
        changed = server.change(self.name, columns=(*structure.columns, column))
        for number, row in enumerate(table.rows.values()):
            row[attnum] = self.filled[number % len(self.filled)] if self.filled else default[0] if default else None
        if self.filled:
            note(server, transaction, structure, self.sql(), event="table_rewrite", rewrite=_ADDED)
            changed = server.change(self.name, columns=_rewritten(changed.columns))
            server.endanger(self.name, "each stored row got a value of its own")
        elif default and default[0] is not None and not self.kind.constant:
            server.endanger(self.name, "the default of")
        note(server, transaction, changed, self.sql(), volatile=attnum if self.filled else None)
        _changed(server, self.name, harmless=not default and not self.filled)

    def sql(self) -> str:
        """Return the statement."""
        more = f" DEFAULT {self.default[0]!r}" if self.default else " DEFAULT random()" if self.filled else ""
        return (
            f"ALTER TABLE {full(self.name)} ADD COLUMN {self.column} {self.kind.name}{more}"
            f"{' NOT NULL' if self.notnull else ''}"
        )


@dataclass(frozen=True)
class DropColumn(Statement):
    """ALTER TABLE … DROP COLUMN of one that is in no key."""

    name: Name
    column: str

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Remove the column."""
        table = server.table(self.name)
        structure, column = table.structure, table.structure.named(self.column)
        if column.attnum in (*structure.key, structure.index) or len(structure.columns) == 1:
            raise RefusedError("the column is in a key, or the last one")
        changed = server.change(self.name, columns=tuple(c for c in structure.columns if c != column))
        for row in table.rows.values():
            del row[column.attnum]
        note(server, transaction, changed, self.sql())
        _changed(server, self.name, harmless=True)

    def sql(self) -> str:
        """Return the statement."""
        return f"ALTER TABLE {full(self.name)} DROP COLUMN {self.column}"


@dataclass(frozen=True)
class RenameColumn(Statement):
    """ALTER TABLE … RENAME COLUMN."""

    name: Name
    column: str
    to: str

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Give the column its new name."""
        structure = server.table(self.name).structure
        column = structure.named(self.column)
        if structure.has(self.to):
            raise RefusedError("the column exists")
        columns = tuple(replace(c, name=self.to) if c == column else c for c in structure.columns)
        changed = server.change(self.name, columns=columns)
        note(server, transaction, changed, self.sql(), kind="table column")
        _changed(server, self.name)

    def sql(self) -> str:
        """Return the statement."""
        return f"ALTER TABLE {full(self.name)} RENAME COLUMN {self.column} TO {self.to}"


@dataclass(frozen=True)
class AlterType(Statement):
    """ALTER TABLE … ALTER COLUMN … TYPE, one of those in :data:`CONVERSIONS`."""

    name: Name
    column: str
    kind: Kind

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Convert the column."""
        table = server.table(self.name)
        structure, column = table.structure, table.structure.named(self.column)
        conversion = CONVERSIONS.get((column.kind.name, self.kind.name))
        query = self.sql() + (" USING …" if conversion is not None and conversion.reason else "")
        if conversion is None or column.attnum in (*structure.key, structure.index) or column.default:
            raise RefusedError("no such conversion here")
        rows = {uid: row[column.attnum] for uid, row in table.rows.items()}
        converted = {uid: None if value is None else conversion.convert(value) for uid, value in rows.items()}
        columns = tuple(replace(c, kind=self.kind) if c == column else c for c in structure.columns)
        if conversion.rewrites:
            note(server, transaction, structure, query, event="table_rewrite", rewrite=_TYPES)
            columns = _rewritten(columns)
        changed = server.change(self.name, columns=columns)
        for uid, value in converted.items():
            table.rows[uid][column.attnum] = value
        if conversion.reason:
            server.endanger(self.name, conversion.reason)
        note(server, transaction, changed, query)
        _changed(server, self.name, harmless=not conversion.rewrites)

    def sql(self) -> str:
        """Return the statement."""
        return f"ALTER TABLE {full(self.name)} ALTER COLUMN {self.column} TYPE {self.kind.name}"


def _rewritten(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return columns of which all rows were stored again."""
    return tuple(replace(column, missing=()) for column in columns)


@dataclass(frozen=True)
class SetIdentity(Statement):
    """ALTER TABLE … REPLICA IDENTITY."""

    name: Name
    identity: str

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Change what the WAL has of changed rows."""
        changed = server.change(self.name, identity=self.identity)
        note(server, transaction, changed, self.sql())

    def sql(self) -> str:
        """Return the statement."""
        return f"ALTER TABLE {full(self.name)} REPLICA IDENTITY {self.identity}"


@dataclass(frozen=True)
class SetKey(Statement):
    """ALTER TABLE that drops the primary key, or makes some columns it; rows may not be alike in it."""

    name: Name
    columns: tuple[str, ...]

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Change the key."""
        table = server.table(self.name)
        structure = table.structure
        key = tuple(structure.named(name).attnum for name in self.columns)
        values = [tuple(row[part] for part in key) for row in table.rows.values()]
        if key == structure.key or any(None in one for one in values):
            raise RefusedError("no other key, or NULL in it")
        if key and len({repr(one) for one in values}) < len(values):
            raise RefusedError("the key is not unique")
        columns = tuple(replace(c, notnull=True) if c.attnum in key else c for c in structure.columns)
        changed = server.change(self.name, columns=columns, key=key)
        note(server, transaction, changed, self.sql())
        server.endanger(self.name, *KEY_CHANGED)

    def sql(self) -> str:
        """Return the statement."""
        return f"ALTER TABLE {full(self.name)} PRIMARY KEY {self.columns}"


@dataclass(frozen=True)
class _Conversion:
    """Hold how the server converts, whether it stores all rows again, and why that is not in the log."""

    convert: Callable[[Any], Any]
    rewrites: bool = True
    reason: str = ""


def _to_number(digits: int, scale: int) -> Callable[[Any], Decimal]:
    def convert(value: Any) -> Decimal:
        number = Decimal(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, context=WIDE)
        if abs(number) >= Decimal(10) ** (digits - scale):
            raise RefusedError("numeric field overflow")
        return number if number else abs(number)

    return convert


def _same(value: Any) -> Any:
    return value


_NOT_LOGGED = "the log does not have what the values became"
CONVERSIONS = {
    ("smallint", "integer"): _Conversion(int),
    ("smallint", "bigint"): _Conversion(int),
    ("integer", "bigint"): _Conversion(int),
    ("integer", "numeric(12,4)"): _Conversion(_to_number(12, 4)),
    ("integer", "numeric(30,0)"): _Conversion(_to_number(30, 0)),
    ("bigint", "numeric(30,0)"): _Conversion(_to_number(30, 0)),
    ("numeric(9,2)", "numeric(12,4)"): _Conversion(_to_number(12, 4)),
    ("numeric(12,4)", "numeric(9,2)"): _Conversion(_to_number(9, 2)),
    ("numeric(12,4)", "numeric(30,0)"): _Conversion(_to_number(30, 0)),
    ("integer", "text"): _Conversion(str),
    ("bigint", "character varying"): _Conversion(str),
    ("numeric(9,2)", "text"): _Conversion(lambda value: f"{value:f}"),
    ("character varying(20)", "text"): _Conversion(_same, rewrites=False),
    ("character varying", "text"): _Conversion(_same, rewrites=False),
    ("text", "integer"): _Conversion(len, reason=_NOT_LOGGED),
    ("date", "timestamp without time zone"): _Conversion(lambda value: value * 86_400_000_000, reason=_NOT_LOGGED),
}
TYPES = {name: KINDS[name] for pair in CONVERSIONS for name in pair}
