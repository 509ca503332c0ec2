# SPDX-License-Identifier: Apache-2.0
"""Make random histories: which tables there are, and what happens to them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tests.histories.source import RefusedError
from tests.histories.tools import Style
from tests.postgres_histories import ddl_statements as ddl
from tests.postgres_histories import row_statements as rows
from tests.postgres_histories import steps
from tests.postgres_histories.kinds import KEYS, KINDS, Kind
from tests.postgres_histories.replay import PgCase
from tests.postgres_histories.server import Column, Name, Server, Statement, Table

SIZES = (5, 8, 12, 12, 20, 30, 45)
_SCHEMAS = ("app", "archive")
_NAMES = ("orders", "Mixed Case", "t_1", "größe", "lines", "copied", "x.y", "last")
_COLUMNS = ("a", "b", "v", "Order", "select", "größe", "x y", "w", "z", "id2")
_SOURCE = {"insert": 8, "update": 8, "delete": 3, "truncate": 1, "move": 3, "copy": 2, "several": 3, "open": 2}
_CONNECTOR = {"restart": 3, "incremental": 2, "blocking": 1, "always": 1, "lost": 1, "restored": 0.4}
_DDL = {"add": 3, "drop_column": 2, "retype": 2, "create": 1, "rename": 1, "rename_column": 1, "drop": 1, "identity": 1}
_LOGGED = {"create_as": 1, "recreate": 1, "swap": 1, "volatile": 0.3, "mixed": 2, "key": 0.5, "forget": 0.5}


class Maker:
    """Adds steps to a history, each by the source's present state."""

    def __init__(self, chance: random.Random, style: Style, *, logs_ddl: bool, on_unseen: str, hazards: bool) -> None:
        self.steps: list[steps.Step] = []
        self.world = steps.World(0, replace(style, embedded=False), logs_ddl=logs_ddl)
        self._chance, self._logs_ddl, self._on_unseen, self._hazards = chance, logs_ddl, on_unseen, hazards
        self._embedded = style.embedded
        self._one_partition = style.partitions == 1
        self._taken: set[Name] = set()
        self._keys = 0

    @property
    def server(self) -> Server:
        """The server as the steps left it."""
        return self.world.server

    def append(self, step: steps.Step) -> None:
        """Add a step and carry it out."""
        self.steps.append(step)
        with suppress(RefusedError):
            step.run(self.world)

    def commit(self, *statements: Statement) -> None:
        """Add a transaction, which the connector may read later."""
        self.append(steps.Commit(statements, reads=self._chance.random() < 0.8))

    def weights(self) -> dict[str, float]:
        """Return the weights of what happens."""
        weights: dict[str, float] = {**_SOURCE, **_CONNECTOR}
        if self._logs_ddl:
            return weights | _DDL | _LOGGED
        if not self._embedded:
            return weights
        return weights | ({"add": 1, "drop_column": 1, "create": 1} if self._on_unseen == "apply" else _DDL)

    def some(self) -> tuple[Name, Table]:
        """Return a table; refuses when there is none."""
        if not self.server.tables:
            raise RefusedError("no table")
        return self._chance.choice(list(self.server.tables.items()))

    def free(self, schema: str | None = None) -> Name:
        """Return a name that no table has; without a log of DDL one that none ever had."""
        names = [(s, t) for s in _SCHEMAS for t in _NAMES if (s, t) not in self.server.tables]
        if not self._logs_ddl:
            names = [name for name in names if name not in self._taken]
        names = [name for name in names if schema is None or name[0] == schema] or names
        if not names:
            raise RefusedError("no name is free")
        name = self._chance.choice(names)
        self._taken.add(name)
        return name

    # --- tables

    def column(self, attnum: int, name: str, *, key: bool = False) -> Column:
        """Return a random column."""
        chance = self._chance
        kind = chance.choice(KEYS if key else list(KINDS.values()))
        notnull = key or chance.random() < 0.2
        default = (kind.make(chance),) if not key and chance.random() < 0.25 else ()
        return Column(attnum, name, kind, notnull, default)

    def create(self) -> None:
        """CREATE TABLE."""
        if len(self.server.tables) < 4:
            self.ddl(self.table(self.free()))

    def table(self, name: Name) -> ddl.Create:
        """Return a CREATE TABLE."""
        chance = self._chance
        names = chance.sample(_COLUMNS, chance.randint(1, 5))
        size = 0 if chance.random() < 0.2 else min(len(names), chance.choice((1, 1, 1, 2)))
        columns = [self.column(n, column, key=n <= size) for n, column in enumerate(names, 1)]
        key = tuple(chance.sample(range(1, size + 1), size))
        identity, index = "d" if key else chance.choice("fffdn"), None
        if key:
            identity = chance.choice("ddddff")
        if self._hazards and chance.random() < 0.15:
            index = len(columns) + 1
            identity = "i"
            columns.append(Column(index, "unique_one", chance.choice(KEYS), notnull=True))
        return ddl.Create(name, tuple(columns), key, identity, index)

    def ddl(self, statement: Statement) -> None:
        """Add a change of a table; where only rows can show it, with a row that does."""
        name = getattr(statement, "to", None) if isinstance(statement, ddl.Rename) else getattr(statement, "name", None)
        step = steps.Commit((statement,), reads=self._chance.random() < 0.8 or not self._logs_ddl)
        if self._logs_ddl or isinstance(statement, ddl.Drop):
            self.append(step)
            return
        self.append(step)
        if name in self.server.tables:
            (made,) = self.steps[-1:]
            shown = steps.Commit((rows.Insert(name, (self.row(self.server.tables[name], new=True),)),))
            self.steps[-1] = steps.Several((made, shown))
            shown.run(self.world)

    # --- rows

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
        self.commit(rows.Truncate(tuple({self.some()[0] for _ in range(self._chance.choice((1, 1, 2)))})))

    def several(self) -> None:
        """Commit some statements in one transaction."""
        self.commit(*(self.statement() for _ in range(self._chance.randint(2, 4))))

    def open(self) -> None:
        """Begin a transaction that stays open, or end one."""
        closes = self.server.open and self._chance.random() < 0.6
        self.append(steps.Close() if closes else steps.Open(self.statement()))

    # --- the connector

    def restart(self) -> None:
        """Start the connector again."""
        self.append(steps.Restart(self._chance.randint(1, 12)))

    def incremental(self) -> None:
        """Take an incremental snapshot."""
        around = [tuple(self._unread() for _ in range(self._chance.choice((0, 1, 2)))) for _ in range(2)]
        self.append(steps.Incremental(self.some()[0], *around))

    def _unread(self) -> steps.Step:
        return steps.Commit((self.statement(),), reads=False)

    def blocking(self) -> None:
        """Take a blocking snapshot."""
        names = tuple(self.server.tables) if self._chance.random() < 0.5 else (self.some()[0],)
        until = tuple(self._unread() for _ in range(self._chance.choice((0, 0, 1))))
        self.append(steps.Blocking(names, until))

    def always(self) -> None:
        """Take a full snapshot on the slot that is there."""
        self.append(steps.Snapshot("always"))

    def lost(self) -> None:
        """Lose the slot, and take a full snapshot."""
        for _ in range(self._chance.choice((0, 1, 3))):
            self.append(self._unread())
        self._fill()
        self.append(steps.Snapshot("lost", slow=len(self.steps) % 3 == 0))

    def restored(self) -> None:
        """Restore a dump into a new cluster, and take a full snapshot of it."""
        if not self._one_partition:
            raise RefusedError("the log is seen to begin again where places fall on each partition")
        self._fill()
        self.append(steps.Snapshot("restored"))

    def _fill(self) -> None:
        """Let no table be empty: a snapshot says nothing of one."""
        empty = [name for name, table in self.server.tables.items() if not table.rows]
        for name in empty:
            insert = rows.Insert(name, (self.row(self.server.tables[name], new=True),))
            self.append(steps.Commit((insert,), reads=False))

    # --- changes of tables

    def _new_column(self) -> str:
        return self._chance.choice(_COLUMNS)

    def add_column(self, kind: Kind, *, benign: bool) -> Statement:
        """Return an ADD COLUMN."""
        name, table = self.some()
        if benign:
            return ddl.AddColumn(name, self._new_column(), kind)
        default = (kind.make(self._chance),) if self._chance.random() < 0.5 else ()
        constant = kind.constant or self._hazards or not self._logs_ddl
        default = default if constant and kind.name not in ("real", "double precision") else ()
        notnull = bool(default or not table.rows) and self._chance.random() < 0.3
        return ddl.AddColumn(name, self._new_column(), kind, default, notnull)

    def add(self) -> None:
        """ADD COLUMN."""
        kind = self._chance.choice(list(KINDS.values()))
        self.ddl(self.add_column(kind, benign=not self._logs_ddl and self._on_unseen == "apply"))

    def volatile(self) -> None:
        """ADD COLUMN with another value for each row."""
        kind = KINDS["integer"]
        filled = tuple(kind.make(self._chance) for _ in range(3))
        self.ddl(ddl.AddColumn(self.some()[0], self._new_column(), kind, filled=filled))

    def drop_column(self) -> None:
        """DROP COLUMN."""
        name, table = self.some()
        self.ddl(ddl.DropColumn(name, self._chance.choice(table.structure.columns).name))

    def retype(self) -> None:
        """ALTER COLUMN TYPE, without a hazard but where those are wanted."""
        name, table = self.some()
        able = [
            (column.name, new)
            for column in table.structure.columns
            for (old, new), conversion in ddl.CONVERSIONS.items()
            if old == column.kind.name and (self._hazards or not conversion.reason)
        ]
        if not able:
            raise RefusedError("no column can be converted")
        column, kind = self._chance.choice(able)
        self.ddl(ddl.AlterType(name, column, KINDS[kind]))

    def rename_column(self) -> None:
        """RENAME COLUMN."""
        name, table = self.some()
        self.ddl(ddl.RenameColumn(name, self._chance.choice(table.structure.columns).name, self._new_column()))

    def rename(self) -> None:
        """RENAME TO, or SET SCHEMA."""
        name, _ = self.some()
        free = self.free(name[0]) if self._chance.random() < 0.7 else (_other_schema(name), name[1])
        if not self._logs_ddl and free in self._taken and free[0] != name[0]:
            raise RefusedError("the name was another table's")
        self._taken.add(free)
        self.ddl(ddl.Rename(name, free))

    def swap(self) -> None:
        """Exchange the names of two tables of one schema."""
        (a, _), (b, _) = self.some(), self.some()
        if a == b or a[0] != b[0]:
            raise RefusedError("not two tables of one schema")
        away = (a[0], "away")
        self.commit(ddl.Rename(a, away), ddl.Rename(b, a), ddl.Rename(away, b))

    def drop(self) -> None:
        """DROP TABLE."""
        if len(self.server.tables) < 2:
            raise RefusedError("the last table stays")
        self.ddl(ddl.Drop(self.some()[0]))

    def recreate(self) -> None:
        """DROP and CREATE of one name, in one transaction or two."""
        name, _ = self.some()
        made = self.table(name)
        if self._chance.random() < 0.5:
            self.commit(ddl.Drop(name), made)
        else:
            self.commit(ddl.Drop(name))
            self.commit(made)

    def create_as(self) -> None:
        """CREATE TABLE AS."""
        if len(self.server.tables) < 5:
            self.commit(ddl.CreateAs(self.free(), self.some()[0]))

    def identity(self) -> None:
        """REPLICA IDENTITY."""
        name, table = self.some()
        able = "dffn" if table.structure.key else "ffn"
        self.commit(ddl.SetIdentity(name, self._chance.choice(able)))

    def key(self) -> None:
        """DROP or ADD PRIMARY KEY."""
        name, table = self.some()
        able = [column.name for column in table.structure.columns if column.kind in KEYS]
        size = 0 if table.structure.key and self._chance.random() < 0.4 else 1
        if len(able) < size or table.structure.index is not None:
            raise RefusedError("no column can be a key")
        self.commit(ddl.SetKey(name, tuple(self._chance.sample(able, size))))

    def mixed(self) -> None:
        """Change rows and a table in one transaction."""
        maker = Maker.__new__(Maker)
        maker.__dict__ = {**self.__dict__, "steps": []}
        before = self.statement()
        change = self._chance.choice(("add", "drop_column", "rename_column", "rename"))
        maker.append = lambda step: maker.steps.append(step)  # type: ignore[method-assign]
        getattr(maker, change)()
        statements = [one for step in maker.steps if isinstance(step, steps.Commit) for one in step.statements]
        self.commit(before, *statements, self.statement())

    def forget(self) -> None:
        """Delete the old rows of the log of DDL."""
        self.append(steps.ForgetDdl())


