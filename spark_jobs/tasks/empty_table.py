# SPDX-License-Identifier: Apache-2.0
"""Vacate: a location whose table was renamed away and whose name nobody took holds no rows any more."""

from __future__ import annotations

from airflow_provider_cdc.core.documents import JobDocument, TableState
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.table import Commit, DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter


def vacate(job: JobDocument, left: TableState, options: dict[str, str]) -> None:
    """Empty the location; its older versions stay readable. Doing it again changes nothing."""
    place = DeltaLocation(left.location, options)
    app = f"cdc/{job.pipeline}/{left.table_id}/vacated"
    if place.exists and (place.applied(app) or -1) < job.seq and not place.is_empty():
        commit = Commit(app, job.seq, {"app": app, "seq": job.seq, "vacated": True})
        TaskWriter().commit(place, Action("overwrite", commit, place.rows().slice(0, 0)))
