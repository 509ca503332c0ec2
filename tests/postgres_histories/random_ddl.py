# SPDX-License-Identifier: Apache-2.0
"""Make random changes of tables."""

from __future__ import annotations

from tests.histories.source import RefusedError
from tests.postgres_histories import ddl_statements as ddl
from tests.postgres_histories import row_statements as rows
from tests.postgres_histories import steps
from tests.postgres_histories.kinds import KEYS, KINDS, Kind
from tests.postgres_histories.random_connector import ConnectorMaker
from tests.postgres_histories.random_tables import COLUMNS, SCHEMAS
from tests.postgres_histories.server import Name, Statement


class DdlMaker(ConnectorMaker):
    """Adds statements that change tables."""

    def create(self) -> None:
        """CREATE TABLE."""
        if len(self.server.tables) < 4:
            self.ddl(self.table(self.free()))

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

    def _new_column(self) -> str:
        return self._chance.choice(COLUMNS)

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
        able = ("dffn" if table.structure.key else "ffn") + "i" * (table.structure.index is not None)
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
        maker = type(self).__new__(type(self))
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
    return SCHEMAS[1] if name[0] == SCHEMAS[0] else SCHEMAS[0]
