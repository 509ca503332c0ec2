# SPDX-License-Identifier: Apache-2.0
"""Stop one table alone, with a reason, whatever somebody does to it, or a disk to one of its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, TableFeatures

from tests.histories.debezium_records import ddl, row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

COLUMNS = {"id": "int", "v": "int"}
KEY = ("id",)


def _file(table: Path) -> Path:
    (file,) = table.glob("*.parquet")
    return file


def _emptied(table: Path) -> None:
    _file(table).write_bytes(b"")


def _cut(table: Path) -> None:
    _file(table).write_bytes(_file(table).read_bytes()[:200])


def _flipped(table: Path) -> None:
    content = bytearray(_file(table).read_bytes())
    content[20] ^= 0x10
    _file(table).write_bytes(bytes(content))


def _footer_flipped(table: Path) -> None:
    content = bytearray(_file(table).read_bytes())
    content[-8] ^= 0x08  # its length
    _file(table).write_bytes(bytes(content))


def _other_bytes(table: Path) -> None:
    _file(table).write_bytes(b"x" * _file(table).stat().st_size)


def _folder(table: Path) -> None:
    file = _file(table)
    file.unlink()
    file.mkdir()


def _gone(table: Path) -> None:
    _file(table).unlink()


def _append_only(table: Path) -> None:
    DeltaTable(str(table)).alter.set_table_properties({"delta.appendOnly": "true"})


def _row_tracking(table: Path) -> None:
    DeltaTable(str(table)).alter.add_feature(TableFeatures.RowTracking, allow_protocol_versions_increase=True)


DONE: dict[str, tuple[Callable[[Path], None], str]] = {
    "an empty file": (_emptied, "has 0 bytes"),
    "half of a file": (_cut, "has 200 bytes"),
    "a flipped bit in a page": (_flipped, "other bytes than were written"),
    "a flipped byte in the footer": (_footer_flipped, ""),
    "other bytes": (_other_bytes, ""),
    "a folder in place of the file": (_folder, "is a folder"),
    "no file": (_gone, "missing"),
    "append only": (_append_only, "delta.appendOnly = true"),
    "a feature that delta-rs does not write": (_row_tracking, "RowTracking"),
}


FIRST, SECOND = {"id": 1, "v": 1}, {"id": 1, "v": 2}
CHANGES: dict[str, tuple[tuple[str, ...], list[Record]]] = {
    "an update by key": (KEY, [row("u", "t", 210, SECOND, before=FIRST, key=KEY)]),
    "an update without key": ((), [row("u", "t", 210, SECOND, before=FIRST)]),
    "a new layout": (KEY, [ddl("ALTER TABLE t ADD COLUMN w INT NOT NULL DEFAULT 7", 210, table="t")]),
    "a new layout without key": ((), [ddl("ALTER TABLE t DROP COLUMN v", 210, table="t")]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("what", DONE)
def test_one_table_parks_and_the_others_go_on(what: str, change: str, log: Log, lake: Path) -> None:
    do, said = DONE[what]
    key, records = CHANGES[change]
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, key), "u": (COLUMNS, KEY)}))
    script.send(row("c", "t", 110, FIRST, key=key), row("c", "u", 120, {"id": 5, "v": 5}, key=KEY))
    script.sync()
    do(lake / "shop" / "t")
    script.send(*records, row("c", "u", 220, {"id": 6, "v": 6}, key=KEY))
    script.sync()
    assert script.rows("shop", "u") == Counter({(5, 5): 1, (6, 6): 1})
    (state,) = (state for state in script.states.values() if state.table == "t")
    assert (state.state, said in state.reason, "\n" in state.reason) == ("parked", True, False), state.reason
    assert "[sink." in state.reason


def test_a_property_that_is_unset_frees_its_table(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY)}), row("c", "t", 110, FIRST, key=KEY))
    script.sync()
    _append_only(lake / "shop" / "t")
    script.send(row("c", "t", 150, {"id": 2, "v": 2}, key=KEY))
    script.sync()
    assert script.states_of("shop", "t") == ["ok"]
    script.send(row("u", "t", 210, SECOND, before=FIRST, key=KEY))
    script.sync()
    assert script.states_of("shop", "t") == ["parked"]
    DeltaTable(str(lake / "shop" / "t")).alter.set_table_properties({"delta.appendOnly": "false"})
    script.send(row("c", "t", 300, {"id": 3, "v": 3}, key=KEY))
    script.sync()
    assert script.states_of("shop", "t") == ["ok"]
    assert script.rows("shop", "t") == Counter({(1, 2): 1, (2, 2): 1, (3, 3): 1})
