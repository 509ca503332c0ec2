# SPDX-License-Identifier: Apache-2.0
"""Each real Debezium capture, replayed through the broker in batches cut anywhere, gives the database's own content."""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from airflow_provider_cdc.demo.truth import SourceTable, differing, load
from tests.captures.excused_cells import differences
from tests.captures.moded_lake import ModedLake
from tests.captures.replaying import Lake, cut_before, full_ends, random_cuts
from tests.sample import ALL, TIMES
from tests.services.broker import Broker
from tests.services.capture import Record, partitions_of, read, replay

DATA = Path(__file__).parent / "data"
SHOP = Path(__file__).parents[2] / "example_dags" / "shop_data"
WAYS = ("iceberg", "iceberg copy-on-write")
CAPTURES = ["public-a", "public-b", "public-c", "public-a-restart"]
# each in one way at least: cut anywhere, stopped at the recorded points, or into a catalog; CDC_SEEDS=2 runs all in all
CUT = [*CAPTURES, "shop"] if ALL else ["public-c"]
STOPPED = CAPTURES if ALL else ["public-a"]

# The converter of these captures wrote NULL as the column's default (KAFKA-8713); the others ran with the option off.
NULL_AS_DEFAULT = {"public-a", "public-b", "public-a-restart"}

# Cells that the connector itself lost and ``differences.jsonl`` does not list; verified against the message by hand.
FLOAT32 = "REAL is sent as float32 (docs/wire/debezium-dtle.md B3)"
BOOLEAN = "TINYINT(1) declared in the stream is sent as true or false (docs/wire/debezium-dtle.md B9)"
STALE_DEFAULT = "NULL was sent as the default that the column had then"
ZERO_DATE = "a zero date in a NOT NULL column is sent as day 0; public-b has no list of differences"
LOST = {
    ("public-a", "shop.s36", "n6"): FLOAT32,
    ("public-a", "shop.s42", "n3"): FLOAT32,
    ("public-c", "shop.rd52", "z56"): FLOAT32,
    ("public-c", "shop.rd52", "z63"): BOOLEAN,
    ("public-a-restart", "shop.s7", "n3"): BOOLEAN,
    ("public-a-restart", "shop.rc23", "aa"): STALE_DEFAULT,
    **{("public-b", "shop.zero", column): ZERO_DATE for column in ("d", "dn", "dt", "dtn", "ts", "y")},
}
# The same at the recorded points, of rows that were gone or other ones in the end.
SNAPSHOT_FLOAT = "a snapshot reads FLOAT with six digits"
DAY_0 = "a zero date in a NOT NULL column is sent as day 0"
_LEAST, _MOST = "-9223372036854775808", "9223372036854775806"
LOST_AT_THE_TIME = {
    ("public-a", "my-db.all1", "c00", _LEAST): SNAPSHOT_FLOAT,
    ("public-a", "my-db.all1", "c03", _LEAST): SNAPSHOT_FLOAT,
    ("public-c", "shop.all1", "c00", _LEAST): SNAPSHOT_FLOAT,
    ("public-c", "shop.all1", "c00", _MOST): SNAPSHOT_FLOAT,
    ("public-c", "shop.zero", "dn", "4"): DAY_0,
    ("public-a-restart", "shop.zero", "dtn", "18"): DAY_0,
    ("public-a-restart", "shop.zero", "dtn", "43"): DAY_0,
}
# Columns added with CURRENT_TIMESTAMP(3): the binlog's header has the time of the ALTER in whole seconds.
DDL_TIMES = {(f"shop.mi{number}", "at1") for number in (1, 17, 32, 35, 39, 41)}
# Rows that hold a number that float32 cannot: Debezium sends "Infinity", which is quarantined.
QUARANTINED = {("public-a", "shop.s42"): "\"Decimal('102')\""}


def folder(name: str) -> Path:
    return SHOP if name == "shop" else DATA / name


@cache
def records(name: str) -> list[Record]:
    return list(read(folder(name)))


