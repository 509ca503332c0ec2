# SPDX-License-Identifier: Apache-2.0
"""Positions lead with the generation of their partition, but for records that are sent again from a log before."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA
from airflow_provider_cdc.core.model.position import generation_of
from spark_jobs.lake.begins import Begin, Begins
from tests.locations import binlog_position

SECOND = 1_000_000


def begin(topic: str, generation: int, offset: int, *, file: int, known: int, time: int | None, before: int) -> Begin:
    position = binlog_position(file, 4, generation=generation)
    highest = binlog_position(known, 900, generation=generation - 1)
    return Begin(topic, generation, offset, position, highest, time and time * SECOND, before * SECOND, None)


def changes(rows: list[tuple[str, int, int, int, int | None]]) -> pa.RecordBatch:
    """Return changes from (topic, partition, offset, binlog file, seconds)."""
    columns = {
        "topic": [row[0] for row in rows],
        "partition": [row[1] for row in rows],
        "offset": [row[2] for row in rows],
        "position": [binlog_position(row[3], 100) for row in rows],
        "source_time": [None if row[4] is None else row[4] * SECOND for row in rows],
    }
    arrays = [pa.array(columns.get(field.name, [None] * len(rows)), field.type) for field in CHANGE_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=CHANGE_SCHEMA)


def generations(begins: Begins, rows: list[tuple[str, int, int, int, int | None]]) -> list[int]:
    filled = begins.fill(changes(rows))
    assert filled.schema == CHANGE_SCHEMA
    return [generation_of(position) for position in filled.column("position").to_pylist()]


ONE = begin("t/0", 1, 20, file=3, known=7, time=100, before=90)


def test_records_from_the_first_on_are_of_the_generation() -> None:
    rows = [("t", 0, 19, 7, 90), ("t", 0, 20, 3, 100), ("t", 0, 25, 9, 300)]
    assert generations(Begins([ONE]), rows) == [0, 1, 1]


def test_other_partitions_and_topics_are_not() -> None:
    assert generations(Begins([ONE]), [("t", 1, 30, 3, 200), ("u", 0, 30, 3, 200)]) == [0, 0]


@pytest.mark.parametrize(
    ("file", "time", "generation"),
    [
        (7, 90, 0),  # sent again
        (5, 40, 0),
        (8, 95, 0),  # of the end of the old log, which this partition had not read
        (3, 95, 1),  # a transaction that began before the first of the new log, and ended after it
        (9, None, 1),
    ],
)
def test_old_records_that_are_sent_again_stay_old(file: int, time: int | None, generation: int) -> None:
    assert generations(Begins([ONE]), [("t", 0, 40, file, time)]) == [generation]


def test_a_third_log() -> None:
    two = begin("t/0", 2, 50, file=1, known=4, time=200, before=190)
    rows = [("t", 0, 49, 4, 190), ("t", 0, 50, 1, 200), ("t", 0, 51, 4, 150), ("t", 0, 52, 7, 60)]
    assert generations(Begins([two, ONE]), rows) == [1, 2, 1, 0]


@pytest.mark.parametrize("seed", range(20))
def test_one_record_is_judged_as_a_column_is(seed: int) -> None:
    chance = random.Random(seed)
    two = begin("t/0", 2, 60, file=1, known=5, time=200, before=chance.randint(100, 199))
    begins = Begins([ONE, two, begin("t/1", 1, 5, file=8, known=7, time=120, before=90)])
    rows = [
        ("t", chance.randrange(3), offset, chance.randint(1, 9), chance.choice([None, chance.randint(30, 300)]))
        for offset in range(100)
    ]
    documents = changes(rows).select(["topic", "partition", "offset", "position"]).to_pylist()
    times = [None if row[4] is None else row[4] * SECOND for row in rows]
    single = [begins.position_of({**one, "source_time": time}) for one, time in zip(documents, times, strict=True)]
    assert single == begins.fill(changes(rows)).column("position").to_pylist()
