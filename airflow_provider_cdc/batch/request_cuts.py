# SPDX-License-Identifier: Apache-2.0
"""Cut a large request into a sequence of batches, each at one time of the log in all partitions.

A batch that ends at a time of the log reads what one without ``until`` would have read at that time. So a cut is as
consistent as any batch, and what came later is late for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from airflow_provider_cdc.batch.source_log import SourceLog
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.model.offsets import Offsets
from airflow_provider_cdc.core.plan.ranges import Range

_BY_KEY = 12_000_000  # of one table that is split by key: the largest process needs about 1 GB (design/performance)
_IN_ONE_TASK = 4_000_000  # of formats ordered by clock: a table whose columns change in the batch is not split, 1.2 GB


def most_records(pipeline: CdcPipeline, records: int) -> int | None:
    """Return how many records of rows a batch should have at most, None for any number.

    A cluster has more memory than one machine. Each further batch costs more: it merges into what the others wrote.

    :param records: of the request; the format is opened only where it matters.
    """
    from airflow_provider_cdc.core.formats.registry import open_format

    if pipeline.policy.batch_records is not None:
        return pipeline.policy.batch_records
    on_cluster = pipeline.spark.connection is not None or pipeline.spark.elsewhere
    if pipeline.policy.engine != "inline" and on_cluster:
        return None
    if records <= _IN_ONE_TASK:
        return _IN_ONE_TASK
    by_clock = open_format(pipeline.source.format, pipeline.source.options).order == "clock"
    return _IN_ONE_TASK if by_clock else _BY_KEY


def first_part(
    planned: Range,
    log: SourceLog,
    most: int,
    *,
    counted: Sequence[str],
    schema_topic: str | None,
    settle: Callable[[Range], Range],
) -> Range:
    """Return the first part of a range, or the range itself where it is small enough or cannot be separated.

    The part has more records than ``most`` where so many came at one time, or are one group; it always has some.

    :param most: records that the part should have at most.
    :param counted: topics whose records count; the part has records of them, and so has the rest.
    :param schema_topic: is read to the end of the range: a row must not be read before the change of its table.
    :param settle: moves the ends of a range back to where no group of records is open.
    """
    timed = sorted({part.topic for part in planned.offset_ranges() if part.topic != schema_topic})
    everything = row_records(planned, counted)

    def up_to(time_ms: int) -> Range:
        ends = log.offsets_at(timed, time_ms)
        cut_at = datetime.fromtimestamp(time_ms / 1000, UTC)
        return replace(planned, end=_ends(planned, timed, ends), cut_at=cut_at)

    limit = most
    while limit < everything:
        part = _largest(up_to, lambda part: row_records(part, counted), limit)
        if part is None:
            break
        part = settle(part)
        if 0 < row_records(part, counted) < everything:
            return part
        limit *= 2  # a group that is longer than the part
    return planned


def _largest(up_to: Callable[[int], Range], count: Callable[[Range], int], limit: int) -> Range | None:
    """Return a part with at most ``limit`` records and at least half of that where there is one.

    Otherwise the part that ends right after the records that cannot be separated; None if these come after the present.
    """
    low, high = 0, int(datetime.now(UTC).timestamp() * 1000) + 1
    part = up_to(high)
    if count(part) <= limit:
        return part if count(part) else None
    while high - low > 1:
        middle = (low + high) // 2
        tried = up_to(middle)
        if count(tried) > limit:
            high, part = middle, tried
        elif 2 * count(tried) >= limit:
            return tried
        else:
            low = middle
    before = up_to(low)
    return before if count(before) else part


def _ends(planned: Range, timed: Sequence[str], ends: Offsets) -> Offsets:
    """Return the ends of a range at other offsets; a partition that is missing there ends where the range does."""
    return {
        topic: {
            partition: max(planned.start[topic][partition], min(end, ends.get(topic, {}).get(partition, end)))
            if topic in timed
            else end
            for partition, end in partitions.items()
        }
        for topic, partitions in planned.end.items()
    }


def row_records(planned: Range, counted: Sequence[str]) -> int:
    """Return the number of offsets of some topics in a range."""
    return sum(part.records for part in planned.offset_ranges() if part.topic in counted)
