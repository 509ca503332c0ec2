# SPDX-License-Identifier: Apache-2.0
"""When a watcher rings: once for each reason, also over restarts, and again for reasons that last."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.plan.lag import Lag, PartitionLag
from airflow_provider_cdc.watch.bells import Bell, LagBell, LogEnds, NewRecordsBell, ParkedBell
from airflow_provider_cdc.watch.health import Health


def ends(end: int, applied: int = 0) -> LogEnds:
    return LogEnds({"t": {0: end}}, {"t": {0: applied}})


def restarted(bell: Bell[Any], fresh: Bell[Any]) -> Bell[Any]:
    """Return a bell with the memory of another, as another process reads it."""
    fresh.memory = json.loads(json.dumps(bell.memory))
    return fresh


def new_records(**arguments: float) -> NewRecordsBell:
    defaults: dict[str, Any] = {"min_records": 1, "quiet": 30, "at_most_every": 60, "again_after": 3600}
    return NewRecordsBell(**{**defaults, **arguments})


def rings(bell: Bell[Any], looks: list[tuple[float, Any]]) -> list[float]:
    return [at for at, reading in looks if bell.ring(reading, at) is not None]


# ---- new records


def test_it_rings_once_the_log_is_quiet() -> None:
    looks = [(0.0, ends(0)), (10.0, ends(5)), (20.0, ends(9)), *((20.0 + 10 * n, ends(9)) for n in range(1, 100))]
    bell = new_records()
    assert rings(bell, looks) == [50.0]
    assert bell.memory["ends"] == {"t": {"0": 9}}


def test_records_that_go_on_arriving_ring_all_the_same() -> None:
    assert rings(new_records(), [(10.0 * n, ends(n)) for n in range(1, 31)]) == [70.0, 140.0, 210.0, 280.0]


def test_few_records_and_applied_records_stay_silent() -> None:
    assert rings(new_records(min_records=10), [(60.0 * n, ends(9)) for n in range(10)]) == []
    assert rings(new_records(), [(60.0 * n, ends(9, applied=9)) for n in range(10)]) == []


def test_records_that_are_still_not_applied_ring_again() -> None:
    assert rings(new_records(), [(60.0 * n, ends(9)) for n in range(150)]) == [60.0, 3660.0, 7260.0]


def test_a_restart_rings_nothing_twice() -> None:
    bell = new_records()
    assert rings(bell, [(0, ends(9)), (40, ends(9))]) == [40]
    again = restarted(bell, new_records())
    assert rings(again, [(60, ends(9)), (200, ends(9))]) == []
    assert rings(again, [(210, ends(10)), (240, ends(10))]) == [240]


@pytest.mark.parametrize("seed", range(50))
def test_every_record_is_rung_for_and_never_too_often(seed: int) -> None:
    dice, end, applied, last, bell = random.Random(seed), 0, 0, -1e9, new_records(quiet=20, at_most_every=50)
    covered = 0
    for second in range(0, 3000, 5):
        end += dice.choice([0, 0, 0, 1, 7])
        if dice.random() < 0.05:
            applied = dice.randint(applied, end)
        if dice.random() < 0.02:
            restored = restarted(bell, new_records(quiet=20, at_most_every=50))
            assert isinstance(restored, NewRecordsBell)
            bell = restored
        if bell.ring(ends(end, applied), second) is not None:
            assert second - last >= 50
            last, covered = second, end
    for second in range(3000, 3200, 5):
        covered = end if bell.ring(ends(end, applied), second) is not None else covered
    assert max(covered, applied) == end


# ---- lag


def behind(seconds: float | None) -> Lag:
    known = None if seconds is None else 10_000_000 - int(seconds * 1000)
    return Lag(10_000_000, (PartitionLag("t", 0, 1 if seconds else 0, known, known, known, "?"),), heartbeats=False)


def test_a_lag_rings_when_it_goes_above_and_again_while_it_stays() -> None:
    bell = LagBell(60, None, again_after=3600)
    looks = [(600.0 * n, behind(99)) for n in range(13)]
    assert rings(bell, [(-600.0, behind(1)), *looks]) == [0.0, 3600.0, 7200.0]
    assert rings(bell, [(7300, behind(1)), (7400, behind(99))]) == [7400], "it was below in between"


def test_an_unknown_lag_neither_rings_nor_ends_a_reason() -> None:
    bell = LagBell(60, None, again_after=3600)
    assert rings(bell, [(0, behind(99)), (60, behind(None)), (120, behind(99))]) == [0]


def test_a_lag_must_stay_above_for_some_looks() -> None:
    bell = LagBell(60, None, again_after=3600, for_looks=3)
    looks = [behind(99), behind(99), behind(1), behind(99), behind(99), behind(99)]
    assert rings(bell, list(enumerate(looks))) == [5]


def test_a_restart_does_not_repeat_an_alarm() -> None:
    bell = LagBell(60, None, again_after=3600)
    assert rings(bell, [(0, behind(99))]) == [0]
    assert rings(restarted(bell, LagBell(60, None, again_after=3600)), [(60, behind(99)), (3600, behind(99))]) == [3600]


# ---- parked tables


def health(**reasons: str) -> Health:
    tables = {
        f"shop.{name}": TableState(name, "shop", name, "/x", state=TableStatus.PARKED, reason=reason)
        for name, reason in reasons.items()
    }
    return Health({**tables, "shop.fine": TableState("fine", "shop", "fine", "/x")}, 3, 0)


def test_each_parked_table_rings_once_and_again_when_it_comes_back() -> None:
    bell = ParkedBell()
    payloads = []
    for reading in (health(), health(a="x"), health(a="x"), health(a="x", b="y"), health(b="z"), health(a="x", b="z")):
        bell = restarted(bell, ParkedBell())  # type: ignore[assignment]
        payload = bell.ring(reading, 0)
        payloads.append(None if payload is None else [table["table"] for table in payload["tables"]])
    assert payloads == [None, ["shop.a"], None, ["shop.b"], ["shop.b"], ["shop.a"]]
