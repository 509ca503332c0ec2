# SPDX-License-Identifier: Apache-2.0
"""Let operators rebuild tables between the batches of a history."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable

from airflow_provider_cdc.core.documents import JobDocument, Rebuild, TableState
from airflow_provider_cdc.core.model.offsets import OffsetRange
from tests.histories.log import Crash, CrashError
from tests.histories.run import Replay
from tests.histories.source import Picture
from tests.histories.tools import UNREAD
from tests.locations import table_location


class WithRebuilds(Replay):
    """Damages and rebuilds tables after each batch: the batch numbers in between are the rebuilds'.

    A table that cannot be rebuilt stays as it is and is rebuilt after the next batch.

    :ivar rebuilt: tables that were rebuilt.
    :ivar damaged: by table id why a damaged table is not rebuilt yet.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rebuilt = 0
        self.damaged: dict[str, str] = {}

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        problems = super()._batch(3 * number, chunks, None)
        if problems or not self._seqs:
            return problems
        self._damage_and_rebuild(random.Random(f"{self.case.seed} {number} rebuild"), 3 * number + 1)
        return self._verdict(picture)

    def _damage_and_rebuild(self, operator: random.Random, seq: int, *, damages: bool = True) -> None:
        """Damage some tables, and rebuild them and others, in one batch or two.

        :param damages: whether tables are damaged first.
        """
        alive = sorted(table_id for table_id, state in self.states.items() if self._is_alive(state))
        picked = operator.sample(alive, operator.randint(0, len(alive)))
        for table_id in picked if damages else ():
            self._damage(operator, self.states[table_id])
        self.damaged = {table_id: reason for table_id, reason in self.damaged.items() if table_id in alive}
        # a damaged location may be that of another table by now, or of one that a late statement showed to be another
        missing = [table_id for table_id in alive if self.states[table_id].code.startswith("sink.")]
        tables = sorted({*picked, *self.damaged, *missing})
        if tables:
            self._rebuild(operator, seq, tables)

    def _verdict(self, picture: Picture | None) -> list[str]:
        """Return what differs, without the tables that are damaged still, in the end for a stated reason."""
        if self._done != {where: len(orders) for where, orders in self._orders.items()}:
            return [] if picture is None or self.damaged else self._differences(picture)
        named = {table_id: self.states[table_id].table for table_id in self.damaged}
        # before the end a table may wait for a decision
        reasons = (*self._tool.parks, *UNREAD, *(["apply.approval_required"] if picture is None else []))
        unnamed = [i for i, reason in self.damaged.items() if not any(code in reason for code in reasons)]
        problems = [f"{named[table_id]} is not rebuilt: {self.damaged[table_id]}" for table_id in unnamed]
        differences = [] if picture is None else self._differences(picture)
        return problems + [item for item in differences if not any(name in item for name in named.values())]

    @staticmethod
    def _is_alive(state: TableState) -> bool:
        return state.state != "dropped" and bool(state.location)

    def _damage(self, operator: random.Random, state: TableState) -> None:
        location = Path(table_location(str(self.root), state.database, state.table))
        what = operator.choice(("untouched", "deleted", "changed"))
        if what == "untouched" or not (location / "_delta_log").is_dir():
            return
        self.story.append(f"    {state.database}.{state.table} is {what}")
        self.damaged[state.table_id] = "not tried"
        if what == "deleted":
            shutil.rmtree(location)
        else:
            DeltaTable(str(location)).delete()

    def _rebuild(self, operator: random.Random, seq: int, tables: list[str]) -> None:
        if operator.random() < 0.4 and self._dies(operator, seq, tables) and operator.random() < 0.5:
            self._finish(seq, ())  # another request finishes the batch, and knows nothing of the rebuild
            seq += 1
        self._finish(seq, tables)

    def _dies(self, operator: random.Random, seq: int, tables: list[str]) -> bool:
        """Let a rebuild die; return whether it did."""
        crash = Crash(operator.choice(("manifest", "commit", "result")), 1, operator.random() < 0.5)
        self.log.arm(crash)
        try:
            self._sync(self._rebuild_job(seq, tables))
        except CrashError:
            self.story.append(f"    the rebuild of {tables} died: {crash}")
            return True
        return False

    def _finish(self, seq: int, tables: Sequence[str]) -> None:
        names = {f"{self.states[i].database}.{self.states[i].table}": i for i in tables}
        self.story.append(f"    batch {seq} rebuilds {list(names)}")
        self.log.arm(None)
        result = self._sync(self._rebuild_job(seq, tables))
        self._take_over(seq, result.document())
        self._backups.append((self._seqs, self._schema, self.states))
        lines = {f"{line.database}.{line.table}": line for line in result.tables}
        for name, table_id in names.items():
            if name in lines and lines[name].status in ("committed", "repeated"):
                self.damaged.pop(table_id, None)
                self.rebuilt += 1
            else:
                reason = lines[name].reason if name in lines else self.states[table_id].reason
                self.story.append(f"    {name} is not rebuilt: {reason}")
                if table_id in self.damaged:
                    self.damaged[table_id] = reason

    def _rebuild_job(self, seq: int, tables: Sequence[str]) -> JobDocument:
        names = [f"{self.states[i].database}.{self.states[i].table}" for i in tables]
        job = replace(self._job(seq, []), order=Rebuild(names) if tables else None)
        return JobDocument.from_document(job.document())
