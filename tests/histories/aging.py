# SPDX-License-Identifier: Apache-2.0
"""Let maintenance remove flagged rows that are old, between the batches of a history."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_cdc.core.documents import Maintenance
from spark_jobs.driver.maintenance import maintain
from tests.histories.neutral import START
from tests.histories.run import Replay, inline


class WithAging(Replay):
    """Maintains tables days after a row was flagged: others are older, or not old.

    :ivar aged: whether rows went, which the source did not change.
    """

    aged = False

    @abstractmethod
    def _days_of(self, name: str) -> int | None:
        """Return ``soft_delete_days`` of a table."""

    def _age(self, rnd: random.Random) -> list[str]:
        """Maintain all tables; return what is left that should have gone, and what went that should not."""
        tables = [state for state in self.states.values() if state.version is not None and state.state != "dropped"]
        alone = Counter(state.location for state in tables)
        paths = {f"{one.database}.{one.table}": one for one in tables if alone[one.location] == 1}
        before = {name: self._rows_at(state.location) for name, state in paths.items()}
        flagged = {row.get("_cdc_deleted_at") for name in before for row in before[name]} - {None}
        moment = rnd.choice([datetime.fromtimestamp(START, UTC), *sorted(flagged)])
        at = moment + timedelta(days=rnd.choice((1, 2)), seconds=rnd.choice((0, 1, 1000)))
        order = Maintenance(1 << 20, rnd.choice((0, 24)), at=at.isoformat())
        self.log.arm(None)
        reports = maintain(self._job(max(self._seqs) + 1, []), order, self._secrets, inline).maintained
        wrong = [f"{report.table} cannot be maintained: {report.error}" for report in reports if report.error]
        for name, state in paths.items():
            days = self._days_of(name)
            until = None if days is None else at - timedelta(days=days)
            left = [row for row in before[name] if until is None or not _is_old(row, until)]
            # of a table that waits its rules may not be carried out yet
            allowed = [left] if state.state == "ok" else [left, before[name]]
            after = Counter(map(repr, self._rows_at(state.location)))
            self.aged |= after.total() < len(before[name])
            if after not in [Counter(map(repr, rows)) for rows in allowed]:
                wrong.append(f"{name} does not have the {len(left)} of {len(before[name])} rows that are not old")
        self.story.append(f"    maintained at {at}, rows went: {self.aged}")
        return wrong

    def _rows_at(self, location: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._sink.open(f"{self.root}/{location}").rows().to_pylist()
        return rows


def _is_old(row: dict[str, Any], until: datetime) -> bool:
    return bool(row.get("_cdc_deleted")) and row["_cdc_deleted_at"] is not None and row["_cdc_deleted_at"] < until
