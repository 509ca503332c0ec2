# SPDX-License-Identifier: Apache-2.0
"""A random but repeatable source history and, by plain Python, the tables it leaves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from airflow_provider_cdc.core.model.schema import Column, TableName, TableSchema
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from tests.cross_format.events import Ddl, Event, Image, Row, Value

DATABASE = "shop"
START_MS = 1_735_689_600_000  # 2025-01-01 00:00:00 UTC

CREATES = {
    "accounts": (
        "CREATE TABLE accounts (id BIGINT NOT NULL PRIMARY KEY, ti TINYINT, tu TINYINT UNSIGNED, sm SMALLINT,"
        " su SMALLINT UNSIGNED, me MEDIUMINT, i INT, iu INT UNSIGNED, b BIGINT, bu BIGINT UNSIGNED, d DECIMAL(20,4),"
        " dd DECIMAL(38,10), f FLOAT, db DOUBLE, b1 BIT(1), b8 BIT(8), b64 BIT(64), c CHAR(10), v VARCHAR(50), t TEXT,"
        " bi BINARY(4), vb VARBINARY(16), bl BLOB, da DATE, dt DATETIME, dt6 DATETIME(6), ts TIMESTAMP NULL,"
        " ts3 TIMESTAMP(3) NULL, tm TIME, tm6 TIME(6), y YEAR, e ENUM('small','it''s','größe'), s SET('a','b','c'),"
        " j JSON)"
    ),
    "lines": (
        "CREATE TABLE `lines` (order_id INT NOT NULL, no SMALLINT NOT NULL, qty DECIMAL(12,3), note VARCHAR(40),"
        " PRIMARY KEY (order_id, no))"
    ),
    "hits": "CREATE TABLE hits (page VARCHAR(20), n INT)",
}
_TEXTS = ["", "plain", "NULL", "null", 'it\'s "quoted"', "back\\slash", "tab\tline\nend", "größe", "😀 emoji", "a" * 50]
_LONG_TEXTS = [*_TEXTS, "\u0001\u001f", "x" * 5000, '{"json": [1.10]}', "漢字"]
_BYTES = [b"", b"\x00", b"\xff\x00\x80", b"abc", bytes(range(16)), b"\x00\x00\x01"]


def structure(statements: list[str], table: str) -> TableSchema | None:
    """Return a table's columns and key after these statements, None when it is gone."""
    changes = [SchemaChange(f"{n:06d}", n, DATABASE, text) for n, text in enumerate(statements, 1)]
    timeline = build_timeline(changes)
    result = timeline.owner(TableName(DATABASE, table), "~")
    return None if result is None else timeline.tables[result].schema


@dataclass
class History:
    """Events in source order and the content they leave."""

    events: list[Event] = field(default_factory=list)
    tables: dict[str, list[Image]] = field(default_factory=dict)
    schemas: dict[str, TableSchema] = field(default_factory=dict)


