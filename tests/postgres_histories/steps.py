# SPDX-License-Identifier: Apache-2.0
"""Steps of a history: transactions of the source, and what its connector does between them."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from tests.histories.source import RefusedError
from tests.histories.tools import Style
from tests.postgres_histories.connector import Connector
from tests.postgres_histories.ddl_log import forget, install
from tests.postgres_histories.ddl_statements import BY_RULE
from tests.postgres_histories.server import Name, Server, Statement, Structure, Transaction

READ_AHEAD = "a snapshot has read a change of this table that came behind it"
LASTING = {"record.value_missing", "record.key_made_up"}
"""Reasons that a full snapshot does not take away."""


class World:
    """A server and its connector.

    :param seed: of all chance but that of the statements themselves.
    """

    def __init__(self, seed: int, style: Style, *, logs_ddl: bool) -> None:
        self.server = Server(f"{seed} server", logs_ddl=logs_ddl)
        self.connector = Connector(self.server, style, random.Random(f"{seed} connector"))
        self.dies = style.snapshot_dies
        self.new_logs = 0  # how often the log began again at lower places
        self.streams = False
        self.at_start: list[Structure] = []

    def run(self, steps: tuple[Step, ...], snapshot_after: int) -> None:
        """Carry out a history; the connector starts with a snapshot after some steps, and reads to the end."""
        for step in steps[:snapshot_after]:
            self.attempt(step)
        self.start()
        for step in steps[snapshot_after:]:
            self.attempt(step)
        while self.server.open:
            self.server.end()
        self.server.run([])
        self.connector.stream()

    def start(self) -> None:
        """Describe what is there, and take the first snapshot."""
        while self.server.open:
            self.server.end()
        for table in self.server.tables.values():
            if table.rows or not self.server.logs_ddl:
                self.server.hazards.pop(table.structure.oid, None)
        self.server.unread.clear()
        install(self.server)
        self.at_start = [table.structure for table in self.server.tables.values()]
        self.streams = True
        for name, table in self.server.tables.items():
            if not table.rows and not self.server.logs_ddl:
                self.server.endanger(name, BY_RULE)
        lsn = self.server.step()
        if self.dies:  # it is taken again on the slot that is there, of the same place
            self.connector.break_off(lsn)
            self.server.millis += 5_000
        self.connector.begin_epoch(lsn, read=len(self.server.wal), exact_from=0)

    def attempt(self, step: Step) -> None:
        """Carry out a step, unless the server or the connector refuses it."""
        with suppress(RefusedError):
            step.run(self)

    def moved(self) -> set[int]:
        """Return the tables of which an unread change may have moved a key alone, under REPLICA IDENTITY USING INDEX.

        Where no DDL is logged, that shows only in the row that is missing before it: not where a snapshot has that row.
        """
        if self.server.logs_ddl:
            return set()
        unread = (change for one in self.server.wal[self.connector.read :] for change in one.changes)
        return {change.structure.oid for change in unread if change.op == "u" and change.structure.identity == "i"}

    def read_twice(self) -> None:
        """Note that two snapshots of one place may have read a row with other values: its key seems to be two rows'."""
        unread = {change.structure.oid for one in self.server.wal[self.connector.read :] for change in one.changes}
        for name, table in self.server.tables.items():
            if table.structure.oid in unread and not self.server.logs_ddl:
                self.server.endanger(name, "apply.key_unproven")

    def overlap(self, unread: Sequence[Transaction] | None = None) -> None:
        """Note that a snapshot may have what changes behind it do, as far as records show: no key decides it.

        :param unread: those changes; None for whatever comes next.
        """
        changed = None if unread is None else {change.structure.oid for one in unread for change in one.changes}
        for name, table in self.server.tables.items():
            if not table.structure.key and (changed is None or table.structure.oid in changed):
                self.server.endanger(name, "no key decides it", "apply.row_not_found")
        if unread:
            unread[-1].picture = self.server.picture()

    def settle(self) -> None:
        """Note that a full snapshot says all of the tables that have rows, where only rows show what changed."""
        for table in self.server.tables.values():
            if table.rows and self.server.logs_ddl:
                self.server.hazards.get(table.structure.oid, set()).discard(READ_AHEAD)
            elif table.rows:
                lasting = LASTING if table.structure.key else LASTING | {BY_RULE}
                self.server.hazards.get(table.structure.oid, set()).intersection_update(lasting)
        altered = {oid for one in self.server.wal[self.connector.read :] for oid in one.described}
        for name, table in self.server.tables.items():
            if self.server.logs_ddl and table.structure.oid in altered:
                self.server.endanger(name, READ_AHEAD)


