# SPDX-License-Identifier: Apache-2.0
"""The bench's generator, its reckoning and its measuring; no Spark, no broker."""

from __future__ import annotations

import json
import sys

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from tests.bench.data import Feed, differences
from tests.bench.measure import measure
from tests.bench.report import Figures, table, targets
from tests.bench.structure import EXPECTED, SCHEMA_TOPIC


@pytest.mark.parametrize("embedded", [True, False])
def test_the_same_arguments_give_the_same_bytes(embedded: bool) -> None:
    one, two = (Feed(3, embedded, one_topic=True, partitions=2) for _ in range(2))
    assert list(one.schema_records()) == list(two.schema_records())
    assert list(one.batch(500)) == list(two.batch(500))
    assert list(one.batch(100)) == list(two.batch(100))


def test_records_look_like_the_connectors() -> None:
    feed = Feed(2)
    records = list(feed.batch(20_000))
    values = [record.value for record in records if record.value is not None]
    assert len(values) == 20_000
    assert 3_800 < sum(map(len, values)) / len(values) < 5_000
    plain = [record.value for record in Feed(2, embedded=False).batch(2_000) if record.value is not None]
    assert 700 < sum(map(len, plain)) / len(plain) < 1_100
    keys = sum(rows.num_rows for rows in feed.expected().values())
    assert 0.2 < keys / 20_000 < 0.33
    ops = [json.loads(value)["payload"]["op"] for value in values]
    assert 0.55 < ops.count("u") / len(ops) < 0.61
    assert 0.07 < ops.count("d") / len(ops) < 0.09
    assert ops.count("d") == len(records) - len(values)  # tombstones


def test_positions_rise_in_every_partition() -> None:
    last: dict[tuple[str, int], tuple[str, int, int]] = {}
    seen = set()
    for record in Feed(3, embedded=False, partitions=2).batch(3_000):
        if record.value is None:
            continue
        source = json.loads(record.value)["source"]
        position = source["file"], source["pos"], source["row"]
        assert position > last.get((record.topic, record.partition), ("", 0, 0))
        last[record.topic, record.partition] = position
        seen.add(position)
    assert len(seen) == 3_000
    assert len(last) == 6


def test_expected_rows_follow_from_the_records() -> None:
    """Fold the images themselves and compare with what the generator says, on columns that need no decoding."""
    feed = Feed(2, embedded=False)
    rows: dict[str, dict[int, dict[str, object]]] = {name: {} for name in feed.table_names}
    for _ in range(2):
        for record in feed.batch(1_500):
            if record.value is not None:
                change = json.loads(record.value)
                target = rows[change["source"]["table"]]
                if change["op"] == "d":
                    del target[change["before"]["id"]]
                else:
                    target[change["after"]["id"]] = change["after"]
        for name, expected in feed.expected().items():
            assert expected.schema == EXPECTED
            for actual, image in zip(
                expected.to_pylist(), (rows[name][key] for key in sorted(rows[name])), strict=True
            ):
                assert [
                    actual[c] for c in ("id", "customer", "email", "street", "note", "quantity", "weight", "status")
                ] == [image[c] for c in ("id", "customer", "email", "street", "note", "quantity", "weight", "status")]
                assert actual["updated"].strftime("%Y-%m-%dT%H:%M:%SZ") == image["updated"]


def test_our_decoder_takes_every_record() -> None:
    for embedded in (True, False):
        feed = Feed(2, embedded)
        wire = open_format("debezium-json", {})
        records = [*feed.schema_records(), *feed.batch(1_000)]
        columns = [list(values) for values in zip(*((r.key, r.value) for r in records), strict=True)]
        numbers = list(range(len(records)))
        changes = wire.decode(Records(SCHEMA_TOPIC, 0, numbers, numbers, *columns))
        kinds = changes.column("kind").to_pylist()
        assert kinds.count("row") == 1_000
        assert kinds.count("schema") == 2
        assert kinds.count("error") == 0


def test_differences_are_seen() -> None:
    feed = Feed()
    list(feed.batch(200))
    rows = feed.expected()["orders_0001"]
    mixed = rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))
    assert differences(rows, mixed) == ""
    assert "rows instead" in differences(rows, rows.slice(1))
    other = rows.set_column(6, "quantity", pa.array([7] * rows.num_rows, pa.int32()))
    assert differences(rows, other) == "other values in quantity"
    assert "columns" in differences(rows, rows.drop_columns(["due"]))


_BURN = "import time; end = time.process_time() + {0}\nwhile time.process_time() < end: pass"


def test_descendants_count_even_when_nobody_waits_for_them() -> None:
    child = f"import os, sys\nif os.fork(): os._exit(0)\nos.setsid()\n{_BURN.format(0.6)}"
    program = (
        "import subprocess, sys, signal\n"
        f"subprocess.run([sys.executable, '-c', {child!r}])\n"
        "print('out'); print('note', file=sys.stderr)\n"
        f"{_BURN.format(0.2)}"
    )
    actual = measure([sys.executable, "-c", program])
    assert actual.code == 0
    assert actual.output == "out\n"
    assert [line for _, line in actual.lines] == ["note"]
    assert 0.8 <= actual.cpu < 2.5
    assert actual.cpu_seen <= actual.cpu + 0.05
    assert actual.processes >= 2


def test_descendants_count_even_when_their_parent_ignores_their_end() -> None:
    """As Spark's Python daemon does."""
    child = f"{_BURN.format(0.8)}\ntime.sleep(0.3)"
    program = (
        "import subprocess, sys, signal, time\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "time.sleep(4)"
    )
    actual = measure([sys.executable, "-c", program])
    assert 0.75 <= actual.cpu_sampled <= actual.cpu < 2.5


def test_memory_is_that_of_the_whole_tree() -> None:
    child = "import time; block = bytearray(120_000_000); time.sleep(1)"
    program = (
        f"import subprocess, sys; block = bytearray(80_000_000)\nsubprocess.run([sys.executable, '-c', {child!r}])"
    )
    actual = measure([sys.executable, "-c", program])
    assert 200_000_000 < actual.peak < 320_000_000
    assert actual.resident >= actual.peak * 0.9
    assert actual.wall >= 1.0


def test_an_exit_code_is_reported() -> None:
    assert measure([sys.executable, "-c", "raise SystemExit(7)"]).code == 7


def test_targets_are_reckoned_from_cells() -> None:
    def cell(case: str, who: str, wall: float, cpu: float) -> dict[str, object]:
        figures = {"wall": wall, "cpu": cpu, "peak": 1_000_000_000, "foreign": 0.1, "changes": 500_000}
        return {"case": case, "who": who, **figures, "equal": True, "failed": "", "note": ""}

    cells = [
        cell("one table, empty", "sync spark", 10, 10),
        cell("one table, empty", "hand-written", 25, 25),
        cell("one table, twice as much", "sync spark", 14, 14) | {"changes": 1_000_000},
    ]
    actual = {target.text: target for target in targets(Figures(cells))}
    assert actual["one table, empty: hand-written against ours, wall"].met
    assert actual["one table, empty: hand-written against ours, cpu"].met is False
    assert actual["marginal rate, 12 columns, with embedded schema"].measured == 125
    assert actual["empty batch, wall"].met is None
    assert "2.5 x" in table(cells)
