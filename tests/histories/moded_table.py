# SPDX-License-Identifier: Apache-2.0
"""Write the records of one small table, and read them in two batches: for tests of the modes of tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tests.histories.debezium_records import ddl, row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

OWN_COLUMNS = {
    "mirror": [],
    "soft_delete": ["_cdc_deleted", "_cdc_deleted_at"],
    "append": ["_cdc_op", "_cdc_position", "_cdc_time"],
    "history": ["_cdc_valid_from", "_cdc_valid_to", "_cdc_from_position", "_cdc_to_position", "_cdc_current"],
}
"""Columns that each mode adds, behind the others."""
CREATE = "CREATE TABLE shop.t (id int NOT NULL, v varchar(20), PRIMARY KEY (id))"


def put(pos: int, key: int, v: str | None, was: str | None = None, **more: Any) -> Record:
    """Return the record of a row that is inserted, or updated where it had a value before."""
    before = None if was is None else {"id": key, "v": was}
    return row("c" if was is None else "u", "t", pos, {"id": key, "v": v, **more}, before=before, key=("id",), time=pos)


def gone(pos: int, key: int, v: str | None, **more: Any) -> Record:
    return row("d", "t", pos, None, before={"id": key, "v": v, **more}, key=("id",), time=pos)


def statement(text: str, pos: int) -> Record:
    return ddl(text, pos, time=pos)


def snapshot(pos: int, rows: dict[int, str], columns: dict[str, str] | None = None, **more: Any) -> list[Record]:
    """Return a full snapshot: the two statements that describe the table, and its rows.

    :param more: further values of each row.
    """
    described = {"t": (columns or {"id": "int", "v": "varchar"}, ("id",))}
    images = [{"id": key, "v": v, **more} for key, v in rows.items()]
    read = [row("r", "t", pos, image, key=("id",), mark="true", time=pos) for image in images]
    statements = [one for one in snapshot_ddl(pos, described, time=pos) if b" TABLE " in (one.value or b"")]
    return [*statements, *read]


def at(pos: int | None) -> datetime | None:
    """Return the source's time of a record: its position in milliseconds."""
    return None if pos is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=pos)


def synced(log: Log, lake: Path, records: list[Record], cut: int, rule: dict[str, Any]) -> Script:
    """Return a pipeline that read a log in two batches, the first up to a record."""
    script = Script(log, lake, tables={"shop.t": rule})
    for some in (records[:cut], records[cut:]):
        if some:
            script.send(*some)
            script.sync()
    return script


def at_each_cut(log: Log, lake: Path, records: list[Record], rule: dict[str, Any]) -> Iterator[Script]:
    """Yield a pipeline that read a log in two batches, for each place at which the first may end."""
    for cut in range(len(records)):
        yield synced(log, lake / str(cut), records, cut, rule)
        log.partitions.clear()


def truncated(pos: int) -> Record:
    return statement("TRUNCATE TABLE shop.t", pos)


BEGIN = [statement(CREATE, 10), put(20, 1, "a"), put(30, 2, "b")]


def _millis(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


def versions_of(script: Script) -> list[tuple[Any, ...]]:
    """Return the other columns, begin, end (milliseconds) of each version, by begin; the table is as it should be."""
    assert script.states_of("shop", "t") == ["ok"], [state.reason for state in script.states.values()]
    own, table = OWN_COLUMNS["history"], DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table()
    table = table.sort_by("_cdc_from_position")
    assert table.column_names[-5:] == own
    versions = []
    for each in table.to_pylist():
        begin, end, begins, ends, current = (each.pop(name) for name in own)
        assert current == (end is None) == (ends is None)
        assert begins is not None and (ends is None or begins < ends)
        versions.append((*each.values(), _millis(begin), _millis(end)))
    return versions
