"""Examples of defaults: what rows that are older than an added column have in it.

Expected values are those of MySQL. Its manual: "The YEAR Type" (years of one and two digits), "Floating-Point Types"
(FLOAT(M,D) rounds), "Type Conversion in Expression Evaluation" (a number as a text).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.apply.test_schema_mapping import altered, carried


def default_of(*alters: str) -> Any:
    """Return what an older row has in column ``n`` after some ALTER TABLE statements."""
    (row,) = carried(altered("a INT", *alters), {"id": 1, "a": 7})
    return row["n"]


@pytest.mark.parametrize(("literal", "year"), [("99", 1999), ("'99'", 1999), ("1", 2001), ("'0'", 2000), ("0", 0)])
def test_a_year_of_one_or_two_digits_is_of_this_or_the_last_century(literal: str, year: int) -> None:
    assert default_of(f"ADD COLUMN n YEAR NOT NULL DEFAULT {literal}") == year


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_a_floating_point_number_is_rounded_to_the_declared_digits(kind: str) -> None:
    assert default_of(f"ADD COLUMN n {kind}(6,2) DEFAULT 1.259") == pytest.approx(1.26, rel=1e-6)


@pytest.mark.parametrize(
    ("literal", "text"), [("007", "7"), (".5", "0.5"), ("1e3", "1000"), ("1.50", "1.50"), ("'007'", "007")]
)
def test_a_number_as_the_default_of_a_text_column_is_written_as_the_server_prints_it(literal: str, text: str) -> None:
    assert default_of(f"ADD COLUMN n VARCHAR(9) NOT NULL DEFAULT {literal}") == text


def test_a_default_passes_every_type_that_its_column_had() -> None:
    """A FLOAT of 0.1 is 0.10000000149011612, also after it became a DOUBLE; where a batch ends makes no difference."""
    add, widen = "ADD COLUMN n FLOAT NOT NULL DEFAULT 0.1", "MODIFY n DOUBLE NOT NULL"
    (between,) = carried(altered("a INT", add), {"id": 1, "a": 7})
    (in_two_batches,) = carried(altered("a INT", add, widen), between, version=1)
    assert in_two_batches["n"] == 0.10000000149011612
    assert default_of(add, widen) == 0.10000000149011612


def test_a_timestamp_literal_leaves_older_rows_unknown() -> None:
    """It is of the time zone of the session, which the log does not name."""
    assert altered("a INT", "ADD COLUMN n TIMESTAMP NULL DEFAULT '2020-01-01 00:00:00'").blocked != []


def test_a_datetime_literal_has_no_time_zone() -> None:
    assert altered("a INT", "ADD COLUMN n DATETIME DEFAULT '2020-01-01 00:00:00'").blocked == []
