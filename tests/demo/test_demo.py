# SPDX-License-Identifier: Apache-2.0
"""The demo without Spark: every table equals the database after every run, and what differs would be seen."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_cdc.batch.result import table_states
from airflow_provider_cdc.demo.report import shown
from airflow_provider_cdc.demo.screen import DemoScreen
from airflow_provider_cdc.demo.shop_log import ShopLog
from airflow_provider_cdc.ledger import Ledger
from tests.airflow.shop import demand_data
from tests.demo.check import compare
from tests.demo.story import Demo
from tests.sample import ALL
from tests.sinks.kinds import sink_of

pytestmark = [pytest.mark.airflow, pytest.mark.system]

HOURS = range(7) if ALL else (0, 4)


@pytest.fixture(scope="module", params=["delta", *(["iceberg"] if ALL else [])])
def ran(request: pytest.FixtureRequest) -> Iterator[tuple[Demo, str, Path]]:
    demand_data()
    out = io.StringIO()
    demo = Demo(DemoScreen(out), "inline", keep=True, sink=request.param, hours=HOURS)
    try:
        demo.run()
        assert demo.folder is not None
        yield demo, out.getvalue(), demo.folder
    finally:
        if demo.folder is not None:
            shutil.rmtree(demo.folder, ignore_errors=True)


def test_every_table_equals_the_database_after_every_run(ran: tuple[Demo, str, Path]) -> None:
    demo, out, _ = ran
    assert [verdict.problems for verdict in demo.verdicts if not verdict.complete] == []
    assert [verdict.equal for verdict in demo.verdicts] == [(8, 8, 8, 8, 9, 9, 9)[hour] for hour in HOURS]
    rows = 491, 1818, 3289, 4781, 6329, 7561, 5576
    assert [verdict.rows for verdict in demo.verdicts] == [rows[hour] for hour in HOURS]
    assert "ALTER TABLE addresses DROP COLUMN fax" in out


def test_another_moment_would_differ(ran: tuple[Demo, str, Path]) -> None:
    demo, _, folder = ran
    states = table_states(Ledger(f"sqlite:///{folder / 'ledger.db'}"), "shop").values()
    verdict = compare(
        folder / "lake", ShopLog().phases[HOURS[-1] - 1].truth, states, sink_of(demo.sink, folder / "lake")
    )
    assert not verdict.complete
    assert verdict.equal < len(verdict.problems)
    assert verdict.problems["shop.orders"]


def test_a_table_the_database_lacks_or_that_is_parked_differs(ran: tuple[Demo, str, Path]) -> None:
    demo, _, folder = ran
    states = list(table_states(Ledger(f"sqlite:///{folder / 'ledger.db'}"), "shop").values())
    states = [replace(state, state="parked") if state.table == "orders" else state for state in states]
    extra = replace(states[0], table="ghost", state="ok", reason="")
    verdict = compare(
        folder / "lake", ShopLog().phases[HOURS[-1]].truth, [*states, extra], sink_of(demo.sink, folder / "lake")
    )
    assert {name for name, actual in verdict.problems.items() if actual} == {"shop.orders", "shop.ghost"}


def test_many_statements_are_counted() -> None:
    assert shown(["SET x=1", "ALTER  TABLE a\nADD b INT"]) == ["ALTER TABLE a ADD b INT"]
    assert shown(["DROP TABLE a"] * 9 + ["CREATE TABLE b (c INT)"]) == ["9 × DROP TABLE, 1 × CREATE TABLE"]
