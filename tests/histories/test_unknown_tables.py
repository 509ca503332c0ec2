# SPDX-License-Identifier: Apache-2.0
"""Begin tables whose rows the log does not have, and make them known again; in one format of each kind."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_cdc.core.documents import Rebuild
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.renamed_tables import FILLED, GHOST, T, W, create, demand_parked, put, run, said, swap
from tests.histories.scripted import Script
from tests.histories.stories import PREFIX, START_MS, STEP_MS, Put, Said, Story, ending, messages, script_of

pytestmark = pytest.mark.every(2)
FORMATS = ("debezium-json", "canal-json", "drs-json", "oms-default")
UNKNOWN = [*FILLED, *swap("_orders_del", "_orders_gho"), put("orders", 3, W, w=5)]


def script_with(format: str, log: Log, lake: Path, story: Story) -> Script:
    script = script_of(format, log, lake)
    send(script, story)
    return script


def send(script: Script, story: Story, after: Story = ()) -> None:
    """Sync a story as one batch.

    :param after: what was sent before it.
    """
    whole = messages(script.format, [*after, *story])
    known = len(messages(script.format, after)) if after else 0
    for time, message in whole[known:]:
        script.send(Record(f"{PREFIX}.{message.topic}", 0, time, message.key, message.value, message.headers))
    script.sync()


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE shop._orders_new RENAME TO shop.orders",
        "ALTER TABLE shop._orders_new RENAME shop.orders",
        "RENAME TABLE other.orders TO shop.orders",
        "RENAME TABLE other.orders TO shop.orders, shop.nobody TO shop.no_one",
    ],
)
def test_a_table_that_comes_from_outside_the_log(format: str, statement: str, log: Log, lake: Path) -> None:
    away = said("ALTER TABLE shop.orders RENAME TO shop.gone", "gone", T)
    outcome = run(format, [*FILLED, away, said(statement, "orders", T), put("orders", 3)], log, lake)
    demand_parked(outcome, "orders", "rebuild")
    assert outcome["gone"][::2] == ("ok", Counter([(1, "x"), (2, "x")]))
    assert outcome.keys() == {"orders", "gone"}


@pytest.mark.parametrize("format", FORMATS)
def test_a_dropped_table_whose_name_an_uncaptured_copy_takes(format: str, log: Log, lake: Path) -> None:
    """As pt-online-schema-change does with drop_swap."""
    made = said("CREATE TABLE shop._orders_new LIKE shop.orders", "_orders_new", T)
    taken = said("RENAME TABLE shop._orders_new TO shop.orders", "orders", T)
    story = [*FILLED, made, said("DROP TABLE shop.orders", "orders"), taken, put("orders", 3)]
    demand_parked(run(format, story, log, lake), "orders", "capture `_orders_new`, then rebuild")


@pytest.mark.parametrize("format", FORMATS)
def test_a_copy_of_a_table_that_never_had_a_row(format: str, log: Log, lake: Path) -> None:
    gho = "_orders_gho"
    made = said(f"CREATE TABLE shop.{gho} LIKE shop.orders", gho, T), said(f"ALTER TABLE shop.{gho} ADD w INT", gho, W)
    story = [create("orders"), *made, *swap("_orders_del", gho), put("orders", 3, W, w=5)]
    outcome = run(format, story, log, lake)
    assert outcome["orders"][::2] == ("ok", Counter([(3, "x", 5)])), outcome


@pytest.mark.parametrize("format", FORMATS)
def test_a_copy_of_a_table_that_was_truncated(format: str, log: Log, lake: Path) -> None:
    gho = "_orders_gho"
    made = said(f"CREATE TABLE shop.{gho} LIKE shop.orders", gho, T), said(f"ALTER TABLE shop.{gho} ADD w INT", gho, W)
    emptied = said("TRUNCATE TABLE shop.orders", "orders", T)
    outcome = run(format, [*FILLED, emptied, *made, *swap("_orders_del", gho), put("orders", 3, W, w=5)], log, lake)
    assert outcome["orders"][::2] == ("ok", Counter([(3, "x", 5)])), outcome


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("story", [UNKNOWN, [*FILLED, said("DROP TABLE shop.orders", "orders"), put("orders", 3)]])
@pytest.mark.parametrize("ended", ["truncated", "created"])
def test_what_makes_a_table_known_again(format: str, ended: str, story: Story, log: Log, lake: Path) -> None:
    columns = W if story is UNKNOWN else T
    row = put("orders", 7, columns, **({"w": 1} if columns == W else {}))
    if ended == "created":
        again: list[Said | Put] = [said("DROP TABLE IF EXISTS shop.orders", "orders"), create("orders", columns), row]
    elif story is UNKNOWN and format != "oms-default":  # its rows do not show types
        again = [said("TRUNCATE TABLE shop.orders", "orders", columns), row]
    else:
        pytest.skip("of a table that no statement shows TRUNCATE shows no columns")
    outcome = run(format, [*story, *again], log, lake)
    state, reason, rows = outcome["orders"]
    assert (state, rows) == ("ok", Counter([tuple((row.row or {}).values())])), reason


@pytest.mark.parametrize("format", ["debezium-json", "canal-protobuf"])
def test_files_make_a_table_from_outside_the_log_known(format: str, log: Log, lake: Path, tmp_path: Path) -> None:
    script = script_with(format, log, lake, UNKNOWN)
    demand_parked(ending(script), "orders")
    files = pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["x", "x"], "w": pa.array([None, None], pa.int32())})
    pq.write_table(files, tmp_path / "orders.parquet")
    since = (START_MS + STEP_MS * len(UNKNOWN) - STEP_MS // 2) * 1000
    (line,) = script.sync(rebuild=Rebuild.of(["shop.orders"], str(tmp_path / "orders.parquet"), since)).tables
    assert line.status == "committed", line.reason
    send(script, [put("orders", 4, W, w=6)], after=UNKNOWN)
    state, reason, rows = ending(script)["orders"]
    expected = Counter([(1, "x", None), (2, "x", None), (3, "x", 5), (4, "x", 6)])
    assert (state, rows) == ("ok", expected), reason


@pytest.mark.parametrize("format", FORMATS)
def test_a_rename_that_finds_no_table_has_no_effect(format: str, log: Log, lake: Path) -> None:
    absent = said("RENAME TABLE IF EXISTS shop.nobody TO shop.orders", "orders", T)
    outcome = run(format, [*FILLED, absent, put("orders", 3)], log, lake)
    assert outcome["orders"][::2] == ("ok", Counter([(1, "x"), (2, "x"), (3, "x")])), outcome


@pytest.mark.parametrize("format", FORMATS)
def test_a_statement_that_is_not_understood_names_a_table_that_never_comes(format: str, log: Log, lake: Path) -> None:
    """No table is in a list that nobody has seen a row of."""
    odd = Said("FROBNICATE TABLE shop.nothing TO shop.void", "nothing", "")
    outcome = run(format, [*FILLED, odd, put("orders", 3)], log, lake)
    assert outcome.keys() == {"orders"}
    assert outcome["orders"][0] == "ok"


@pytest.mark.parametrize("format", FORMATS)
def test_a_view_that_is_renamed_is_no_table(format: str, log: Log, lake: Path) -> None:
    renamed = Said("RENAME TABLE shop.v1 TO shop.v2", "v2", "")
    outcome = run(format, [*FILLED, renamed, put("orders", 3)], log, lake)
    assert outcome.keys() == {"orders"}


@pytest.mark.parametrize("format", FORMATS)
def test_the_helper_that_comes_a_batch_late(format: str, log: Log, lake: Path) -> None:
    """Its rows are on another partition, which is read later."""
    gho = "_orders_gho"
    made = said(f"CREATE TABLE shop.{gho} LIKE shop.orders", gho, T), said(f"ALTER TABLE shop.{gho} ADD w INT", gho, W)
    story = [*FILLED, *made, put(gho, 1, W, w=None), said(GHOST, "orders", W), put("orders", 3, W, w=5)]
    script = script_of(format, log, lake)
    late = []
    for time, message in messages(format, story):
        is_late = b"_orders_gho" in (message.value or b"") and b"ALTER" not in (message.value or b"")
        is_late = is_late and b"CREATE" not in message.value and b"RENAME" not in message.value
        record = Record(f"{PREFIX}.{message.topic}", int(is_late), time, message.key, message.value, message.headers)
        (late.append if is_late else script.send)(record)
    assert late
    script.sync()
    demand_parked(ending(script), "orders", "gh-ost")
    script.send(*late)
    script.sync()
    state, reason, rows = ending(script)["orders"]
    assert (state, rows) == ("ok", Counter([(1, "x", None), (3, "x", 5)])), reason


@pytest.mark.parametrize("format", FORMATS)
def test_a_second_migration_of_a_table_whose_rows_are_unknown(format: str, log: Log, lake: Path) -> None:
    gho = "_orders_gho"
    made = said(f"CREATE TABLE shop.{gho} LIKE shop.orders", gho, T), said(f"ALTER TABLE shop.{gho} ADD w INT", gho, W)
    again = said(f"CREATE TABLE shop.{gho} LIKE shop.orders", gho, W)
    dropped = said("DROP TABLE shop._orders_del", "_orders_del")
    story = [*FILLED, *made, *swap("_orders_del", gho), dropped, again, *swap("_orders_del", gho)]
    demand_parked(run(format, story, log, lake), "orders", "gh-ost")