class Step(ABC):
    """One step."""

    @abstractmethod
    def run(self, world: World) -> None:
        """Carry it out; refuses what cannot be."""

    @abstractmethod
    def sql(self) -> str:
        """Return it for people."""


@dataclass(frozen=True)
class Commit(Step):
    """A transaction.

    :param reads: whether the connector reads all that was committed.
    """

    statements: tuple[Statement, ...]
    reads: bool = True

    def run(self, world: World) -> None:
        """Commit it."""
        world.server.run(self.statements)
        if self.reads and world.streams:
            world.connector.stream()

    def sql(self) -> str:
        """Return the statements."""
        text = "; ".join(statement.sql() for statement in self.statements)
        return text if len(self.statements) == 1 else f"BEGIN; {text}; COMMIT" + ("" if self.reads else " (unread)")


@dataclass(frozen=True)
class Several(Step):
    """Transactions that stay together: a change of a table, and a row that shows it."""

    steps: tuple[Step, ...]

    def run(self, world: World) -> None:
        """Carry them out."""
        for step in self.steps:
            step.run(world)

    def sql(self) -> str:
        """Return them."""
        return " | ".join(step.sql() for step in self.steps)


@dataclass(frozen=True)
class Open(Step):
    """A statement of a transaction that stays open."""

    statement: Statement

    def run(self, world: World) -> None:
        """Begin it."""
        if len(world.server.open) < 2:
            world.server.begin(self.statement)

    def sql(self) -> str:
        """Return the statement."""
        return f"BEGIN (stays open); {self.statement.sql()}"


@dataclass(frozen=True)
class Close(Step):
    """The end of the oldest transaction that is open."""

    def run(self, world: World) -> None:
        """Commit it."""
        world.server.end()

    def sql(self) -> str:
        """Return the statement."""
        return "COMMIT of what is open"


@dataclass(frozen=True)
class ForgetDdl(Step):
    """The old rows of the log of DDL are deleted."""

    def run(self, world: World) -> None:
        """Delete them, once the connector has them."""
        if not world.streams or not world.server.logs_ddl:
            raise RefusedError("there is no log that was read")
        world.connector.stream()
        world.server.run([_Forget()])

    def sql(self) -> str:
        """Return the statement."""
        return "DELETE FROM ctl.ddl_log"


class _Forget(Statement):
    """DELETE of the rows of the log of DDL."""

    def apply(self, server: Server, transaction: Transaction) -> None:
        """Delete them."""
        forget(server, transaction)

    def sql(self) -> str:
        """Return the statement."""
        return "DELETE FROM ctl.ddl_log"


class _OfConnector(Step):
    """A step of the connector; none before it starts."""

    def run(self, world: World) -> None:
        """Carry it out, once there is a connector."""
        if not world.streams:
            raise RefusedError("there is no connector yet")
        self.act(world)

    @abstractmethod
    def act(self, world: World) -> None:
        """Carry it out."""


@dataclass(frozen=True)
class Restart(_OfConnector):
    """The connector dies, and sends some transactions again."""

    back: int

    def act(self, world: World) -> None:
        """Start again."""
        world.connector.restart(self.back)
        world.connector.stream()

    def sql(self) -> str:
        """Return it for people."""
        return f"-- the connector starts again {self.back} transactions before"