def schema_topic(name: str) -> str:
    return "shopdb" if name == "shop" else name.replace("-", "_")


def stated(name: str) -> dict[str, str]:
    """Return the connector's setting that no record shows: how it writes bytes as text."""
    meta = folder(name) / "meta.json"
    settings = json.loads(meta.read_text()).get("connector", {}) if meta.exists() else {}
    return {key: settings[key] for key in ("binary.handling.mode",) if key in settings}


@pytest.fixture(scope="module")
def captured(broker: Broker):
    """Put a capture into the broker once."""
    loaded: set[str] = set()

    def load_into(name: str) -> Broker:
        if name not in loaded:
            replay(broker, records(name), partitions_of(folder(name)))
            loaded.add(name)
        return broker

    return load_into


def problems(name: str, lake: Lake, source: SourceTable, excused: dict) -> list[str]:
    """Return what differs between the lake and the database's table, but for what no consumer can repair."""
    full = f"{source.database}.{source.table}"
    state = lake.state(source.database, source.table)
    if state is None:
        return [f"{full}: not there"]
    if state.state != "ok":
        return [f"{full}: {state.state}: {state.reason}"]
    cells = set(excused.get((source.database, source.table), set()))
    result = differing(source, lake.rows(source.database, source.table), cells, null_as_default=name in NULL_AS_DEFAULT)
    return [f"{full}: {text}" for text in result if not _lost(name, full, text)]


def _lost(name: str, full: str, problem: str) -> bool:
    column = problem.split(" of ", 1)[0]
    if (full, column) in DDL_TIMES:
        mine, theirs = problem.rsplit("}: ", 1)[1].split(" instead of ")
        return theirs.startswith(mine.removesuffix(")") + ", ")
    cause = LOST.get((name, full, column))
    if cause is FLOAT32:
        mine, theirs = problem.rsplit(": ", 1)[1].split(" instead of ")
        with np.errstate(over="ignore", under="ignore"):
            return float(np.float32(float(theirs))) == float(np.float32(float(mine)))
    if cause is BOOLEAN:
        return ": Decimal('1') instead of " in problem
    if (row := QUARANTINED.get((name, full))) and "missing" in problem and row in problem:
        return True
    return cause is not None


def compare(name: str, lake: Lake, truth: Path, moment: bool = False) -> None:
    """Fail when the lake differs.

    :param moment: the truth is an intermediate one, while ``differences.jsonl`` lists cells of the final one only.
    """
    excused = differences(folder(name) / "differences.jsonl.xz")
    tables = [table for table in load(truth) if table.database != "opaque"]
    assert tables
    wrong = [text for table in tables for text in problems(name, lake, table, excused)]
    wrong = [text for text in wrong if not (moment and _lost_at_the_time(name, text))]
    assert not wrong, "\n".join(wrong[:20])


def _lost_at_the_time(name: str, problem: str) -> bool:
    """Say whether a cell of an intermediate content is one that the connector had lost then."""
    column, _, rest = problem.partition(" of ")
    full, _, column = column.rpartition(": ")
    key = rest.partition('{"id": "')[2].partition('"')[0]
    return (name, full, column, key) in LOST_AT_THE_TIME


def demand_unseen_changes(lake: Lake) -> None:
    """Demand that changes which row events do not show parked their tables."""
    reasons = {state.reason for state in lake.states.values() if state.database == "opaque" and state.state == "parked"}
    assert any("TRUNCATE PARTITION" in reason for reason in reasons)
    assert any("AUTO_INCREMENT" in reason for reason in reasons)


