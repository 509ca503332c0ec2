# SPDX-License-Identifier: Apache-2.0
"""Let a connector do what it does: restart, take snapshots, lose its slot."""

from __future__ import annotations

from tests.histories.source import RefusedError
from tests.postgres_histories import row_statements as rows
from tests.postgres_histories import steps
from tests.postgres_histories.random_rows import RowMaker


class ConnectorMaker(RowMaker):
    """Adds what happens to the connector."""

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
