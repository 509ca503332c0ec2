# SPDX-License-Identifier: Apache-2.0
"""Make random statements about rows."""

from __future__ import annotations

from typing import Any

from tests.histories.source import RefusedError
from tests.postgres_histories import row_statements as rows
from tests.postgres_histories import steps
from tests.postgres_histories.kinds import Kind
from tests.postgres_histories.random_tables import TableMaker
from tests.postgres_histories.server import Column, Statement, Table


class RowMaker(TableMaker):
    """Adds transactions that change rows."""

    def value(self, column: Column) -> Any:
        """Return a random value of a column."""
        chance, kind = self._chance, column.kind
        if not column.notnull and chance.random() < 0.2:
            return None
        return kind.long(chance) if kind.long is not None and chance.random() < 0.3 else kind.make(chance)

    def key_value(self, kind: Kind, *, new: bool = False) -> Any:
        """Return a value of a key: one of few, so that rows meet, or one that no row had."""
        self._keys += 1
        number = 100 + self._keys if new else self._chance.randint(1, 12)
        if kind.name == "uuid":
            return f"00000000-0000-4000-8000-{number:012d}"
        return number if kind.name in ("integer", "bigint") else f"k{number}"

    def row(self, table: Table, *, new: bool = False) -> dict[str, Any]:
        """Return a row, some of whose columns may be left to their defaults.

        :param new: whether its key is one that no row had.
        """
        structure = table.structure
        keys = {*structure.key, *([structure.index] if structure.index is not None else [])}
        values = {}
        for column in structure.columns:
            if column.attnum in keys:
                values[column.name] = self.key_value(column.kind, new=new)
            elif not column.default or self._chance.random() < 0.6:
                values[column.name] = self.value(column)
        return values

    def picks(self) -> tuple[int, ...]:
        """Return places of rows."""
        return tuple(self._chance.randrange(50) for _ in range(self._chance.choice((1, 1, 2, 3))))

    def an_insert(self) -> Statement:
        """Return an INSERT."""
        name, table = self.some()
        some = tuple(self.row(table) for _ in range(self._chance.choice((1, 1, 2, 4))))
        if not table.structure.key and self._chance.random() < 0.4:
            some += some[:1]
        return rows.Insert(name, some)

    def an_update(self) -> Statement:
        """Return an UPDATE of some columns."""
        name, table = self.some()
        structure = table.structure
        free = [c for c in structure.columns if c.attnum not in (*structure.key, structure.index)]
        if not free:
            raise RefusedError("only a key")
        columns = self._chance.sample(free, self._chance.randint(1, min(2, len(free))))
        return rows.Update(name, self.picks(), {c.name: self.value(c) for c in columns})

    def a_move(self) -> Statement:
        """Return an UPDATE of a key; with long values only under FULL, but where hazards are wanted."""
        name, table = self.some()
        structure = table.structure
        if not structure.key or (structure.identity == "d" and self._has_long(table) and not self._hazards):
            raise RefusedError("a long value would not come")
        part = self._chance.choice([c for c in structure.columns if c.attnum in structure.key])
        others = [c for c in structure.columns if c.attnum not in (*structure.key, structure.index)]
        more = {
            c.name: self.value(c) for c in self._chance.sample(others, self._chance.randint(0, min(1, len(others))))
        }
        return rows.Update(name, self.picks()[:2], {part.name: self.key_value(part.kind), **more})

    @staticmethod
    def _has_long(table: Table) -> bool:
        return any(c.kind.is_long(row[c.attnum]) for row in table.rows.values() for c in table.structure.columns)

    def a_delete(self) -> Statement:
        """Return a DELETE."""
        return rows.Delete(self.some()[0], self.picks())

    def statement(self) -> Statement:
        """Return a statement about rows."""
        return self._chance.choice(
            (self.an_insert, self.an_insert, self.an_update, self.an_update, self.a_delete, self.a_move)
        )()

    def insert(self) -> None:
        """INSERT."""
        self.commit(self.an_insert())

    def update(self) -> None:
        """UPDATE."""
        self.commit(self.an_update())

    def delete(self) -> None:
        """DELETE."""
        self.commit(self.a_delete())

    def move(self) -> None:
        """UPDATE of a key."""
        self.commit(self.a_move())

    def copy(self) -> None:
        """COPY."""
        statement = self.an_insert()
        assert isinstance(statement, rows.Insert)
        self.commit(rows.Insert(statement.name, statement.rows, copy=True))

    def truncate(self) -> None:
        """TRUNCATE of one table or two."""
        names = dict.fromkeys(self.some()[0] for _ in range(self._chance.choice((1, 1, 2))))  # in one order everywhere
        self.commit(rows.Truncate(tuple(names)))

    def several(self) -> None:
        """Commit some statements in one transaction."""
        self.commit(*(self.statement() for _ in range(self._chance.randint(2, 4))))

    def open(self) -> None:
        """Begin a transaction that stays open, or end one."""
        closes = self.server.open and self._chance.random() < 0.6
        self.append(steps.Close() if closes else steps.Open(self.statement()))
