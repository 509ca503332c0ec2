# SPDX-License-Identifier: Apache-2.0
"""Read from a ledger what was seen of a pipeline's lag: the newest figure, and the course over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import func, select

from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.ledger.records import time_text
from airflow_provider_cdc.observability.freshness import NEWEST, is_present, usual_distance

Document = dict[str, Any]

# Samples of lag come each minute or less often: the shown intervals are the longer, the longer the time.
_HOUR = len("2026-01-01T00")
_INTERVALS = ((timedelta(hours=12), len("2026-01-01T00:00")), (timedelta(days=7), len("2026-01-01T00:0")))

_pipelines, _progress = schema.pipelines.c, schema.progress.c


def newest_figures(connection: Connection, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the newest figures of each pipeline's lag, oldest first; a pipeline without any is left out."""
    other = schema.progress.alias()
    seen = select(other.c.seen_at).where(other.c.pipeline == _pipelines.name).order_by(other.c.seen_at.desc())
    first = seen.offset(NEWEST - 1).limit(1).correlate(schema.pipelines).scalar_subquery()
    of_pipeline = (_progress.pipeline == _pipelines.name) & (_progress.seen_at >= func.coalesce(first, ""))
    query = select(*schema.progress.columns).select_from(schema.pipelines.join(schema.progress, of_pipeline))
    figures: dict[str, list[Any]] = {}
    for row in connection.execute(
        query.where(_pipelines.name.in_(names)).order_by(_progress.pipeline, _progress.seen_at)
    ):
        figures.setdefault(row.pipeline, []).append(row)
    return figures


def newest_figure(figures: Sequence[Any], now: datetime) -> Document | None:
    """Return what was seen last of a pipeline's lag, and whether that is the lag of now.

    :param figures: its newest ones, oldest first.
    """
    if not figures:
        return None
    row, times = figures[-1], [datetime.fromisoformat(figure.seen_at) for figure in figures]
    usual = usual_distance(times)
    return {
        "present": is_present(times, now),
        "usual_seconds": None if usual is None else usual.total_seconds(),
        "seen_at": row.seen_at,
        "received": row.received,
        "applied": row.applied,
        "seconds": _finite(row.lag_seconds),
        "records": row.lag_records,
    }


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def sparklines(connection: Connection, names: Sequence[str], now: datetime) -> dict[str, list[float | None]]:
    """Return the highest lag in seconds of each of the last 24 full hours, and of the hour of now, oldest first.

    An hour in which nobody knew it has None. A pipeline without any is left out.
    """
    hours = [(now - timedelta(hours=ago)).strftime("%Y-%m-%dT%H") for ago in range(24, -1, -1)]
    hour = func.substr(_progress.seen_at, 1, _HOUR)
    query = select(_progress.pipeline, hour.label("hour"), func.max(_progress.lag_seconds).label("seconds"))
    query = query.where(_progress.pipeline.in_(names), _progress.seen_at >= hours[0])
    seen: dict[str, dict[str, float | None]] = {}
    for row in connection.execute(query.group_by(_progress.pipeline, hour)):
        seen.setdefault(row.pipeline, {})[row.hour] = _finite(row.seconds)
    return {name: [values.get(hour) for hour in hours] for name, values in seen.items()}


def lag(connection: Connection, pipeline: str, since: datetime, until: datetime) -> Document:
    """Return the highest lag of each interval between two times; their length follows from the distance.

    An interval without a known lag has None: nobody knows whether it was high.
    """
    length = next((digits for longest, digits in _INTERVALS if until - since <= longest), _HOUR)
    interval = func.substr(_progress.seen_at, 1, length)
    query = (
        select(
            interval.label("begin"), func.max(_progress.lag_seconds).label("seconds"),
            func.max(_progress.lag_records).label("records"), func.max(_progress.applied).label("applied"),
            func.max(_progress.seen_at).label("seen_at"),
        )
        .where(_progress.pipeline == pipeline, _progress.seen_at >= time_text(since))
        .where(_progress.seen_at <= time_text(until))
        .group_by(interval)
        .order_by(interval)
    )  # fmt: skip
    points = [
        {"seen_at": r.seen_at, "seconds": _finite(r.seconds), "records": r.records, "applied": r.applied}
        for r in connection.execute(query)
    ]
    return {"since": time_text(since), "until": time_text(until), "points": points}
