# SPDX-License-Identifier: Apache-2.0
"""Say where the rows of a table begin that the batch rebuilds."""

from __future__ import annotations

from typing import Any

from airflow_provider_cdc.core.documents import Rebuild, RebuildSource, TableState
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.driver.ad_hoc_snapshots import demand_ad_hoc_snapshots, first_row
from spark_jobs.driver.base_states import snapshot_of
from spark_jobs.driver.planning import Planning
from spark_jobs.driver.provided_files import ProvidedFiles


class Rebuilds:
    """The tables that an operator wants to be rebuilt."""

    def __init__(self, planning: Planning) -> None:
        self._p, order = planning, planning.job.order
        self._rebuild = order if isinstance(order, Rebuild) else None

    def concern(self, timeline: TableTimeline) -> bool:
        """Return whether the batch resolves a table from the change log alone."""
        asked = self._rebuild
        return asked is not None and timeline.dropped_at is None and str(timeline.last_name) in asked.tables

    def concern_files(self, timeline: TableTimeline) -> bool:
        """Return whether a table is rebuilt from files that an operator provides."""
        asked = self._rebuild
        return asked is not None and asked.source == RebuildSource.FILES and self.concern(timeline)

    def begin_with(
        self, timeline: TableTimeline, state: TableState | None
    ) -> tuple[tuple[str, int] | None, dict[str, Any] | None]:
        """Return a rebuilt table's beginning: its snapshot, and the state (document) of an operator's files.

        Both are None of a table that is not rebuilt.

        :raises DataError: there is nothing to rebuild it from.
        """
        asked = self._rebuild
        if asked is None or not self.concern(timeline):
            return None, None
        if asked.source == RebuildSource.SNAPSHOT:
            demand_ad_hoc_snapshots(self._p.job)
            return (first_row(timeline, state, self._p.groups, self._p.history, asked.since), 0), None
        if asked.source == RebuildSource.FILES:
            assert asked.since is not None, "files come with their time"
            files = ProvidedFiles(self._p.job, self._p.storage, timeline, asked.path, asked.since)
            provided = files.taken_over(self._p.groups, self._p.history, state)
            provided.made_with = self._p.layouts.of(timeline)
            return snapshot_of(provided), provided.document()
        return snapshot_of(state), None if state is None else state.provided
