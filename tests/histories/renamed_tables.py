# SPDX-License-Identifier: Apache-2.0
"""Write stories of tables whose rows came without records, and check how they end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.histories.log import Log
from tests.histories.stories import Outcome, Put, Said, Story, outcomes

T = "(id INT NOT NULL PRIMARY KEY, v VARCHAR(20))"
W = "(id INT NOT NULL PRIMARY KEY, v VARCHAR(20), w INT)"


def create(table: str, columns: str = T) -> Said:
    text = f"CREATE TABLE {table} {columns}"
    return Said(f"CREATE TABLE shop.{table} {columns}", table, text)


def put(table: str, key: int, columns: str = T, **more: Any) -> Put:
    return Put(table, f"CREATE TABLE {table} {columns}", {"id": key, "v": "x", **more})


def said(statement: str, table: str, columns: str = "") -> Said:
    kind = "CREATE" if statement.startswith(("FLASHBACK", "RECOVER")) else None  # so TiCDC calls them
    return Said(statement, table, f"CREATE TABLE {table} {columns}" if columns else "", kind)


def run(format: str, story: Story, log: Log, lake: Path, **pipeline: Any) -> Outcome:
    """Return how a story ends, which must be the same at each cut; reasons may differ."""
    every = outcomes(format, story, log, lake, **pipeline)
    whole = next(iter(every.values()))
    plain = {cut: {name: (state, rows) for name, (state, _, rows) in one.items()} for cut, one in every.items()}
    states = {cut: {name: state for name, (state, _) in one.items()} for cut, one in plain.items()}
    different = {cut: one for cut, one in states.items() if one != {name: end[0] for name, end in whole.items()}}
    assert not different, f"{different} not {whole}"
    for one in plain.values():
        for name, (state, rows) in one.items():
            assert state != "ok" or rows == whole[name][2], (name, plain)
    return whole


def demand_parked(outcome: Outcome, table: str, *words: str) -> None:
    state, reason, _ = outcome.get(table, ("in no list", "", None))
    assert state == "parked", outcome
    assert reason.startswith("needs rebuild: ")
    for word in words:
        assert word in reason


FILLED = (create("orders"), put("orders", 1), put("orders", 2))
SWAP = "RENAME TABLE shop.orders TO shop.{old}, shop.{new} TO shop.orders"
GHOST = SWAP.format(old="_orders_del", new="_orders_gho")


def swap(old: str, new: str, columns: str = W) -> list[Said]:
    return [said(SWAP.format(old=old, new=new), "orders", columns)]
