# SPDX-License-Identifier: Apache-2.0
"""Examples of what the log says of the rows that its changes found, and of what is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.contradictions import Findings, Verification
from airflow_provider_cdc.core.apply.resolve import ordered, resolve
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.changes import change, table_of, timeline_of

CREATE = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9), f FLOAT)"
STORED_UNTIL = "00000010.0000000000"


def row(key: int, value: str | None, number: float | None = None) -> dict[str, Any]:
    return {"id": key, "v": value, "f": number}


def stored(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), pa.schema([("id", pa.int32()), ("v", pa.string()), ("f", pa.float32())]))


def findings_of(
    changes: Iterable[dict[str, Any]] | pa.Table,
    *there: dict[str, Any],
    keys_only: bool = False,
    base: str = STORED_UNTIL,
    tool: str = "dtle-json",
    how: Verification | None = None,
) -> Findings:
    """Return what comparing changes with the rows that are stored gave."""
    timeline = timeline_of(CREATE)
    plan = resolve(
        ordered(changes if isinstance(changes, pa.Table) else table_of(changes)),
        timeline,
        timeline.schema,
        open_format(tool),
        TypeOptions(),
        base_position=base,
        verification=how or Verification(),
    )
    witness = plan.steps[0].witness
    assert witness is not None
    rows = stored(*there)
    witness.meet(rows.select(["id"]) if keys_only else rows)
    return witness.finish()


def counts(*arguments: Any, **options: Any) -> dict[str, int]:
    return findings_of(*arguments, **options).counts


def test_a_change_of_a_row_as_it_is_stored_agrees() -> None:
    findings = findings_of([change(20, "update", row(1, "a"), row(1, "b"))], row(1, "a"))
    assert (findings.counts, findings.agreed) == ({}, 1)


def test_a_row_that_has_another_value_is_named_with_its_record_and_its_column() -> None:
    findings = findings_of([change(20, "update", row(1, "a", 1.5), row(1, "b", 1.5))], row(1, "A", 1.5))
    assert findings.counts == {"row_differs": 1}
    (one,) = findings.first
    assert (one.topic, one.partition, one.offset, one.column) == ("rows", 0, 20, "v")
    assert one.position == "00000020.0000000000"


def test_null_is_a_value_of_its_own() -> None:
    gone = [change(20, "delete", row(1, None), None)]
    assert counts(gone, row(1, None)) == {}
    assert counts(gone, row(1, "")) == {"row_differs": 1}


def test_an_insert_finds_no_row_and_a_change_finds_one() -> None:
    assert counts([change(20, "insert", None, row(1, "a"))], row(1, "x")) == {"key_there": 1}
    assert counts([change(20, "insert", None, row(1, "a"))]) == {}
    assert counts([change(20, "update", row(1, "a"), row(1, "b"))]) == {"key_missing": 1}
    assert counts([change(20, "delete", row(1, "a"), None)]) == {"key_missing": 1}


def test_keys_are_compared_where_the_writer_reads_no_more() -> None:
    changed = [change(20, "update", row(1, "a"), row(1, "b"))]
    findings = findings_of(changed, row(1, "another"), keys_only=True)
    assert (findings.counts, findings.agreed) == ({}, 0)
    assert counts(changed, keys_only=True) == {"key_missing": 1}


def test_a_moved_key_leaves_a_row_and_takes_a_free_place() -> None:
    moved = [change(20, "update", row(1, "a"), row(2, "a"))]
    assert counts(moved, row(1, "a")) == {}
    assert counts(moved, row(1, "a"), row(2, "b")) == {"key_there": 1}
    assert counts(moved, row(2, "b")) == {"key_missing": 1, "key_there": 1}


def test_changes_of_one_batch_join() -> None:
    first, second = change(20, "insert", None, row(1, "a")), change(30, "update", row(1, "a"), row(1, "b"))
    assert findings_of([first, second]).agreed == 1
    lost = [first, change(30, "update", row(1, "x"), row(1, "b"))]
    assert counts(lost) == {"row_differs": 1}
    assert counts([first, change(30, "insert", None, row(1, "b"))]) == {"key_there": 1}
    gone = change(30, "delete", row(1, "a"), None)
    assert counts([first, gone, change(40, "update", row(1, "a"), row(1, "b"))]) == {"key_missing": 1}
    assert counts([first, gone, change(40, "insert", None, row(1, "b"))]) == {}


@pytest.mark.parametrize("wrong", range(5))
def test_each_change_of_a_batch_is_compared_with_the_one_before(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_cdc.core.apply.witness._PORTION", 2)
    changed = [change(20, "insert", None, row(1, "v0"))]
    changed += [change(30 + n, "update", row(1, f"v{n}"), row(1, f"v{n + 1}")) for n in range(5)]
    assert findings_of(changed).agreed == 5
    changed[wrong + 1] = change(30 + wrong, "update", row(1, "x"), row(1, f"v{wrong + 1}"))
    findings = findings_of(changed)
    assert (findings.counts, findings.agreed) == ({"row_differs": 1}, 4)
    assert findings.first[0].position.startswith(f"{30 + wrong:08}")


def test_texts_that_differ_and_mean_one_value_agree() -> None:
    first = change(20, "insert", None, row(1, "a", 1.0))
    second = {**change(30, "update", row(1, "a"), row(1, "b")), "before": '{"f":1,"v":"a", "id": 1}'}
    findings = findings_of([first, second])
    assert (findings.counts, findings.agreed) == ({}, 1)


@pytest.mark.parametrize("partition", [0, 1])
def test_a_change_that_is_sent_again_contradicts_nothing(partition: int) -> None:
    insert, gone = change(20, "insert", None, row(1, "a")), change(30, "delete", row(1, "a"), None)
    again = [{**one, "offset": 100 + one["offset"], "partition": partition} for one in (insert, gone)]
    assert counts([insert, gone, *again]) == {}
    assert counts([insert, again[0]]) == {}


def test_what_the_stored_rows_went_through_already_says_nothing() -> None:
    repeats = [change(5, "insert", None, row(1, "a")), change(8, "update", row(1, "a"), row(1, "b"))]
    assert counts(repeats, row(1, "b")) == {}
    late = [change(5, "insert", None, row(1, "a")), change(20, "update", row(1, "a"), row(1, "c"))]
    assert counts(late, row(1, "b")) == {}


def test_a_row_of_a_snapshot_finds_whatever_is_there() -> None:
    assert counts([change(20, "snapshot", None, row(1, "a"))], row(1, "x")) == {}


def test_what_a_partition_may_still_bring_is_left_undecided() -> None:
    changed = [change(20, "update", row(1, "a"), row(1, "b"))]

    def with_marks(**marks: int) -> Findings:
        read = {f"rows/{name[1:]}": f"{position:08d}.{0:010d}" for name, position in marks.items()}
        return findings_of(changed, how=Verification(marks=read, partitions=["rows/0", "rows/1"]))

    assert with_marks(p0=20).undecided == 1
    assert with_marks(p0=20, p1=15).undecided == 1
    assert with_marks(p0=20, p1=15).counts == {}
    assert with_marks(p0=30, p1=25).counts == {"key_missing": 1}


def test_rows_of_one_statement_on_several_partitions_have_no_order() -> None:
    """``UPDATE t SET id = id + 1`` of rows 1 and 2, by a tool that numbers the rows of each record from 0."""
    moves = [
        change(20, "update", row(1, "a"), row(2, "a"), partition=0),
        {**change(20, "update", row(2, "b"), row(3, "b"), partition=1), "offset": 21},
    ]
    assert counts(moves, row(1, "a"), row(2, "b")) == {}


def test_a_share_of_many_rows_is_compared_and_always_the_same() -> None:
    keys = range(4_000)
    changed = [change(20 + key, "update", row(key, "a"), row(key, "b")) for key in keys]
    rows = [row(key, "x") for key in keys]
    few = counts(changed, *rows, how=Verification(share=0.25))
    assert 700 < few["row_differs"] < 1_300
    assert counts(changed, *rows, how=Verification(share=0.25)) == few
    assert counts(changed, *rows, how=Verification(share=1.0)) == {"row_differs": 4_000}


def test_formats_whose_updates_keep_the_key_are_compared_too() -> None:
    changed = [change(20, "update", row(1, "a"), row(1, "b")), change(30, "delete", row(2, "a"), None)]
    assert counts(changed, row(1, "a"), row(2, "a"), tool="debezium-json") == {}
    assert counts(changed, row(1, "x"), tool="debezium-json") == {"row_differs": 1, "key_missing": 1}


def test_rows_of_one_statement_at_one_key_have_no_order() -> None:
    """``UPDATE t SET id = id + 1``: over several partitions the row that comes may stand before the one that goes."""
    comes = change(20, "update", row(1, "a"), row(2, "a"), partition=0)
    goes = change(20, "update", row(2, "b"), row(3, "b"), partition=1)
    later = change(30, "update", row(2, "a"), row(2, "A"))
    assert counts([comes, goes, later], row(1, "a"), row(2, "b")) == {}
    lost = change(31, "update", row(2, "x"), row(2, "y"))
    assert counts([comes, goes, later, lost], row(1, "a"), row(2, "b")) == {"row_differs": 1}


def clock_position(tool_ms: int, offset: int, partition: int = 0) -> str:
    return f"c.{tool_ms:014d}.{tool_ms // 1000:011d}.{partition:018d}.{offset:019d}.{0:010d}.{0:09d}"


def by_clock(*changes: tuple[int, int, dict[str, Any]]) -> pa.Table:
    """Return changes of a tool without positions: (source time and the tool's time in milliseconds, change)."""
    placed = [{**one, "position": clock_position(tool, one["offset"], one["partition"])} for _, tool, one in changes]
    columns = {
        "source": pa.array([source * 1000 for source, _, _ in changes]),
        "sent": pa.array([tool for _, tool, _ in changes]),
        **{name: pa.repeat(False, len(changes)) for name in ("stale", "doubtful", "older", "late")},
    }
    table = table_of(placed)
    for name, column in columns.items():
        table = table.append_column(name, pa.chunked_array([column]))
    return table


def clock_counts(*changes: tuple[int, int, dict[str, Any]], there: Any, **how: Any) -> dict[str, int]:
    base = clock_position(10_000, 9)
    return counts(by_clock(*changes), *there, base=base, tool="canal-json", how=Verification(**how))


UPDATE = change(20, "update", row(1, "a"), row(1, "b"))
INSERT = change(21, "insert", None, row(1, "b"))


def test_where_a_clock_orders_changes_those_are_compared_that_cannot_be_sent_again() -> None:
    assert clock_counts((11_000, 11_300, UPDATE), there=[row(1, "a")]) == {}
    assert clock_counts((11_000, 11_300, UPDATE), there=[row(1, "x")], whole=True) == {"row_differs": 1}
    assert (
        clock_counts((11_000, 11_300, UPDATE), there=[row(1, "x")]) == {}
    )  # values are compared where that is asked for
    assert clock_counts((11_000, 11_300, UPDATE), there=[]) == {"key_missing": 1}
    assert clock_counts((11_000, 11_300, INSERT), there=[row(1, "b")]) == {"key_there": 1}
    # of the time before the tool sent what is stored
    assert clock_counts((9_000, 11_300, UPDATE), there=[row(1, "x")], whole=True) == {}
    assert clock_counts((10_000, 11_300, INSERT), there=[row(1, "b")]) == {}


def test_where_a_clock_orders_changes_of_one_second_of_the_source_may_have_no_order() -> None:
    again = {**INSERT, "offset": 30, "index": 0}
    assert clock_counts((11_000, 11_300, INSERT), (11_000, 11_400, again), there=[]) == {}
    gone = change(31, "delete", row(1, "x"), None)
    assert clock_counts((11_000, 11_300, INSERT), (12_000, 12_400, gone), there=[], whole=True) == {"row_differs": 1}
    assert clock_counts((12_000, 12_300, INSERT), (11_000, 12_400, gone), there=[]) == {}


def test_where_a_clock_orders_changes_a_partition_that_is_read_less_far_leaves_them_undecided() -> None:
    how = {"partitions": ["rows/0", "rows/1"]}
    one = (11_000, 11_300, UPDATE)
    assert clock_counts(one, there=[], marks={"rows/0": "c.00000000012000"}, **how) == {}
    assert clock_counts(one, there=[], marks=dict.fromkeys(how["partitions"], "c.00000000011300"), **how) == {}
    assert clock_counts(one, there=[], marks=dict.fromkeys(how["partitions"], "c.00000000011301"), **how) == {
        "key_missing": 1
    }
