# SPDX-License-Identifier: Apache-2.0
"""Condition: the tables hold everything that the source committed before a time; asks only the ledger."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.result import newest_by_name, table_states
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.config.checks import Checks
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.watch.condition import Answer, Condition, name_some

if TYPE_CHECKING:
    from airflow_provider_cdc.ledger import Batch, Ledger

_SHOWN_VERSIONS = 50


@dataclass(frozen=True)
class AppliedState:
    """State of batches and tables in the ledger.

    :param covering: the first committed batch whose request reached the time, without a time the newest one; None
        while there is none.
    :param applied: latest time that a committed request reached.
    :param tables: state of each table by ``database.table``.
    """

    covering: Batch | None
    applied: datetime | None
    tables: dict[str, TableState]


class AppliedCondition(Condition[AppliedState, None]):
    """The tables hold everything that the source committed before a time.

    :param until: the time, ISO text with a zone; None for what the newest batch holds.
    :param tables: names ``database.table`` that count; None for all.
    :param max_parked: number of tables that may be parked or wait, where no tables are named.
    """

    reads_ledger = True

    def __init__(
        self, pipeline: CdcPipeline, until: str | None, tables: Sequence[str] | None = None, max_parked: int = 0
    ) -> None:
        super().__init__(pipeline)
        checks = Checks()
        if tables is not None:
            checks.texts("tables", tables, least=1)
        checks.integer("max_parked", max_parked)
        checks.raise_any()
        self.until = None if until is None else datetime.fromisoformat(until).astimezone(UTC)
        self.tables = None if tables is None else list(tables)
        self.max_parked = max_parked

    @property
    def _until_text(self) -> str | None:
        return None if self.until is None else self.until.isoformat()

    def ledger_key(self) -> Hashable:
        """Return what decides the result of :meth:`stored`."""
        return "applied", self.pipeline.name, self.until

    def stored(self, ledger: Ledger) -> AppliedState:
        """Read batches and tables."""
        # The batch first: states that are read after it are of it or of a later one.
        name = self.pipeline.name
        covering = ledger.last_committed(name) if self.until is None else ledger.covering(name, self.until)
        reached = ledger.reached(self.pipeline.name)
        return AppliedState(covering, reached, newest_by_name(table_states(ledger, self.pipeline.name).values()))

    def judge(self, stored: AppliedState | None, seen: None) -> Answer:
        """Return whether a batch covers the time and the tables are settled."""
        assert stored is not None
        text = self._until_text
        what = "what was read" if text is None else f"everything before {text}"
        applied = None if stored.applied is None else stored.applied.isoformat()
        document: dict[str, Any] = {"until": text, "applied": applied, "seq": None, "versions": {}, "holds": []}
        if stored.covering is None:
            reached = "nothing yet" if applied is None else f"up to {applied}"
            message = f"not {what} is applied; applied: {reached}" if text else "no batch is applied yet"
            return Answer(False, message, document, ("batch",))
        document["seq"] = stored.covering.seq
        names = sorted(stored.tables) if self.tables is None else self.tables
        holds = {name: reason for name in names if (reason := _unsettled(stored.tables.get(name)))}
        document["holds"] = list(holds)[:_SHOWN_VERSIONS]
        if len(holds) > (self.max_parked if self.tables is None else 0):
            listed = name_some([f"{name} ({reason})" for name, reason in holds.items()])
            message = f"{what} is applied by batch {stored.covering.seq}, but not to {listed}"
            return Answer(False, message, document, tuple(holds))
        settled = [name for name in names if name not in holds]
        document["versions"] = {name: stored.tables[name].version for name in settled[:_SHOWN_VERSIONS]}
        which = f"{len(settled)} tables" if self.tables is None else name_some(settled)
        return Answer(True, f"{what} is applied to {which} by batch {stored.covering.seq}", document)


def _unsettled(state: TableState | None) -> str:
    """Return why a table does not count as applied; empty if it does."""
    if state is None:
        return "the pipeline has no such table yet"
    if state.state in (TableStatus.OK, TableStatus.DROPPED):
        return ""
    return f"{state.state}: {state.reason}" if state.reason else str(state.state)
