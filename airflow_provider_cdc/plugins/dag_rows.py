# SPDX-License-Identifier: Apache-2.0
"""Read from Airflow's own database when the DAGs of pipelines run next. Only the api-server has it."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sqlalchemy.sql import select

from airflow_provider_cdc.ledger.records import time_text

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def dags(session: Session, dag_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return by DAG whether it is paused, its schedule, and the ISO time of its next run, None without one.

    :param dag_ids: DAGs that the user may read; those that Airflow does not know are left out.
    """
    if not dag_ids:
        return {}
    from airflow.models.dag import DagModel

    columns = (
        DagModel.dag_id,
        DagModel.is_paused,
        DagModel.is_stale,
        DagModel.timetable_summary,
        DagModel.next_dagrun_create_after,
    )
    return {
        row.dag_id: {
            "paused": bool(row.is_paused),
            "gone": bool(row.is_stale),
            "schedule": row.timetable_summary,
            "next_run": time_text(row.next_dagrun_create_after),
        }
        for row in session.execute(select(*columns).where(DagModel.dag_id.in_(dag_ids)))
    }