@dataclass(frozen=True)
class Incremental(_OfConnector):
    """An incremental snapshot of a table, with transactions before its rows are read and after.

    :param until: transactions that are committed between the begin of the window and the reading of the rows; ``after``
        those between that and its end.
    """

    name: Name
    until: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()

    def act(self, world: World) -> None:
        """Send the rows that did not change while the window was open."""
        server, connector = world.server, world.connector
        table = server.table(self.name)
        structure = table.structure
        if not structure.key:
            raise RefusedError("nothing comes of a table without key")
        server.run([])  # the signal that opens the window
        low = len(server.wal)
        for step in self.until:
            world.attempt(step)
        rows = [dict(row) for row in table.rows.values()]
        for step in self.after:
            world.attempt(step)
        server.run([])
        connector.stream()
        changed = {
            tuple(image[attnum] for attnum in structure.key)
            for transaction in server.wal[low:]
            for change in transaction.changes
            if change.structure.oid == structure.oid
            for image in (change.before, change.after)
            if image is not None
        }
        emptied = any(
            change.op == "t" and change.structure.oid == structure.oid
            for transaction in server.wal[low:]
            for change in transaction.changes
        )
        if table.structure is structure and not emptied:
            connector.read_again([row for row in rows if table.key_of(row) not in changed], structure)

    def sql(self) -> str:
        """Return it for people."""
        texts = [" | ".join(step.sql() for step in steps) for steps in (self.until, self.after)]
        return f"-- an incremental snapshot of {'.'.join(self.name)}: [{texts[0]}] read [{texts[1]}]"


@dataclass(frozen=True)
class Blocking(_OfConnector):
    """A blocking snapshot of some tables, with transactions that are committed before its rows are read.

    :param until: those: they are streamed behind the snapshot, which has what they did.
    :param moved: whether it also reads tables in which they moved a key alone under REPLICA IDENTITY USING INDEX: that
        shows only in the batch that reads the snapshot.
    """

    names: tuple[Name, ...]
    until: tuple[Step, ...] = ()
    moved: bool = False

    def act(self, world: World) -> None:
        """Send the rows; those without key are not applied."""
        server, connector = world.server, world.connector
        server.run([])  # the signal
        connector.stream()
        for step in self.until:
            world.attempt(step)
        moved = set() if self.moved else world.moved()
        names = [n for n in self.names if n in server.tables and server.tables[n].structure.oid not in moved]
        lsn = connector.committed or server.lsn
        server.millis += 1_000
        connector.snapshot(names, (lsn, lsn), server.chance.randint(700, 999))
        connector.exact_from = max(connector.exact_from, len(server.wal))
        connector.show()

    def sql(self) -> str:
        """Return it for people."""
        return f"-- a blocking snapshot of {self.names}: [{' | '.join(step.sql() for step in self.until)}] read"


@dataclass(frozen=True)
class Snapshot(_OfConnector):
    """A full snapshot.

    :param kind: ``always`` (on the slot that is there: what was not read comes after it), ``lost`` (the slot was lost:
        what was not read never comes), or ``restored`` (a new cluster from a dump: also at lower places).
    :param slow: whether its rows are still written while the next changes are committed.
    :param across: whether transactions that are open stay so: their changes have places below that of the snapshot.
    """

    kind: str
    slow: bool = False
    across: bool = False

    def act(self, world: World) -> None:
        """Begin an epoch."""
        server, connector = world.server, world.connector
        if self.kind == "always" and (server.open or self._is_older(world)):
            raise RefusedError("changes of the transaction would have places below that of the snapshot")
        if self.kind == "always" and world.moved():
            raise RefusedError("a key that moved alone would leave its row under the old one")
        while server.open and not self.across:
            server.end()
        for change in (change for one in server.open for change in one.changes):
            server.endanger(change.structure.name, "apply.order_unknown")
        world.new_logs += bool(server.open)
        server.millis += 1_000
        if self.kind == "always":
            lsn = connector.reached
            if lsn == connector.lsn:
                world.read_twice()
            unread = len(server.wal)
            world.settle()
            world.overlap(server.wal[connector.read :])
            connector.begin_epoch(lsn, read=connector.read, exact_from=unread)
            return
        if any(not table.rows for table in server.tables.values()):
            raise RefusedError("of an empty table the snapshot says nothing")
        if self.kind == "restored":
            server.restore()
            install(server)
            world.new_logs += 1
        world.settle()
        if self.slow:
            world.overlap()
        connector.begin_epoch(server.step(), read=len(server.wal), exact_from=0, slow=self.slow)

    @staticmethod
    def _is_older(world: World) -> bool:
        """Return whether a change that is streamed behind the snapshot has a place below that of the snapshot."""
        unread = world.server.wal[world.connector.read :]
        return any(change.lsn < world.connector.reached for one in unread for change in one.changes)

    def sql(self) -> str:
        """Return it for people."""
        return f"-- a full snapshot ({self.kind})"