@pytest.mark.parametrize(("name", "batches"), [*((name, 3 * TIMES) for name in CUT), *[("public-a", 1)] * ALL])
def test_capture_in_batches_cut_anywhere_gives_the_final_content(
    name: str, batches: int, captured, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, captured(name).bootstrap, schema_topic(name), options=stated(name))
    for ends in random_cuts(full_ends(records(name)), batches, seed=batches):
        lake.sync_to(ends)
    compare(name, lake, folder(name) / "source_final.jsonl.xz")
    if name != "shop":
        demand_unseen_changes(lake)
    if batches == 1:  # a row that came before its DDL may be counted in each batch that looks at it again
        assert lake.quarantined == (1 if name == "public-a" else 0)


# the others take long: every capture at 1, 3 and 12 cuts, in both ways of writing, with CDC_SEEDS=2
INTO_ICEBERG = [(name, cuts, way) for name in (*CAPTURES, "shop") for cuts in (1, 3, 12) for way in WAYS]


@pytest.mark.parametrize(("name", "batches", "kind"), INTO_ICEBERG if ALL else [("public-a-restart", 3, "iceberg")])
def test_capture_gives_the_same_tables_in_a_catalog(
    name: str, batches: int, kind: str, captured, tmp_path: Path
) -> None:
    both = []
    for each in ("delta", kind):
        root = tmp_path / each.replace(" ", "-")
        root.mkdir()
        lake = Lake(root, captured(name).bootstrap, schema_topic(name), options=stated(name), kind=each)
        for ends in random_cuts(full_ends(records(name)), batches, seed=batches):
            lake.sync_to(ends)
        both.append(lake)
    delta, catalog = ({state.table_id: (state.state, state.reason) for state in lake.states.values()} for lake in both)
    assert delta == catalog
    compare(name, both[1], folder(name) / "source_final.jsonl.xz")


MODES = ("soft_delete", "history", "append")
KEY_CAME_LATER = {"pk5", "pk11", "pk44", "pk74", "pk86"}  # rows from before have no key to be known by
IN_MODES = [(name, cuts, mode, kind) for name, cuts, kind in INTO_ICEBERG for mode in MODES]


@pytest.mark.parametrize(
    ("name", "batches", "mode", "kind"),
    IN_MODES if ALL else [("public-c", 3, "history", "delta")],
)
def test_capture_has_the_rows_of_the_source_in_each_mode(
    name: str, batches: int, mode: str, kind: str, captured, tmp_path: Path
) -> None:
    truth = [table for table in load(folder(name) / "source_final.jsonl.xz") if table.database != "opaque"]
    lake = ModedLake(tmp_path, captured(name).bootstrap, schema_topic(name), options=stated(name), kind=kind)
    lake.mode, lake.tables = mode, {"*.*": {"mode": mode}}
    lake.keys = {(table.database, table.table): table.key for table in truth}
    for ends in random_cuts(full_ends(records(name)), batches, seed=batches):
        lake.sync_to(ends)
    excused = differences(folder(name) / "differences.jsonl.xz")
    wrong = [text for table in truth if not _is_refused(lake, table) for text in problems(name, lake, table, excused)]
    assert not wrong, "\n".join(wrong[:20])
    assert sum(_is_refused(lake, table) for table in truth) < len(truth) / 4


def _is_refused(lake: ModedLake, table: SourceTable) -> bool:
    """Return whether a table cannot have the mode, or its feed cannot be put together: rows without a key are in it."""
    if lake.mode == "append":
        return not table.key or table.table in KEY_CAME_LATER
    state = lake.state(table.database, table.table)
    return state is not None and "mode.needs_key" in state.reason


@pytest.mark.parametrize("name", STOPPED)
def test_capture_stopped_at_recorded_points_gives_the_content_of_that_moment(
    name: str, captured, tmp_path: Path
) -> None:
    lake = Lake(tmp_path, captured(name).bootstrap, schema_topic(name), options=stated(name))
    for truth in sorted((folder(name) / "source_at").iterdir()):
        with lzma.open(truth, "rt") as lines:
            binlog = json.loads(next(lines))
        lake.sync_to(cut_before(records(name), binlog["file"], binlog["pos"]))
        compare(name, lake, truth, moment=True)
    demand_unseen_changes(lake)
