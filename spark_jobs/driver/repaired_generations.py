# SPDX-License-Identifier: Apache-2.0
"""Find the generation of the source's log that a repaired record is of.

Nobody looked at a record that could not be decoded: where it was the first of a log that began again, the generation
begins behind it. So its offset says nothing; its source time and position are compared with what both logs have shown
since.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.position import GENERATION_DIGITS, in_generation
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.generations import Generations
from spark_jobs.driver.new_begins import next_log_behind, shows_another_log
from spark_jobs.lake.begins import Begins
from spark_jobs.lake.manifest import LandReport
from spark_jobs.lake.storage import Storage


class RepairedBegins(Begins):
    """Put the generation in front of the positions of repaired records.

    :param generations: with all that was read so far.
    """

    def __init__(self, generations: Generations) -> None:
        super().__init__()
        self._generations = generations

    def fill(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        """Put the generation in front of the positions of changes, of any partitions.

        :raises DataError: ``quarantine.generation_unclear``, nothing shows of which log a record is.
        """
        names = ["topic", "partition", "offset", "op", "position", "source_time", "transaction_id"]
        # times may lie outside of the years that Python knows
        index = changes.schema.get_field_index("source_time")
        plain = changes.set_column(index, "source_time", changes.column("source_time").cast(pa.int64()))
        filled = [
            None if record["position"] is None else in_generation(record["position"], self._number(record))
            for record in plain.select(names).to_pylist()
        ]
        index = changes.schema.get_field_index("position")
        field = changes.schema.field(index)
        return changes.set_column(index, field, pa.array(filled, field.type))

    def _number(self, record: dict[str, Any]) -> int:
        number: int | None = 0
        for later in range(1, self._generations.newest + 1):
            is_later = _is_of(record, later, self._generations)
            if not is_later:
                number = None if is_later is None else number
                break
            number = later
        if number is None or shows_another_log(record, number, self._generations):
            raise DataError(
                "quarantine.generation_unclear",
                "the source's log began again near a repaired record, and nothing shows yet of which log it is; "
                "nothing is changed",
                where={name: record[name] for name in ("topic", "partition", "offset", "position")},
                hint="leave it in the quarantine, sync and approve the new log, then replay it again; "
                "or replay the others without it",
            )
        return number


def demand_one_log(repaired: LandReport, seq: int, landed: LandReport, history: History, storage: Storage) -> None:
    """Refuse repaired records that end a log, if records of the next one count as behind them in the same.

    :param seq: first batch that read one of them; ``landed`` this batch.
    :raises DataError: ``quarantine.generation_unclear``.
    """
    earlier = [one for one in history.earlier if one < seq]
    before = Generations.from_document(history.result(earlier[-1]).source_log if earlier else ())
    since = [*(history.manifest(one) for one in history.earlier if one >= seq), landed]
    record = next_log_behind(repaired, since, before, storage)
    if record is not None:
        raise DataError(
            "quarantine.generation_unclear",
            "the source's log began again behind a repaired record, and what was read since counts as the same log; "
            "nothing is changed",
            where={name: record[name] for name in ("topic", "partition", "offset", "position")},
            hint="discard the repaired records before this one that have higher positions, and rebuild their tables",
        )


def _is_of(record: dict[str, Any], number: int, generations: Generations) -> bool | None:
    """Return whether a record is of a generation or a later one, None where that is unclear."""
    time, position = record["source_time"], record["position"][GENERATION_DIGITS:]
    partition_key = f"{record['topic']}/{record['partition']}"
    begins, before = generations.all[number].begins, generations.all[number - 1].marks
    begin, mark = begins.get(partition_key), before.of(partition_key)
    since = generations.all[number].since if begin is None else begin.time
    if not time or since is None:
        return None
    ended = before.newest if mark.time is None else mark.time
    if ended is not None and time <= ended:
        return None if time >= since else False
    if time >= since:
        return True
    # it is the last one of the log before, or the first one of this
    reached = mark.position or max((one.position for one in before.partitions.values()), default="")
    if position < reached[GENERATION_DIGITS:]:
        return True
    first = min(one.position for one in begins.values()) if begin is None else begin.position
    return False if first[GENERATION_DIGITS:] < position else None
