# SPDX-License-Identifier: Apache-2.0
"""Demand an operator's approval of a new generation of the source's log, for exactly the records shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import NEW_GENERATION, DataError
from spark_jobs.lake.batch_log import BatchLog
from spark_jobs.lake.begins import Begin

_SHOWN = 5


class NewGenerationError(DataError):
    """A batch holds records of a log that began again, which nobody approved.

    :param begins: the first such record of each partition.
    """

    def __init__(self, begins: Sequence[Begin]) -> None:
        first = begins[0]
        topic, _, partition = first.partition_key.rpartition("/")
        names = " ".join(begin.name for begin in begins[:_SHOWN])
        super().__init__(
            NEW_GENERATION,
            "the source's log began again (failover, RESET MASTER, or a task whose numbers restart): newer records "
            "have lower places than those read before; nothing of this batch was applied",
            where={
                "topic": topic,
                "partition": int(partition),
                "offset": first.offset,
                "position": first.position,
                "seen_before": first.known,
                **({} if first.transaction_id is None else {"gtid": first.transaction_id}),
                "first_records": names + (f" and {len(begins) - _SHOWN} more" if len(begins) > _SHOWN else ""),
                "generation": first.generation,
            },
            hint="look whether the source failed over or was reset; if so, see what follows with `airflow-cdc approve "
            f"PIPELINE.yaml` and go on with `airflow-cdc approve PIPELINE.yaml --new-generation {first.name}`, or with "
            f"CdcSyncOperator(new_generation='{first.name}'); if two logs are written to one topic, give each topics "
            "of its own",
        )
        self.begins = list(begins)
        self.details = {"new_generation": [_shown(begin) for begin in begins]}


def refuse_unclear(record: str, early: Sequence[str], *, timed: bool = True) -> None:
    """Refuse a generation if the log does not show which records belong to it; no approval helps.

    :param record: of this batch, by which the new log showed.
    :param early: partitions of which earlier batches hold such records, applied as of the log before.
    :param timed: all records of the batch have source times. Without, nothing shows where the new log begins in
        partitions of which no old records were read.
    :raises DataError: nothing of the batch is applied.
    """
    if timed and not early:
        return
    if early:
        reason = (
            "batches before this one hold records of the new log, which nothing distinguished from the old one then"
        )
    else:
        reason = "records without source times do not show which log they are of"
    shown = " ".join(early[:_SHOWN]) + (f" and {len(early) - _SHOWN} more" if len(early) > _SHOWN else "")
    raise DataError(
        "source.generation_unclear",
        f"the source's log began again, and {reason}; nothing of this batch was applied",
        where={"record": record, **({"read_before": shown} if early else {})},
        hint="take a new snapshot into other topics and a pipeline with another name and sink.root",
    )


def demand_approval(
    job: JobDocument, begins: Sequence[Begin], newest: int, log: BatchLog, say: Callable[[str], None]
) -> list[str]:
    """Refuse the begin of a generation that nobody approved; note the approval in the lake where the job has one.

    :param newest: number of the newest generation that has begun.
    :return: first record of the approved generation; nothing where none begins that had not begun.
    :raises NewGenerationError: nothing of the batch is applied.
    """
    new = [begin for begin in begins if begin.generation > newest]
    if not new:
        return []
    first_records = [[begin.partition_key, begin.offset] for begin in new]
    approved = log.approval(job, new[0].generation)
    if approved is None or approved["first_records"] != first_records:
        if job.new_generation != new[0].name:
            raise NewGenerationError(new)
        log.approve(job, new[0].generation, {"first_records": first_records, "at": datetime.now(UTC).isoformat()})
    say(f"generation {new[0].generation} of the source's log begins with {new[0].name}, as approved")
    return [new[0].name]


def _shown(begin: Begin) -> dict[str, Any]:
    """Return a first record as people look at it."""
    topic, _, partition = begin.partition_key.rpartition("/")
    time = None if begin.time is None else datetime.fromtimestamp(begin.time / 1_000_000, UTC).isoformat()
    return {
        "topic": topic,
        "partition": int(partition),
        "offset": begin.offset,
        "generation": begin.generation,
        "position": begin.position,
        "seen_before": begin.known,
        "source_time": time,
        "gtid": begin.transaction_id,
    }
