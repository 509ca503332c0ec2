# SPDX-License-Identifier: Apache-2.0
"""Condition: a pipeline has no more parked tables, waiting tables and quarantined records than allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_cdc.batch.result import newest_by_name, table_states
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.config.checks import Checks
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.watch.condition import Answer, Condition, name_some

if TYPE_CHECKING:
    from airflow_provider_cdc.ledger import Ledger

_SHOWN = 50


@dataclass(frozen=True)
class Health:
    """State of a pipeline's tables.

    :param tables: state of each table by ``database.table``.
    :param seq: number of the last committed batch, None before the first.
    :param quarantined: records and rows that it could not carry.
    """

    tables: dict[str, TableState]
    seq: int | None
    quarantined: int


class HealthCondition(Condition[Health, None]):
    """A pipeline has no more parked tables, waiting tables and quarantined records than allowed.

    :param parked: number of tables that may be parked.
    :param waiting: number of tables that may wait for a schema change; None for any.
    :param quarantined: number of records that the last batch may have put into quarantine; None for any.
    """

    reads_ledger = True

    def __init__(
        self, pipeline: CdcPipeline, parked: int = 0, waiting: int | None = None, quarantined: int | None = 0
    ) -> None:
        super().__init__(pipeline)
        checks = Checks()
        checks.integer("parked", parked)
        checks.integer("waiting", waiting, optional=True)
        checks.integer("quarantined", quarantined, optional=True)
        checks.raise_any()
        self.parked = parked
        self.waiting = waiting
        self.quarantined = quarantined

    def stored(self, ledger: Ledger) -> Health:
        """Read tables and the last batch."""
        return health_of(ledger, self.pipeline.name)

    def judge(self, stored: Health | None, seen: None) -> Answer:
        """Return whether the pipeline is healthy."""
        assert stored is not None
        parked, waiting = unsettled(stored, TableStatus.PARKED), unsettled(stored, TableStatus.WAITING)
        document = {
            "seq": stored.seq,
            "parked": [{"table": name, "reason": reason} for name, reason in list(parked.items())[:_SHOWN]],
            "waiting": [{"table": name, "reason": reason} for name, reason in list(waiting.items())[:_SHOWN]],
            "counts": {"parked": len(parked), "waiting": len(waiting), "quarantined": stored.quarantined},
        }
        problems, holds = [], []
        if len(parked) > self.parked:
            problems.append(f"{len(parked)} tables are parked: {_listed(parked)}")
            holds += list(parked)
        if self.waiting is not None and len(waiting) > self.waiting:
            problems.append(f"{len(waiting)} tables wait: {_listed(waiting)}")
            holds += list(waiting)
        if self.quarantined is not None and stored.quarantined > self.quarantined:
            problems.append(f"batch {stored.seq} put {stored.quarantined} records into quarantine")
            holds.append("quarantine")
        if problems:
            return Answer(False, f"pipeline {self.pipeline.name}: {'; '.join(problems)}", document, tuple(holds))
        return Answer(True, f"pipeline {self.pipeline.name} is healthy: {len(stored.tables)} tables", document)


def health_of(ledger: Ledger, pipeline: str) -> Health:
    """Return the health of a pipeline."""
    tables = newest_by_name(table_states(ledger, pipeline).values())
    batch = ledger.last_committed(pipeline)
    if batch is None:
        return Health(tables, None, 0)
    return Health(tables, batch.seq, int((batch.result or {}).get("quarantined") or 0))


def unsettled(health: Health, status: TableStatus) -> dict[str, str]:
    """Return the tables of a status with their reasons, by name."""
    return {name: state.reason for name, state in sorted(health.tables.items()) if state.state == status}


def _listed(tables: dict[str, str]) -> str:
    return name_some([f"{name} ({reason})" for name, reason in tables.items()])
