# SPDX-License-Identifier: Apache-2.0
"""Let a batch take rows of earlier batches again: each keeps its position, so newer changes of the same key win."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from airflow_provider_cdc.core.documents import Replay
from spark_jobs.driver.batch_history import History
from spark_jobs.lake.manifest import Manifest, RowGroup

REPLAYED = "row.replayed"
"""Name under which a manifest counts rows that were taken again."""


def with_replay(asked: Replay, landed: Manifest, history: History, is_expired: Callable[[int], bool]) -> Manifest:
    """Return what a batch landed, together with row groups of earlier batches, which stay in their files.

    Row groups are taken whole, so rows around the times that were asked for may come too. Batches whose rows were
    removed are passed over.

    :param is_expired: says whether the rows of a batch were removed.
    :param landed: what the batch read itself; what an earlier attempt took again is in it already.
    """
    known = {group.origin for group in landed.groups}
    groups: list[RowGroup] = []
    for seq in history.earlier if asked.since is None else history.since_source_time(asked.since):
        if is_expired(seq):
            continue
        for group in history.manifest(seq).groups:
            if not group.database or group.origin in known:
                continue
            if asked.selects(group.database, group.table, group.min_source_time, group.max_source_time):
                known.add(group.origin)
                groups.append(group)
    rows = sum(group.rows for group in groups)
    changes = {**landed.changes, REPLAYED: landed.changes.get(REPLAYED, 0) + rows}
    return replace(landed, groups=[*landed.groups, *groups], changes=changes, records=landed.records + rows)
