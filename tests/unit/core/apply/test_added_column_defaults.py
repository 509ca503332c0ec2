# SPDX-License-Identifier: Apache-2.0
"""Examples of defaults: what rows that are older than an added column have in it.

Expected values are those of MySQL. Its manual: "The YEAR Type" (years of one and two digits), "Floating-Point Types"
(FLOAT(M,D) rounds), "Type Conversion in Expression Evaluation" (a number as a text), "Date and Time Literals" and
"Two-Digit Years in Dates" (short dates), "The TIME Type" (abbreviated times), "Rounding Behavior" (halves of exact
numbers go away from zero), "The ENUM Type" (labels that are numbers), "The CHAR and VARCHAR Types" (trailing spaces).
"""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_cdc.core.model.schema import Default
from tests.unit.core.apply.altering import altered, carried, mapper, stored


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


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("DECIMAL(5,2) DEFAULT 1.555", Decimal("1.56")),
        ("DECIMAL(5,2) DEFAULT -1.555", Decimal("-1.56")),
        ("DECIMAL(5,2) DEFAULT '1.5'", Decimal("1.50")),
        ("DECIMAL(5,0) DEFAULT 1e2", Decimal(100)),
        ("INT DEFAULT 2.5", 3),
        ("INT DEFAULT 007", 7),
        ("BOOLEAN DEFAULT TRUE", 1),
        ("VARCHAR(5) DEFAULT TRUE", "1"),
        ("BIT(8) DEFAULT b'101'", 5),
        ("BIT(8) DEFAULT 5", 5),
        ("INT DEFAULT 0x1F", 31),
    ],
)
def test_a_number_is_rounded_to_the_columns_digits(definition: str, value: Any) -> None:
    assert default_of(f"ADD COLUMN n {definition}") == value


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("DATE DEFAULT '20-1-1'", date(2020, 1, 1)),
        ("DATE DEFAULT '70/1/1'", date(1970, 1, 1)),
        ("DATE DEFAULT '20200101'", date(2020, 1, 1)),
        ("DATE DEFAULT 200101", date(2020, 1, 1)),
        ("DATE DEFAULT 691231", date(2069, 12, 31)),
        ("DATE DEFAULT 101", date(2000, 1, 1)),
        ("DATE DEFAULT 20200101", date(2020, 1, 1)),
        ("DATE DEFAULT '2020-01-01 10:00:00'", date(2020, 1, 1)),
        ("DATE DEFAULT DATE'2020-01-01'", date(2020, 1, 1)),
        ("DATETIME DEFAULT '2020-1-1 1:2:3'", datetime(2020, 1, 1, 1, 2, 3)),
        ("DATETIME DEFAULT 20200101101112", datetime(2020, 1, 1, 10, 11, 12)),
        ("DATETIME DEFAULT 200101101112", datetime(2020, 1, 1, 10, 11, 12)),
        ("DATETIME DEFAULT '20200101'", datetime(2020, 1, 1)),
        ("DATETIME(3) DEFAULT '2020-01-01 00:00:00.25'", datetime(2020, 1, 1, 0, 0, 0, 250_000)),
        ("DATETIME DEFAULT '2020-01-01 00:00:00.000'", datetime(2020, 1, 1)),
        ("DATETIME DEFAULT 0", None),
        ("TIMESTAMP NOT NULL DEFAULT 0", None),
        ("TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00'", None),
        ("TIME DEFAULT '10:11'", "10:11:00"),
        ("TIME DEFAULT '1 1:00:00'", "25:00:00"),
        ("TIME DEFAULT '1112'", "00:11:12"),
        ("TIME DEFAULT -101112", "-10:11:12"),
        ("TIME DEFAULT '9:5:3'", "09:05:03"),
        ("TIME(2) DEFAULT '101112.5'", "10:11:12.50"),
        ("TIME DEFAULT 12", "00:00:12"),
    ],
)
def test_a_short_date_or_time_is_completed(definition: str, value: Any) -> None:
    assert default_of(f"ADD COLUMN n {definition}") == value


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("ENUM('a','B') DEFAULT 'b'", "B"),
        ("ENUM('1','2') DEFAULT 2", "2"),
        ("SET('a','b') DEFAULT 'b,a'", "a,b"),
        ("CHAR(5) DEFAULT 'ab  '", "ab"),
        ("VARCHAR(3) DEFAULT 'ab    '", "ab "),
        ("JSON DEFAULT ('[]')", "[]"),
    ],
)
def test_a_text_is_stored_as_its_type_has_it(definition: str, value: str) -> None:
    assert default_of(f"ADD COLUMN n {definition}") == value


@pytest.mark.parametrize(
    "definition",
    [
        "ENUM('2','1') DEFAULT 2",  # checked as a label, stored as a place in the list
        "SET('1','4') DEFAULT 4",
        "BIT(8) DEFAULT '1'",  # the character's code
        "TIMESTAMP NULL DEFAULT 20200101",
        "DATETIME DEFAULT '2020-01-01 00:00:00.6'",  # MySQL rounds, MariaDB truncates
        "DATETIME DEFAULT TIME'10:11:12'",  # with the date of the statement
        "VARCHAR(20) DEFAULT DATE'20-1-1'",
        "VARCHAR(20) DEFAULT 1e20",  # how servers print floating-point numbers
        "VARBINARY(9) DEFAULT 'ä'",  # bytes of the session's character set
        'JSON DEFAULT (\'{"b": 1, "a": 2}\')',  # MySQL sorts the members, MariaDB keeps the text
    ],
)
def test_a_literal_whose_stored_value_is_not_certain_leaves_older_rows_unknown(definition: str) -> None:
    (block,) = altered("a INT", f"ADD COLUMN n {definition}").blocked
    assert "the default of 'n'" in block.reason


def test_a_default_that_is_changed_for_a_column_is_one_of_its_type() -> None:
    column = altered("a YEAR", "ALTER COLUMN a SET DEFAULT 99").schema.named("a")
    assert column is not None
    assert column.default == Default("constant", "1999")


def test_a_default_is_cut_as_any_stored_value_and_counted() -> None:
    timeline, lossy = altered("a INT", "ADD n VARCHAR(9) DEFAULT 'abcdef'", "MODIFY n VARCHAR(3)"), Counter[str]()
    content = stored(timeline, 0, [{"id": 1, "a": 7}, {"id": 2, "a": 8}])
    result = mapper(timeline, lossy).content(content, timeline.versions[0].schema, 2, 0)
    assert (result.column("n").to_pylist(), lossy) == (["abc", "abc"], {"text_cut": 2})
