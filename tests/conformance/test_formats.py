"""What every registered format must do, on the real traffic recorded for it."""

from __future__ import annotations

import random
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA, Format, Records
from airflow_provider_cdc.core.formats.registry import format_names, open_format
from tests.stack.capture import Record, read

CAPTURES = Path(__file__).parents[1] / "captures" / "data"
FIXTURES = {"debezium-json": ["public-a", "public-b", "public-c"]}


@pytest.fixture(params=format_names())
def wire(request: pytest.FixtureRequest) -> Format:
    return open_format(request.param)


@cache
def partitions(name: str) -> dict[tuple[str, int], list[Record]]:
    found: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for capture in FIXTURES[name]:
        for record in read(CAPTURES / capture):
            found[record.topic, record.partition].append(record)
    return found


def records_of(group: list[Record]) -> Records:
    return Records(
        group[0].topic,
        group[0].partition,
        [r.offset for r in group],
        [r.timestamp for r in group],
        [r.key for r in group],
        [r.value for r in group],
        [r.headers for r in group],
    )


def plain(batches: list[pa.RecordBatch]) -> list[dict]:
    return [row for batch in batches for row in batch.to_pylist()]


def test_every_format_has_recorded_traffic() -> None:
    assert set(format_names()) == set(FIXTURES)


def test_real_traffic_decodes_without_error_in_the_common_schema(wire: Format) -> None:
    rows = 0
    for group in partitions(wire.name).values():
        batch = wire.decode(records_of(group))
        assert batch.schema.equals(CHANGE_SCHEMA)
        assert "error" not in batch.column("kind").to_pylist()
        assert batch.column("offset").to_pylist() == sorted(batch.column("offset").to_pylist())
        rows += batch.num_rows
    assert rows > 10_000


def test_any_split_of_the_input_gives_the_same_changes(wire: Format) -> None:
    chance = random.Random(1)
    for group in partitions(wire.name).values():
        whole = plain([open_format(wire.name).decode(records_of(group))])
        cuts = sorted({0, len(group), *(chance.randrange(len(group) + 1) for _ in range(5))})
        parts = [records_of(group[a:b]) for a, b in pairwise(cuts)]
        assert plain([wire.decode(part) for part in parts]) == whole


def test_positions_of_rows_and_schema_changes_are_one_order(wire: Format) -> None:
    if wire.order != "exact":
        pytest.skip("the format states no exact order")
    for (topic, _), group in partitions(wire.name).items():
        positions = [p for p in wire.decode(records_of(group)).column("position").to_pylist() if p is not None]
        assert positions == sorted(positions), topic


def test_every_truncation_gives_changes_or_errors(wire: Format) -> None:
    groups = [group for group in partitions(wire.name).values() if group[0].value]
    for group in groups[:: max(1, len(groups) // 20)]:
        value = group[0].value or b""
        cuts = [value[:n] for n in range(0, len(value), max(1, len(value) // 300))]
        batch = wire.decode(Records("t", 0, list(range(len(cuts))), [0] * len(cuts), [None] * len(cuts), cuts))
        assert set(batch.column("kind").to_pylist()) <= {"error", "ignored"}
        assert len(batch) == len(cuts)


def test_ten_thousand_mutations_give_changes_or_errors(wire: Format) -> None:
    chance = random.Random(7)
    values = [r.value for group in partitions(wire.name).values() for r in group if r.value]
    mutated = []
    for _ in range(10_000):
        data = bytearray(chance.choice(values))
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[place] = chance.randrange(256)
                case 1:
                    del data[place : place + chance.randint(1, 30)]
                case 2:
                    data[place:place] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 5)))
                case _:
                    data[place:place] = data[: chance.randint(1, 50)]
            if not data:
                break
        mutated.append(bytes(data))
    batch = wire.decode(Records("t", 0, list(range(10_000)), [0] * 10_000, [None] * 10_000, mutated))
    assert batch.schema.equals(CHANGE_SCHEMA)
    assert len(batch) == 10_000
    batch.validate(full=True)
    for columns in {c for c in batch.column("columns").to_pylist() if c is not None}:
        wire.describe(columns)
