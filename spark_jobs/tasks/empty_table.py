# SPDX-License-Identifier: Apache-2.0
"""Empty a location whose table was renamed away and whose name no other table took."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from airflow_provider_cdc.core.documents import JobDocument, TableState
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.ownership import Owner
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter


def empty_location(
    job: JobDocument, left: TableState, options: dict[str, str], table_ids: Collection[str] = ()
) -> None:
    """Empty the location; its older versions stay readable. Doing it again changes nothing.

    What somebody else wrote there, or a table that is not of these, stays.

    :param table_ids: further tables whose rows may lie there because they moved away.
    """
    target = DeltaLocation(job.at(left.location), options)
    app = f"cdc/{job.pipeline}/{left.table_id}/vacated"
    if target.exists and (target.applied(app) or -1) < job.seq and not target.is_empty():
        if not replace(Owner.of(app), table_ids={left.table_id, *table_ids}).owns(target):
            return
        commit = Commit(app, job.seq, {"app": app, "seq": job.seq, "vacated": True})
        TaskWriter().commit(target, Action("overwrite", commit, target.rows().slice(0, 0)))
