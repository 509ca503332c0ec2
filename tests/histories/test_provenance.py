# SPDX-License-Identifier: Apache-2.0
"""A table is well only if all of its rows came from records, wherever batches end, in each format that carries DDL.

What is expected is what the source holds: rows that came without records (a helper table that is not captured, a table
that was brought back) are in no log, so the table is parked.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.histories.log import Log
from tests.histories.renamed_tables import FILLED, T, W, demand_parked, put, run, said, swap
from tests.histories.stories import Said
from tests.sample import ALL

# one of each way to state DDL and rows; CDC_SEEDS=2 runs all that carry DDL
FORMATS = ("debezium-json", "canal-json", "canal-protobuf", "dts-protobuf", "drs-json", "oms-dataworks")
if ALL:
    FORMATS += ("drs-json-c", "drs-avro", "oms-default", "oms-default-extended", "dtle-json")

pytestmark = pytest.mark.every(2)


def halves(old: str, new: str, columns: str = W) -> list[Said]:
    """Return a RENAME as Debezium writes it, and as some do it: one statement for each pair."""
    return [
        said(f"RENAME TABLE shop.orders TO shop.{old}", old, T),
        said(f"RENAME TABLE shop.{new} TO shop.orders", "orders", columns),
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("way", [swap, halves])
def test_a_helper_that_the_log_never_showed(format: str, way: Any, log: Log, lake: Path) -> None:
    outcome = run(format, [*FILLED, *way("_orders_del", "_orders_gho"), put("orders", 3, W, w=5)], log, lake)
    demand_parked(outcome, "orders", "the helper table of gh-ost is not captured: capture `_orders_gho`, then rebuild")
    state, _, rows = outcome["_orders_del"]
    assert (state, rows) == ("ok", Counter([(1, "x"), (2, "x")]))


@pytest.mark.parametrize("format", FORMATS)
def test_only_the_second_half_of_a_rename_arrives(format: str, log: Log, lake: Path) -> None:
    half = halves("_orders_del", "_orders_gho")[1]
    outcome = run(format, [*FILLED, half, put("orders", 3, W, w=5)], log, lake)
    assert outcome["orders"][0] in ("parked", "waiting")


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("way", [swap, halves])
@pytest.mark.parametrize(
    ("old", "new", "tool"),
    [
        ("_orders_del", "_orders_gho", "gh-ost"),
        ("_orders_old", "_orders_new", "pt-online-schema-change"),
        ("orders_2024", "orders_copy", "capture `orders_copy`"),
    ],
)
def test_a_helper_whose_statements_alone_are_in_the_log(
    format: str, way: Any, old: str, new: str, tool: str, log: Log, lake: Path
) -> None:
    """Debezium writes the statements of all tables of a database, and rows of those that it captures."""
    made = said(f"CREATE TABLE shop.{new} LIKE shop.orders", new, T), said(f"ALTER TABLE shop.{new} ADD w INT", new, W)
    outcome = run(format, [*FILLED, *made, *way(old, new), put("orders", 3, W, w=5)], log, lake)
    demand_parked(outcome, "orders", tool)


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("way", [swap, halves])
def test_a_helper_that_is_captured(format: str, way: Any, log: Log, lake: Path) -> None:
    gho = "_orders_gho"
    made = said(f"CREATE TABLE shop.{gho} LIKE shop.orders", gho, T), said(f"ALTER TABLE shop.{gho} ADD w INT", gho, W)
    copied = put(gho, 1, W, w=None), put(gho, 2, W, w=None)
    story = [*FILLED, *made, *copied, *way("_orders_del", gho), put("orders", 3, W, w=5)]
    outcome = run(format, story, log, lake)
    state, _, rows = outcome["orders"]
    assert (state, rows) == ("ok", Counter([(1, "x", None), (2, "x", None), (3, "x", 5)])), outcome


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("way", [swap, halves])
def test_a_log_is_rotated(format: str, way: Any, log: Log, lake: Path) -> None:
    made = said("CREATE TABLE shop.orders_new LIKE shop.orders", "orders_new", T)
    story = [*FILLED, made, *way("orders_old", "orders_new", T), put("orders", 3)]
    outcome = run(format, story, log, lake)
    assert [outcome[name][0] for name in ("orders", "orders_old")] == ["ok", "ok"], outcome
    assert outcome["orders"][2] == Counter([(3, "x")])


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "freed", [said("DROP TABLE shop.orders", "orders"), said("RENAME TABLE shop.orders TO shop.o2", "o2", T)]
)
def test_rows_of_a_freed_name_go_on(format: str, freed: Said, log: Log, lake: Path) -> None:
    outcome = run(format, [*FILLED, freed, put("orders", 3), put("orders", 4)], log, lake)
    assert outcome["orders"][0] in ("parked", "waiting"), outcome
    assert "CREATE TABLE" in outcome["orders"][1]


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "back",
    [
        "RECOVER TABLE shop.orders",
        "RECOVER TABLE BY JOB 53",
        "FLASHBACK TABLE shop.orders",
        "FLASHBACK DATABASE shop",
        "FLASHBACK TABLE shop.orders TO BEFORE DROP",
        "CREATE TABLE shop.orders FROBNICATE (id INT)",
    ],
)
def test_a_dropped_table_that_is_brought_back(format: str, back: str, log: Log, lake: Path) -> None:
    drop = "DROP DATABASE shop" if "DATABASE" in back else "DROP TABLE shop.orders"
    story = [*FILLED, said(drop, "orders"), said(back, "orders", T), put("orders", 3)]
    demand_parked(run(format, story, log, lake), "orders")


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("back", ["FLASHBACK TABLE shop.orders TO o2", "FLASHBACK TABLE shop.orders TO o2;"])
def test_a_truncated_table_that_comes_back_next_to_itself(format: str, back: str, log: Log, lake: Path) -> None:
    story = [*FILLED, said("TRUNCATE TABLE shop.orders", "orders", T), said(back, "o2", T), put("o2", 2)]
    outcome = run(format, story, log, lake)
    assert outcome["orders"][0] == "ok", outcome
    assert not outcome["orders"][2]
    demand_parked(outcome, "o2", "FLASHBACK TABLE brings rows back without row events")