def _other_schema(name: Name) -> str:
    return _SCHEMAS[1] if name[0] == _SCHEMAS[0] else _SCHEMAS[0]


def case_of(seed: int, sizes: Sequence[int] = SIZES) -> PgCase:
    """Return the case of a seed, always the same."""
    chance = random.Random(f"postgres {seed}")
    logs_ddl, embedded = chance.random() < 0.5, chance.random() < 0.7
    on_unseen, hazards = chance.choice(("ask", "apply")), chance.random() < 0.25
    style = Style(
        partitions=chance.choice((1, 2, 3)),
        embedded=embedded,
        snapshot_null=chance.random() < 0.5,
        transactions=chance.random() < 0.7,
        heartbeats=chance.random() < 0.2,
        snapshot_dies=chance.random() < 0.2,
    )
    maker = Maker(chance, style, logs_ddl=logs_ddl, on_unseen=on_unseen, hazards=hazards)
    for _ in range(chance.choice((1, 2, 2, 3))):
        maker.append(steps.Commit((maker.table(maker.free()),)))
    first, count = chance.randint(0, 4), chance.choice(sizes)
    snapshot_after = 0
    while len(maker.steps) < count:
        if len(maker.steps) >= first and not snapshot_after:
            snapshot_after = len(maker.steps)
            maker.world.start()
        kinds, weights = zip(*maker.weights().items(), strict=True)
        kind = chance.choices(kinds, weights)[0]
        try:
            getattr(maker, kind)()
        except RefusedError:
            count -= chance.random() < 0.1
    return PgCase(
        seed,
        tuple(maker.steps),
        replace(style, snapshot_after=snapshot_after or len(maker.steps)),
        batches=chance.choice((1, 2, 2, 3, 4)),
        ragged=chance.choice((0.0, 0.5, 1.0)),
        late=chance.choice((0, 0, 0, 1, 2)),
        crashes=chance.choice((0.0, 0.0, 0.4)),
        repeats=0.2,
        losses=chance.choice((0.0, 0.0, 0.3)),
        on_drop=chance.choice(("keep", "keep", "apply")),
        logs_ddl=logs_ddl,
        on_unseen=on_unseen,
    )