class Source:
    """A database that writes down what happens to it.

    :param ddl: whether tables change their columns on the way; if not, statements only create them.
    """

    def __init__(self, seed: int, ddl: bool) -> None:
        self._chance = random.Random(seed)
        self._ddl = ddl
        self._statements: list[str] = []
        self._transaction = 0
        self._time = START_MS
        self._next_id = 1
        self.history = History()

    def run(self, steps: int) -> History:
        """Create the tables, then do so many random things; some statements at fixed places in between."""
        for table, statement in CREATES.items():
            self.say(table, statement)
        changes = {int(steps * share): what for share, what in self._changes()} if self._ddl else {}
        for step in range(steps):
            if step in changes:
                changes[step]()
            self._rows()
        return self.history

    def _changes(self) -> Iterator[tuple[float, object]]:
        def alter(share: float, table: str, statement: str) -> tuple[float, object]:
            return share, lambda: self.say(table, statement)

        yield alter(
            0.2,
            "lines",
            "ALTER TABLE `lines` ADD extra VARCHAR(20) NOT NULL DEFAULT 'it''s', ADD price DECIMAL(9,2) NULL AFTER qty",
        )
        yield alter(0.35, "lines", "ALTER TABLE `lines` DROP COLUMN note")
        yield alter(0.5, "lines", "ALTER TABLE `lines` CHANGE extra label VARCHAR(30) NOT NULL DEFAULT 'x' FIRST")
        yield alter(0.6, "accounts", "ALTER TABLE accounts ADD later INT NULL, MODIFY v VARCHAR(80)")
        yield alter(0.75, "late", "CREATE TABLE late (k VARCHAR(10) NOT NULL PRIMARY KEY, v INT)")

    # ---- what happens

    def say(self, table: str, statement: str) -> None:
        """Carry out one statement."""
        before = self.history.schemas.get(table)
        self._statements.append(statement)
        after = structure(self._statements, table)
        assert after is not None
        self._transaction += 1
        self._event(Ddl(statement, DATABASE, table, after))
        self.history.schemas[table] = after
        rows = self.history.tables.get(table, [])
        self.history.tables[table] = [_carried(row, before, after) for row in rows] if before else []

    def _rows(self) -> None:
        self._transaction += 1
        self._time += 1000 * self._chance.choice([0, 0, 1, 2])
        for _ in range(self._chance.choice([1, 1, 2, 3])):
            table = self._chance.choice(list(self.history.schemas))
            rows = self.history.tables[table]
            match self._chance.random():
                case p if p < 0.45 or not rows:
                    self._insert(table)
                case p if p < 0.8:
                    self._update(table, self._chance.randrange(len(rows)))
                case _:
                    before = rows.pop(self._chance.randrange(len(rows)))
                    self._row("delete", table, before, None)

    def _insert(self, table: str) -> None:
        schema = self.history.schemas[table]
        row = {column.name: self._value(column) for column in schema.columns}
        row.update(self._new_key(table))
        self.history.tables[table].append(row)
        self._row("insert", table, None, row)

    def _update(self, table: str, index: int) -> None:
        schema, before = self.history.schemas[table], self.history.tables[table][index]
        keys = {column.name for column in schema.key_columns}
        after = dict(before)
        for column in schema.columns:
            if column.name not in keys and self._chance.random() < 0.3:
                after[column.name] = self._value(column)
        if keys and self._chance.random() < 0.15:
            after.update(self._new_key(table))
        if after != before:
            self.history.tables[table][index] = after
            self._row("update", table, before, after)

    def _new_key(self, table: str) -> dict[str, Value]:
        self._next_id += 1
        names = [column.name for column in self.history.schemas[table].key_columns]
        values: dict[str, Value] = {
            "id": self._next_id,
            "order_id": self._next_id // 3,
            "no": self._next_id,
            "k": f"k{self._next_id}",
        }
        return {name: values[name] for name in names}

    def _row(self, op: str, table: str, before: Image | None, after: Image | None) -> None:
        self._event(Row(op, DATABASE, table, self.history.schemas[table], before, after))

    def _event(self, what: Row | Ddl) -> None:
        number = len(self.history.events) + 1
        file, pos = 7 + number // 150, 100 + 40 * number
        self.history.events.append(
            Event(number, file, pos, self._time, self._time + 500 + number, self._transaction, what)
        )

    # ---- values

    def _value(self, column: Column) -> Value:
        chance, kind = self._chance, column.type
        if column.nullable and chance.random() < 0.2:
            return None
        bits = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
        match kind.name:
            case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
                low, high = (
                    (0, 2 ** bits[kind.name] - 1)
                    if kind.unsigned
                    else (-(2 ** (bits[kind.name] - 1)), 2 ** (bits[kind.name] - 1) - 1)
                )
                return chance.choice([low, high, 0, 1, chance.randint(low, high)])
            case "decimal":
                digits, scale = kind.length or 10, kind.scale or 0
                top = 10**digits - 1
                number = chance.choice([0, 1, -1, top, -top, chance.randint(-top, top)])
                return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
            case "float":
                return chance.choice([0.0, 1.5, -2.25, 1024.125, 3.0e10])
            case "double":
                return chance.choice([0.0, 0.1, -1e-5, 1.7976931348623157e308, 12345.678])
            case "bit":
                return chance.choice([0, 1, 2 ** (kind.length or 1) - 1])
            case "year":
                return chance.choice([1901, 2024, 2155])
            case "binary":
                return chance.choice(_BYTES[:4])[: kind.length].ljust(kind.length or 1, b"\x00")
            case "varbinary" | "blob":
                return chance.choice(_BYTES)
            case _:
                return self._text(column)

    def _text(self, column: Column) -> str:
        chance, kind = self._chance, column.type
        fraction = ["", "000001", "120000", "999999"] if kind.length == 6 else ["", "000", "120", "999"]
        digits = (
            f".{chance.choice(fraction[1:])}" if kind.length and kind.name in ("datetime", "timestamp", "time") else ""
        )
        match kind.name:
            case "date":
                return chance.choice(["1970-01-01", "2024-02-29", "1000-01-01", "9999-12-31"])
            case "datetime":
                return chance.choice(["2024-02-29 23:59:59", "1970-01-01 00:00:00", "9999-12-31 00:00:00"]) + digits
            case "timestamp":
                return chance.choice(["2024-03-31 01:30:00", "1970-01-02 00:00:01", "2037-12-31 23:59:59"]) + digits
            case "time":
                return chance.choice(["00:00:00", "23:59:59", "-01:02:03", "838:59:58"]) + digits
            case "enum":
                return chance.choice(kind.labels)
            case "set":
                return ",".join(label for label in kind.labels if chance.random() < 0.5)
            case "json":
                return chance.choice(['{"a": 1, "b": [true, null]}', '"text"', "[]", '{"größe": "😀"}'])
            case "text":
                return chance.choice(_LONG_TEXTS)
            case _:
                text = chance.choice(_TEXTS)[: kind.length]
                return text.rstrip(" ") if kind.name == "char" else text


def _carried(row: Image, before: TableSchema, after: TableSchema) -> Image:
    """Return a stored row as an ALTER leaves it: columns keep their id, new ones get their default."""
    values = {column.id: row[column.name] for column in before.columns}
    defaults = {column.id: column.default.text for column in after.columns if column.default}
    return {column.name: values.get(column.id, defaults.get(column.id)) for column in after.columns}


def history(seed: int, steps: int = 120, *, ddl: bool = True) -> History:
    """Return the history of a seed."""
    return Source(seed, ddl).run(steps)
