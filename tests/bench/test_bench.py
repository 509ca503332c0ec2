# SPDX-License-Identifier: Apache-2.0
"""The bench's generator, its reckoning and its measuring; no Spark, no broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from airflow_provider_cdc.core.formats.contract import Records, Registered
from airflow_provider_cdc.core.formats.registry import open_format
from tests.bench import plots, results
from tests.bench.__main__ import options_of
from tests.bench.contestants import CLEARED, clear
from tests.bench.data import Feed, differences
from tests.bench.formats_data import Orders, case_names, records_of, writer_of
from tests.bench.large_target import LAYOUT_CHANGES, Changes, LayoutChange, Snapshot
from tests.bench.measure import measure
from tests.bench.report import MODE_CASE, Figures, marginals, table, targets
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


@pytest.mark.parametrize("name", case_names())
def test_our_decoder_takes_every_record_of_each_case(name: str) -> None:
    writer = writer_of(name)
    records = [r for r in records_of(name, writer, Orders(), 200, 1) if r.topic.endswith("rows")]
    wire = open_format(writer.format, writer.options)
    if isinstance(wire, Registered):
        wire.learn(writer.schemas)  # type: ignore[attr-defined]
    columns = [list(values) for values in zip(*((r.key, r.value, r.headers) for r in records), strict=True)]
    numbers = list(range(len(records)))
    kinds = wire.decode(Records("rows", 0, numbers, numbers, *columns)).column("kind").to_pylist()
    assert kinds.count("row") == 200
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
    child = f"{_BURN.format(0.8)}\ntime.sleep(1)"
    program = (
        "import subprocess, sys, signal\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE).stdout.read()  # until it ends"
    )
    actual = measure([sys.executable, "-c", program])
    assert 0.75 <= actual.cpu_sampled <= actual.cpu < 2.5


@pytest.mark.parametrize("handler", ["SIG_DFL", "SIG_IGN"])
def test_bytes_of_children_count_once(handler: str) -> None:
    child = "import os, time; os.write(os.open('/dev/null', os.O_WRONLY), bytes(10_000_000)); time.sleep(1)"
    program = (
        f"import signal, subprocess, sys, time\nsignal.signal(signal.SIGCHLD, signal.{handler})\n"
        f"subprocess.run([sys.executable, '-c', {child!r}])\ntime.sleep(0.5)"
    )
    assert 10_000_000 <= measure([sys.executable, "-c", program]).written < 15_000_000


def test_memory_is_that_of_the_whole_tree() -> None:
    child = "import time; block = bytearray(120_000_000); time.sleep(1)"
    program = (
        f"import subprocess, sys; block = bytearray(80_000_000)\nsubprocess.run([sys.executable, '-c', {child!r}])"
    )
    actual = measure([sys.executable, "-c", program])
    assert 200_000_000 < actual.peak < 320_000_000
    assert actual.resident >= actual.peak * 0.9
    assert actual.wall >= 1.0


def test_folders_of_many_files_are_not_deleted_between_runs(tmp_path: Path) -> None:
    for name, files in (("few", 10), ("many", 2_000)):
        (tmp_path / name).mkdir()
        for number in range(files):
            (tmp_path / name / str(number)).touch()
        clear(tmp_path / name)
    clear(tmp_path / "none")
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(CLEARED) and len(list(left.iterdir())) == 2_000


def test_an_exit_code_is_reported() -> None:
    assert measure([sys.executable, "-c", "raise SystemExit(7)"]).code == 7


def test_targets_are_reckoned_from_cells() -> None:
    def cell(case: str, who: str, wall: float, cpu: float) -> dict[str, object]:
        figures = {
            "wall": wall,
            "cpu": cpu,
            "peak": 1_000_000_000,
            "foreign": 0.1,
            "changes": 500_000,
            "read": 1,
            "written": 1,
        }
        return {"case": case, "who": who, **figures, "equal": True, "failed": "", "note": ""}

    cells = [
        cell("one table, empty", "sync spark", 10, 10),
        cell("one table, empty", "hand-written", 25, 25),
        cell("10 messages", "sync spark", 5, 5) | {"changes": 10},
        cell("format canal-json", "sync spark", 9, 9) | {"changes": 500_010},
        cell(MODE_CASE, "mirror", 9, 9) | {"apply": 4.0},
        cell(MODE_CASE, "with rules", 9, 9) | {"apply": 5.5},
        cell(MODE_CASE, "history", 14, 14) | {"apply": 9.0},
        cell(MODE_CASE, "append", 10, 10) | {"apply": 4.0},
    ]
    actual = {target.text: target for target in targets(Figures(cells))}
    assert actual["one table, empty: hand-written against ours, wall"].met
    assert actual["one table, empty: hand-written against ours, cpu"].met is False
    assert actual["format canal-json: sync spark, marginal rate"].measured == 125
    assert actual["10 messages: sync spark, CPU"].met is False
    assert actual["empty batch, wall"].met is None
    assert actual[f"{MODE_CASE}: with rules against a mirror, apply"].met is False
    assert actual[f"{MODE_CASE}: history against a mirror, cpu"].met
    assert actual[f"{MODE_CASE}: append against a mirror, cpu"].met is False
    assert "2.5 x" in table(cells)


def test_a_change_costs_as_much_in_large_batches_as_in_small_ones() -> None:
    sizes = [(500_000, 7.0), (2_500_000, 31.0), (10_000_000, 136.0)]  # 12 and 14 µs a change
    cells = [
        {"case": f"{n} changes at once", "who": "sync inline", "changes": n, "cpu": cpu, "failed": ""}
        for n, cpu in sizes
    ]
    (target,) = [target for target in targets(Figures(cells)) if "marginal cost" in target.text]
    assert (round(target.measured or 0, 3), target.met) == (1.167, False)


def test_targets_of_many_and_of_large_tables() -> None:
    def cell(case: str, cpu: float, largest: float) -> dict[str, object]:
        return {"case": case, "who": "sync inline", "changes": largest, "cpu": cpu, "largest": largest, "failed": ""}

    cells = [
        cell("10000 tables in one topic, empty", 61, 1.9e9),
        cell("2500000 changes at once", 30, 1.6e9),
        cell("10000000 changes at once", 120, 1.7e9),
        cell("snapshot of 20000000 rows", 300, 1.2e9),
    ]
    reckoned = [target for target in targets(Figures(cells)) if "sync inline" in target.text]
    assert {target.text: target.met for target in reckoned if target.measured is not None} == {
        "10000 tables in one topic, empty: sync inline, CPU": False,
        "10000 tables in one topic, empty: sync inline, memory of the largest process": True,
        "2500000 changes at once: sync inline, memory of the largest process": False,
        "10000000 changes at once: sync inline, memory of the largest process": False,
        "snapshot of 20000000 rows: sync inline, memory of the largest process": True,
    }


@pytest.mark.parametrize("layout", LAYOUT_CHANGES, ids=lambda layout: layout.name)
def test_a_layout_change_is_followed_by_rows_of_the_new_layout(layout: LayoutChange) -> None:
    feed = Feed(1, embedded=False)
    rows = [record for record in feed.batch(20) if record.value is not None]
    change, *later = Changes(feed, 1_000, 100, recent=True, layout=layout).records()
    assert change.topic == SCHEMA_TOPIC and change.value is not None
    document = json.loads(change.value)
    assert document["ddl"] == f"ALTER TABLE `orders_0001` {layout.clause}"
    names = {column["name"] for column in document["tableChanges"][0]["table"]["columns"]}
    images = [json.loads(record.value) for record in later if record.value is not None]
    assert all(set(image["after"]) == names for image in images if image["after"])
    positions = [json.loads(record.value or b"")["source"] for record in (rows[-1], change, later[0])]
    assert len({position["pos"] for position in positions}) == 3
    assert positions == sorted(positions, key=lambda position: (position["file"], position["pos"]))


def test_a_snapshot_is_checked_by_sums(tmp_path: Path) -> None:
    snapshot = Snapshot(Feed(1, embedded=False, partitions=2), 500)
    payloads = [json.loads(record.value or b"") for record in snapshot.records()]
    assert {payload["op"] for payload in payloads} == {"r"}
    assert [payload["source"]["snapshot"] for payload in payloads] == ["true"] * 499 + ["last"]
    rows = [{name: payload["after"][name] for name in ("id", "quantity")} for payload in payloads]
    write_deltalake(str(tmp_path / "whole"), pa.Table.from_pylist(rows))
    assert snapshot.wrong(tmp_path / "whole") == ""
    write_deltalake(str(tmp_path / "part"), pa.Table.from_pylist(rows[1:]))
    assert "instead of" in snapshot.wrong(tmp_path / "part")


def test_the_work_of_servers_counts_as_the_commands() -> None:
    """As executors of a cluster do, whose parent runs before and after."""
    child = f"block = bytearray(90_000_000)\n{_BURN.format(0.5)}"
    program = f"import subprocess, sys\nfor _ in range(100): subprocess.run([sys.executable, '-c', {child!r}])"
    server = subprocess.Popen(["sh", "-c", '"$@"; true', "sh", sys.executable, "-c", program], start_new_session=True)
    try:
        alone, served = (
            measure([sys.executable, "-c", "import time; time.sleep(2)"], servers=servers)
            for servers in ((), (server.pid,))
        )
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
    assert alone.cpu < served.cpu == pytest.approx(served.cpu_sampled, abs=0.5)
    assert served.largest > 90_000_000 > alone.largest


def _measured(case: str, who: str, changes: int, cpu: float) -> dict[str, object]:
    sizes = {"wall": cpu, "peak": 10**9, "largest": 10**9, "read": 10**6, "written": 10**6, "foreign": 0.0}
    names = {"case": case, "who": who, "changes": changes, "cpu": cpu, **sizes, "equal": True, "failed": "", "note": ""}
    return {**names, "runs": [{"lines": []}], "commit": "0" * 40, "date": "2026-01-01", "machine": "2 x CPU"}


def test_marginal_costs_are_those_between_sizes() -> None:
    cells = [_measured(f"{n} changes at once", "sync inline", n, cpu) for n, cpu in ((2_000_000, 11), (1_000_000, 6))]
    actual = marginals([*cells, _measured("one table, empty", "sync inline", 5, 1)])
    assert actual == [{"who": "sync inline", "from": 1_000_000, "to": 2_000_000, "microseconds": 5.0}]


def test_a_run_replaces_its_own_figures_and_leaves_the_others(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    results.add(file, cells=[_measured("a", "x", 1, 1), _measured("a", "y", 1, 2), _measured("b", "x", 1, 3)])
    results.add(file, growth=[{"batches": 300, "small_cpu": [1, 1]}, {"batches": 10, "small_cpu": [1, 1]}])
    results.add(file, cells=[_measured("a", "y", 1, 9) | {"commit": "1" * 40}], growth=[{"batches": 300, "log": 1}])
    document = results.load(file)
    actual = [(cell["case"], cell["who"], cell["cpu"], cell["commit"][0]) for cell in document["cells"]]
    assert actual == [("a", "x", 1, "0"), ("a", "y", 9, "1"), ("b", "x", 3, "0")]
    assert document["growth"] == [{"batches": 10, "small_cpu": [1, 1]}, {"batches": 300, "log": 1}]
    assert len(results.stamp()["commit"].removesuffix("-dirty")) == 40


def test_options_choose_sizes() -> None:
    assert options_of(["--full"]).tables[-1] == 10_000
    assert options_of(["--full", "--stored", "7,8"]).stored == [7, 8]
    quick = options_of(["--quick", "--full"])
    assert max(*quick.tables, *quick.sizes, *quick.stored, quick.snapshot) <= 500_000
    assert quick.json.name == "quick.json" and options_of([]).snapshot == 0


def test_the_pages_plots_are_made_from_its_figures(tmp_path: Path) -> None:
    folder = results.ROOT / "docs" / "design" / "performance"
    plots.write(results.load(folder / "bench.json"), tmp_path)
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {file.name for file in folder.iterdir()}
    changed = [name for name in sorted(names) if (tmp_path / name).read_bytes() != (folder / name).read_bytes()]
    assert not changed, f"run `python -m tests.bench.plots {folder / 'bench.json'} {folder}`"
    assert max(file.stat().st_size for file in folder.glob("*.svg")) < 100_000


def test_figures_that_are_not_there_leave_plots_empty(tmp_path: Path) -> None:
    plots.write({}, tmp_path)
    assert {file.stem for file in tmp_path.glob("*.svg")} == set(plots.PLOTS)
