# SPDX-License-Identifier: Apache-2.0
"""Excuse, where something explains contradictions, the kinds that it can lead to, and no other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.histories.debezium_records import ddl, row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

COLUMNS = {"id": "int", "v": "int"}
SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def changed(op: str, pos: int, key: int, before: Any, after: Any, **more: Any) -> Record:
    images = {name: None if value is None else {"id": key, "v": value} for name, value in (("b", before), ("a", after))}
    return row(op, "t", pos, images["a"], before=images["b"], key=("id",), **more)


def typed(record: Record) -> Record:
    """Return a record that names the types of its columns, for tables that only rows describe."""
    fields = [{"type": "int32", "optional": name != "id", "field": name} for name in COLUMNS]
    images = [{"type": "struct", "optional": True, "field": name, "fields": fields} for name in ("before", "after")]
    key, value = (json.loads(part or b"null") for part in (record.key, record.value))
    key = {"schema": {"type": "struct", "fields": fields[:1]}, "payload": key}
    value = {"schema": {"type": "struct", "fields": images}, "payload": value}
    return replace(record, key=json.dumps(key).encode(), value=json.dumps(value).encode())


DIFFERS, MISSING = changed("u", 900, 1, -1, 2), changed("u", 910, 9, 1, 2)
THERE = changed("c", 920, 1, None, 5)
# the second change of a transaction is not in the log
GAP = [changed("c", 930, 21, None, 1, gtid=f"{SERVER}:1", order=1, total_order=1)] + [
    changed("c", 940 + n, 30 + n, None, 1, gtid=f"{SERVER}:2", order=n, total_order=n) for n in (1, 3)
]


def script_of(log: Log, root: Path, *first: Record, **settings: Any) -> Script:
    """Return a pipeline that has synced a table with one row, and some records behind it."""
    script = Script(log, root, **settings)
    create = ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT)", 100, table="t", columns=COLUMNS, key=("id",))
    script.send(*([create] if script.schema_topic else []), *sent(script, changed("c", 110, 1, None, 1), *first))
    script.sync()
    assert [state.state for state in script.states.values()] == ["ok"]
    return script


def sent(script: Script, *records: Record) -> list[Record]:
    return list(records) if script.schema_topic else [typed(record) for record in records]


def truncated(log: Log, root: Path) -> Script:
    return script_of(log, root, policy={"on_truncate": "ignore"})


def left_out(log: Log, root: Path) -> Script:
    return script_of(log, root, changed("c", 120, 3, None, "x"), policy={"quarantine_limit": 1})


def without_create(log: Log, root: Path) -> Script:
    return script_of(log, root, schema_topic=None)


@pytest.mark.parametrize(
    ("begun", "excused", "parking"),
    [
        (truncated, THERE, [DIFFERS, MISSING, GAP]),
        (left_out, THERE, [GAP]),
        (left_out, DIFFERS, []),
        (left_out, MISSING, []),
        (without_create, MISSING, [DIFFERS, GAP]),
    ],
)
def test_a_reason_excuses_the_kinds_that_it_can_lead_to(
    log: Log, tmp_path: Path, begun: Any, excused: Record, parking: list[Any]
) -> None:
    for number, records in enumerate([excused, *parking]):
        log.partitions.clear()
        script = begun(log, tmp_path / str(number))
        script.send(*sent(script, *(records if isinstance(records, list) else [records])))
        (line,) = script.sync().tables
        (state,) = script.states.values()
        assert line.contradictions
        assert state.code == ("apply.contradicted" if number else "")


def test_a_log_whose_partitions_may_begin_apart_excuses_all_kinds(log: Log, tmp_path: Path) -> None:
    script = script_of(log, tmp_path, changed("c", 120, 3, None, 1, partition=1), schema_topic=None)
    later = [changed("c", 990 + n, 4 + n, None, 1, partition=n) for n in (0, 1)]
    script.send(*sent(script, DIFFERS, *later))
    (line,) = script.sync().tables
    assert line.contradictions == {"row_differs": 1}
    assert [state.state for state in script.states.values()] == ["ok"]


def test_the_first_contradiction_that_nothing_explains_is_named(log: Log, tmp_path: Path) -> None:
    script = without_create(log, tmp_path)
    script.send(*sent(script, *(changed("u", 200 + key, key, 1, 2) for key in range(50, 80)), DIFFERS))
    (line,) = script.sync().tables
    (state,) = script.states.values()
    assert line.contradictions == {"key_missing": 30, "row_differs": 1}
    assert "first in column v (1 such changes" in state.reason
