# SPDX-License-Identifier: Apache-2.0
"""Empty a location whose table was renamed away and whose name no other table took."""

from __future__ import annotations

from collections.abc import Collection

from airflow_provider_cdc.core.documents import JobDocument, TableState
from spark_jobs.sinks.commits import Commit, Owner
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.ownership import owns
from spark_jobs.sinks.registry import open_sink


def empty_location(
    job: JobDocument, left: TableState, secrets: dict[str, dict[str, str]], table_ids: Collection[str] = ()
) -> None:
    """Empty the location; its older versions stay readable. Doing it again changes nothing.

    What somebody else wrote there, or a table that is not of these, stays.

    :param table_ids: further tables whose rows may lie there because they moved away.
    """
    sink = open_sink(job, secrets)
    target = sink.open(job.at(left.location))
    app = f"cdc/{job.pipeline}/{left.table_id}/vacated"
    if target.exists and (target.applied(app) or -1) < job.seq and not target.is_empty():
        if not owns(Owner(Owner.of(app).prefix, {left.table_id, *table_ids}), target):
            return
        commit = Commit(app, job.seq, {"app": app, "seq": job.seq, "vacated": True})
        sink.task_writer().commit(target, Action("overwrite", commit, target.rows().slice(0, 0)))
