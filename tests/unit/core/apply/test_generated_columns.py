# SPDX-License-Identifier: Apache-2.0
"""Generated columns added to filled tables: computed as the server computed them, or parked.

Expected values follow MySQL's manual: Arithmetic Operators, Precision Math, CREATE TABLE and Generated Columns.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.resolve import ordered, resolve
from airflow_provider_cdc.core.apply.schema_mapping import Mapper
from airflow_provider_cdc.core.apply.table_rewrite import after_steps
from airflow_provider_cdc.core.apply.target_schema import target_schema
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.changes import change, table_of, timeline_of

COLUMNS = "id INT PRIMARY KEY, a INT, b BIGINT, u INT UNSIGNED, big BIGINT UNSIGNED, d DECIMAL(10,2), v VARCHAR(9)"
ROW: dict[str, Any] = {
    "id": 1,
    "a": 7,
    "b": -3,
    "u": 4,
    "big": Decimal(2**63),
    "d": Decimal("12.34"),
    "v": "x",
}


def content(
    timeline: TableTimeline,
    stored: list[dict[str, Any]],
    *changes: dict[str, Any],
    at: int = 0,
    options: TypeOptions | None = None,
    position: str = "",
) -> tuple[list[dict[str, Any]], Counter[str]]:
    """Return the rows after some changes, by id, and what was lost."""
    assert timeline.unknown_since() is None
    timeline = TableTimeline.from_document(timeline.document())  # as it travels to the task
    options = options or TypeOptions()
    base = timeline.versions[at].schema
    table = pa.Table.from_pylist(stored, target_schema(base, options).columns)
    wire = open_format("canal-protobuf")
    plan = resolve(
        ordered(table_of(changes)), timeline, base, wire, options, read=lambda _: table, base_position=position
    )
    assert plan.failures == []
    mapper = Mapper(timeline.versions, timeline.fills, options, plan.lossy)
    result, _ = after_steps(table, base, plan.steps, mapper)
    return sorted(result.to_pylist(), key=lambda row: row["id"]), plan.lossy


def value(definition: str, **row: Any) -> Any:
    """Return what a stored row gets in an added column ``g``."""
    timeline = timeline_of(f"CREATE TABLE t ({COLUMNS})", f"ALTER TABLE t ADD COLUMN g {definition}")
    rows, lossy = content(timeline, [{**ROW, **row}])
    assert not lossy
    return rows[0]["g"]


def reason(*statements: str) -> str:
    block = timeline_of(f"CREATE TABLE t ({COLUMNS})", *statements).unknown_since()
    assert block is not None
    return block.reason


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("INT AS (id + 1) PERSISTENT", 2),
        ("INT GENERATED ALWAYS AS (id * 3) VIRTUAL", 3),
        ("BIGINT AS (a - b * 2) STORED", 13),
        ("BIGINT AS ((a - b) * 2) STORED", 20),
        ("INT AS (- (a + 1)) STORED", -8),
        ("INT AS (10 - a - 1) STORED", 2),
        ("BIGINT AS (`t`.`a` * `t`.`B`) STORED", -21),
        ("DECIMAL(12,2) AS (d * 2) STORED", Decimal("24.68")),
        ("DECIMAL(12,4) AS (d * 1.05) STORED", Decimal("12.9570")),
        ("DECIMAL(12,2) AS (d * 1.05) STORED", Decimal("12.96")),  # rounded half away from zero
        ("DECIMAL(12,1) AS (d * -1.25) STORED", Decimal("-15.4")),
        ("INT AS (d * 10) STORED", 123),
        ("INT AS (.5 + d) STORED", 13),
        ("DECIMAL(10,2) AS (a) STORED", Decimal("7.00")),
        ("DECIMAL(20,0) AS (big + 1) STORED", Decimal(2**63 + 1)),
        ("BIGINT UNSIGNED AS (big + 1) STORED", Decimal(2**63 + 1)),
        ("VARCHAR(9) AS (v) STORED", "x"),
        ("INT AS (5) STORED", 5),
    ],
)
def test_arithmetic_is_the_servers(definition: str, expected: Any) -> None:
    assert value(definition) == expected


@pytest.mark.parametrize("name", ["a", "b"])
def test_null_in_any_operand_gives_null(name: str) -> None:
    assert value("BIGINT AS (a + b * 0)", **{name: None}) is None


def test_a_value_that_does_not_fit_is_clamped_and_counted() -> None:
    timeline = timeline_of(f"CREATE TABLE t ({COLUMNS})", "ALTER TABLE t ADD g TINYINT AS (a * 100) STORED")
    rows, lossy = content(timeline, [ROW])
    assert (rows[0]["g"], lossy) == (127, {"number_clamped": 1})


@pytest.mark.parametrize(
    ("definition", "row", "why"),
    [
        ("BIGINT AS (u - a)", {}, "negative"),  # 4 - 7: an error, unless sql_mode has NO_UNSIGNED_SUBTRACTION
        ("BIGINT AS (b * b)", {"b": 2**62}, "beyond BIGINT"),
        ("BIGINT AS (big + big)", {}, "beyond BIGINT"),
        ("INT AS (a + 1) STORED NOT NULL", {"a": None}, "NULL"),
    ],
)
def test_what_the_server_would_have_refused_is_not_computed(definition: str, row: dict[str, Any], why: str) -> None:
    with pytest.raises(DataError, match=why) as caught:
        value(definition, **row)
    assert (caught.value.code, caught.value.where) == ("values.computed_unknown", {"column": "g"})


def test_a_boolean_that_stands_for_a_tinyint_is_not_computed_with() -> None:
    timeline = timeline_of("CREATE TABLE t (id INT PRIMARY KEY, f TINYINT(1))", "ALTER TABLE t ADD g INT AS (f + 1)")
    with pytest.raises(DataError, match="tinyint1_as_boolean"):
        content(timeline, [{"id": 1, "f": True}], options=TypeOptions(tinyint1_as_boolean=True))


def test_the_value_in_the_stream_wins_for_rows_that_carry_the_column() -> None:
    timeline = timeline_of("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "ALTER TABLE t ADD g INT AS (a + 1)")
    late = change(150, "insert", None, {"id": "3", "a": "5", "g": "77"})
    early = change(50, "insert", None, {"id": "2", "a": "4"})
    rows, _ = content(timeline, [{"id": 1, "a": 3}], early, late)
    assert [row["g"] for row in rows] == [4, 5, 77]


def test_an_update_that_lacks_columns_is_completed_before_the_column_is_computed() -> None:
    timeline = timeline_of(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", "ALTER TABLE t ADD g INT AS (a - b) VIRTUAL AFTER a"
    )
    update = change(50, "update", {"id": "1"}, {"b": "5"})
    rows, _ = content(timeline, [{"id": 1, "a": 9, "b": 2}], update)
    assert rows == [{"id": 1, "a": 9, "g": 4, "b": 5}]


def test_a_row_that_comes_late_is_computed_as_the_stored_ones_were() -> None:
    timeline = timeline_of("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "ALTER TABLE t ADD g INT NOT NULL AS (a + 1)")
    late = change(50, "insert", None, {"id": "2", "a": "4"})
    rows, _ = content(timeline, [{"id": 1, "a": 3, "g": 4}], late, at=1, position="00000150.0000000000")
    assert [row["g"] for row in rows] == [4, 5]


def test_columns_made_of_generated_ones_are_computed_after_them() -> None:
    timeline = timeline_of(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT)",
        "ALTER TABLE t ADD h INT AS (g * 2) FIRST, ADD g INT AS (a + 1), ADD c INT DEFAULT 3",
        "ALTER TABLE t ADD i INT AS (h + c)",
    )
    rows, _ = content(timeline, [{"id": 1, "a": 3}])
    assert rows == [{"h": 8, "id": 1, "a": 3, "g": 4, "c": 3, "i": 11}]


def test_another_expression_computes_the_stored_rows_again() -> None:
    timeline = timeline_of(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, g INT AS (a + 1) STORED)",
        "ALTER TABLE t MODIFY g INT AS (a + 2) STORED",
    )
    early = change(50, "insert", None, {"id": "2", "a": "4", "g": "5"})
    rows, _ = content(timeline, [{"id": 1, "a": 3, "g": 4}], early)
    assert [row["g"] for row in rows] == [5, 6]


def test_another_type_of_a_column_computes_what_is_made_of_it_again() -> None:
    timeline = timeline_of(
        "CREATE TABLE t (id INT PRIMARY KEY, a DECIMAL(5,2), g DECIMAL(8,2) AS (a * 2) STORED)",
        "ALTER TABLE t MODIFY a DECIMAL(5,1)",
    )
    rows, _ = content(timeline, [{"id": 1, "a": Decimal("1.25"), "g": Decimal("2.50")}])
    assert rows == [{"id": 1, "a": Decimal("1.3"), "g": Decimal("2.60")}]


def test_a_renamed_column_is_still_the_one_that_the_expression_names() -> None:
    timeline = timeline_of(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT)",
        "ALTER TABLE t ADD g INT AS (a + 1)",
        "ALTER TABLE t RENAME COLUMN a TO z, ADD a INT DEFAULT 100",
    )
    rows, _ = content(timeline, [{"id": 1, "a": 3}])
    assert rows == [{"id": 1, "z": 3, "g": 4, "a": 100}]


@pytest.mark.parametrize(
    "expression",
    ["a / 2", "a % 2", "a DIV 2", "concat('v', a)", "a + 1e0", "v + 1", "upper(v)", 'a + "b"', "1 + x", "a +", "g + 1"],
)
def test_what_is_not_computed_is_named(expression: str) -> None:
    reported = reason(f"ALTER TABLE t ADD COLUMN g INT AS ({expression})")
    assert reported.startswith("the generated column 'g' cannot be computed for stored rows: (" + expression + ")")


def test_a_long_expression_is_not_read_and_not_repeated() -> None:
    reported = reason(f"ALTER TABLE t ADD COLUMN g INT AS ({'(' * 5000}a{')' * 5000})")
    assert len(reported) < 250
    assert "more than 200" in reported


def test_columns_made_of_each_other_are_unknown() -> None:
    assert "'g'" in reason("ALTER TABLE t ADD g INT AS (h), ADD h INT AS (g)")


@pytest.mark.parametrize(
    "alter",
    [
        "MODIFY g VARCHAR(20) AS (concat('w', a))",  # another expression
        "MODIFY a DECIMAL(5,2)",  # of what it is made of
        "MODIFY g VARCHAR(5) AS (concat('v', a))",
    ],
)
def test_values_that_the_server_computed_again_are_unknown(alter: str) -> None:
    create = "CREATE TABLE t (id INT PRIMARY KEY, a INT, g VARCHAR(20) AS (concat('v', a)))"
    block = timeline_of(create, f"ALTER TABLE t {alter}").unknown_since()
    assert block is not None
    assert "the generated column 'g'" in block.reason


@pytest.mark.parametrize(
    "alter", ["MODIFY a BIGINT", "ADD c INT", "MODIFY g VARCHAR(40) AS (concat('v', a))", "MODIFY b BIGINT"]
)
def test_values_that_stay_need_no_computing(alter: str) -> None:
    create = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, g VARCHAR(20) AS (concat('v', a)))"
    assert timeline_of(create, f"ALTER TABLE t {alter}").unknown_since() is None
