# SPDX-License-Identifier: Apache-2.0
"""Every file that other projects publish, through ``airflow-cdc decode``: as they expect, or as the verdict says."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.registry import format_names
from tests.decode_verb import Record, decoded, detected, typed
from tests.peer_fixtures.changes import Line, differences, equal, lines_of, parsed, replay
from tests.peer_fixtures.records import completed, documents, records_of
from tests.peer_fixtures.verdicts import VERDICTS, Completed, Equal, OutOfScope, Refused, State, Values

PEERS = Path(__file__).parents[2].parent / "shared" / "fixtures" / "peers"
STEPS = "paimon/paimon-flink/paimon-flink-cdc/src/test/resources/kafka/"

pytestmark = pytest.mark.skipif(not PEERS.is_dir(), reason="other projects' published files are not next to this one")


def files(kind: type) -> list[str]:
    """Return the files with a kind of verdict."""
    return [name for name, verdict in VERDICTS.items() if isinstance(verdict, kind)]


def expected(name: str) -> list[Line]:
    file = PEERS / f"{name}.expected.jsonl"
    return [parsed(line) for line in file.read_text(encoding="utf-8").splitlines()]


def refused(changes: list[dict[str, Any]]) -> list[int]:
    return [change["offset"] for change in changes if change["kind"] == "error"]


def test_every_file_has_one_verdict_and_every_verdict_its_file() -> None:
    actual = {str(file.relative_to(PEERS)) for file in PEERS.rglob("*") if file.is_file()}
    expectations = {name for name in actual if name.endswith(".expected.jsonl")}
    assert actual - expectations == VERDICTS.keys()
    with_lines = {f"{name}.expected.jsonl" for name in [*files(Equal), *files(Completed)]}
    assert with_lines <= expectations
    others = {name.removesuffix(".expected.jsonl") for name in expectations - with_lines}
    assert others <= set(files(OutOfScope))


@pytest.mark.parametrize("name", files(Equal))
def test_the_changes_are_those_expected(name: str, tmp_path: Path) -> None:
    changes = decoded(records_of(PEERS / name), VERDICTS[name].format, tmp_path)
    assert differences(list(lines_of(changes)), expected(name)) == []
    assert refused(changes) == []


@pytest.mark.parametrize("name", files(Completed))
def test_with_what_the_tool_always_writes_the_changes_are_those_expected(name: str, tmp_path: Path) -> None:
    verdict = VERDICTS[name]
    records = records_of(PEERS / name)
    published = decoded(records, verdict.format, tmp_path)
    assert refused(published) == list(range(len(records)) if verdict.refused is None else verdict.refused)
    whole = [completed(record, offset) for offset, record in enumerate(records)]
    changes = decoded(whole, verdict.format, tmp_path)
    assert differences(list(lines_of(changes)), expected(name)) == []


@pytest.mark.parametrize("name", files(Refused))
def test_records_that_cannot_be_right_are_refused(name: str, tmp_path: Path) -> None:
    records = records_of(PEERS / name)
    verdict = VERDICTS[name]
    changes = decoded(records, verdict.format, tmp_path)
    actual = [(change["offset"], change["kind"], change["error_code"]) for change in changes]
    assert actual == [(offset, "error", verdict.code) for offset in range(len(records))]


@pytest.mark.parametrize("name", files(State))
def test_replayed_by_key_the_tables_are_those_expected(name: str, tmp_path: Path) -> None:
    rows: dict[Any, Line] = {}
    for number, step in enumerate(json.loads((PEERS / name).read_text(encoding="utf-8"))["steps"]):
        if step.get("fresh"):
            rows.clear()
        for file in step["files"]:
            records = records_of(PEERS / STEPS / file)
            if isinstance(VERDICTS[STEPS + file], Completed):
                records = [completed(record, offset) for offset, record in enumerate(records)]
            changes = decoded(records, VERDICTS[name].format, tmp_path)
            assert refused(changes) == []
            replay(rows, lines_of(changes), step["pk"])
        assert holds(list(rows.values()), step["columns"], step["rows"]), f"step {number}"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, Decimal("1.0"), True),
        ("1", 1, True),
        ("1", "1.0", False),
        ("", None, False),
        (0, None, False),
        (1, True, False),
        ({"a": None}, {}, False),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, False),
    ],
)
def test_the_comparison_sees_what_differs(one: Any, other: Any, same: bool) -> None:
    assert equal(one, other) is same
    assert (differences([{"op": "delete", "row": {"c": one}}], [{"op": "delete", "row": {"c": other}}]) == []) is same


def holds(rows: list[Line], columns: list[str], content: list[list[Any]]) -> bool:
    """Say whether a table has exactly these rows; a column that a row lacks is NULL."""
    left = [[row.get(column) for column in columns] for row in rows]
    for theirs in content:
        same = next((row for row in left if all(map(cell_equal, row, theirs))), None)
        if same is None:
            return False
        left.remove(same)
    return not left and {name for row in rows for name in row} <= set(columns)


def cell_equal(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):  # Canal writes a byte as the character of that number
        return ours is not None and ours.encode("latin-1").hex() == theirs["hex"]
    return equal(ours, theirs)


@pytest.mark.parametrize("name", files(Values))
def test_what_the_tool_writes_for_a_value_is_typed_as_the_value(name: str, tmp_path: Path) -> None:
    for case in map(json.loads, documents(PEERS / name)):
        (change,) = decoded([dtle_row(case["mysql_type"], case["expect_base64"])], "dtle-json", tmp_path)
        assert parsed(change["after"]) == {"id": 1, "c": case["expect_base64"]}
        assert typed(change, "c", case["mysql_type"], "dtle-json") == value_of(case), case


def dtle_row(kind: str, token: str) -> Record:
    """Return an insert as dtle writes it, with a column of this type."""
    name, _, length = kind.rstrip(")").partition("(")
    bits = {"name": "io.debezium.data.Bits", "version": 1, "parameters": {"length": length}} if name == "bit" else {}
    number = {"type": "int32", "optional": False, "field": "id"}
    fields = [number, {"type": "bytes", "optional": True, "field": "c", **bits}]
    images = [
        {"type": "struct", "optional": True, "fields": fields, "name": "s.d.t.Value", "field": field}
        for field in ("before", "after")
    ]
    source = {"version": "0.0.1", "name": "s", "file": "b.000001", "pos": 4, "row": 0, "db": "d", "table": "t"}
    payload = {"before": None, "after": {"id": 1, "c": token}, "source": source, "op": "c", "ts_ms": 1}
    schema = {"type": "struct", "optional": False, "fields": images, "name": "s.d.t.Envelope", "version": 1}
    key = {"schema": {"type": "struct", "fields": [number], "name": "s.d.t.Key"}, "payload": {"id": 1}}
    return Record(json.dumps({"schema": schema, "payload": payload}).encode(), json.dumps(key).encode())


def value_of(case: dict[str, Any]) -> Any:
    if case["mysql_type"].startswith("bit"):
        return int(case["value"])
    return case["value"].encode().ljust(16, b"\0")  # binary(16): the server fills up with zeros


@pytest.mark.every(3)
@pytest.mark.parametrize("name", files(OutOfScope))
def test_what_is_no_format_of_the_product_is_taken_for_none(name: str, tmp_path: Path) -> None:
    if name.endswith((".md", ".sql", "expected_state.json")):
        return  # no records
    records = records_of(PEERS / name)
    assert detected(records, tmp_path) is None
    for format_name in format_names():
        if format_name == "drs-avro":
            continue  # it reads by a schema that the user states
        kinds = [change["kind"] for change in decoded(records, format_name, tmp_path)]
        assert not {"row", "schema"} & set(kinds), format_name
