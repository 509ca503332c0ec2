# SPDX-License-Identifier: Apache-2.0
"""Make random tables, each by the source's present state."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace

from tests.histories.source import RefusedError
from tests.histories.tools import Style
from tests.postgres_histories import ddl_statements as ddl
from tests.postgres_histories import steps
from tests.postgres_histories.kinds import KEYS, KINDS
from tests.postgres_histories.server import Column, Name, Server, Statement, Table

SCHEMAS = ("app", "archive")
NAMES = ("orders", "Mixed Case", "t_1", "größe", "lines", "copied", "x.y", "last")
COLUMNS = ("a", "b", "v", "Order", "select", "größe", "x y", "w", "z", "id2")


class TableMaker:
    """Adds steps to a history, and says which tables there are."""

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

    def some(self) -> tuple[Name, Table]:
        """Return a table; refuses when there is none."""
        if not self.server.tables:
            raise RefusedError("no table")
        return self._chance.choice(list(self.server.tables.items()))

    def free(self, schema: str | None = None) -> Name:
        """Return a name that no table has; without a log of DDL one that none ever had."""
        names = [(s, t) for s in SCHEMAS for t in NAMES if (s, t) not in self.server.tables]
        if not self._logs_ddl:
            names = [name for name in names if name not in self._taken]
        names = [name for name in names if schema is None or name[0] == schema] or names
        if not names:
            raise RefusedError("no name is free")
        name = self._chance.choice(names)
        self._taken.add(name)
        return name

    def column(self, attnum: int, name: str, *, key: bool = False) -> Column:
        """Return a random column."""
        chance = self._chance
        kind = chance.choice(KEYS if key else list(KINDS.values()))
        notnull = key or chance.random() < 0.2
        default = (kind.make(chance),) if not key and chance.random() < 0.25 else ()
        return Column(attnum, name, kind, notnull, default)

    def table(self, name: Name) -> ddl.Create:
        """Return a CREATE TABLE."""
        chance = self._chance
        names = chance.sample(COLUMNS, chance.randint(1, 5))
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
