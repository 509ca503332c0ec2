# SPDX-License-Identifier: Apache-2.0
"""Values of OceanBase OMS's text formats by type (docs/wire/oceanbase-oms.md 7)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.oms import columns as oms_columns
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import Field, Typed, type_images
from airflow_provider_cdc.core.values.types import arrow_type


def typed(tokens: list[str], kind: ColumnType, **how: Any) -> Typed:
    field = Field(oms_columns.encoding("c", kind, **how), kind, arrow_type(kind))
    return type_images(pa.array([f'{{"c":{token}}}' for token in tokens]), [field])


def values(tokens: list[str], kind: ColumnType, **how: Any) -> list[Any]:
    result = typed(tokens, kind, **how)
    assert not result.failures
    (column,) = result.columns
    return (column.cast(pa.string()) if pa.types.is_temporal(column.type) else column).to_pylist()


@pytest.mark.parametrize(
    ("kind", "token", "value"),
    [
        (ColumnType("tinyint", 1), "1", 1),
        (ColumnType("year"), "2020", 2020),
        (ColumnType("bigint", unsigned=True), "10223372036854775806", Decimal(10223372036854775806)),
        (ColumnType("decimal", 38, 2), f"{'9' * 36}.10", Decimal(f"{'9' * 36}.10")),
        (ColumnType("decimal", 10, 2), "1.5E+3", Decimal("1500.00")),
        (ColumnType("decimal", 65, 2), "1" * 60 + ".1", "1" * 60 + ".10"),
        (ColumnType("varchar", 20), '"hello"', "hello"),
        (ColumnType("enum", labels=("a", "b")), '"b"', "b"),
        (ColumnType("set", labels=("a", "b")), '"a,b"', "a,b"),
        (ColumnType("json"), '"{\\"a\\": 1.10}"', '{"a": 1.10}'),
        (ColumnType("blob"), '"aGVsbG8gd29ybGQ="', b"hello world"),
        (ColumnType("binary", 4), '"YWI="', b"ab\0\0"),
        (ColumnType("date"), '"2020-11-25"', "2020-11-25"),
        (ColumnType("time", 3), '"00:01:02.5"', "00:01:02.500"),
        (ColumnType("time"), '"-838:59:59"', "-838:59:59"),
        (ColumnType("datetime", 6), '"2020-11-25 00:01:02.012345"', "2020-11-25 00:01:02.012345"),
        (ColumnType("timestamp", 6), '"1606233662.012345"', "2020-11-24 16:01:02.012345Z"),
        (ColumnType("timestamp", 6), '"1606233662.5"', "2020-11-24 16:01:02.500000Z"),
        (ColumnType("timestamp"), '"1606233662"', "2020-11-24 16:01:02.000000Z"),
    ],
)  # fmt: skip
def test_a_value_of_each_type_arrives_exactly(kind: ColumnType, token: str, value: Any) -> None:
    assert values([token, "null"], kind) == [value, None]


def test_a_double_near_the_smallest_is_read_from_all_its_digits() -> None:
    plain = "0." + "0" * 307 + "99999999999999990932662533724846199547048873403204569370722504933164788134100221"
    assert values([plain, "9.9999999999999990932662533724846199547E-308"], ColumnType("double")) == [1e-307, 1e-307]


def test_bits_are_equal_with_and_without_the_zero_bytes_before_them() -> None:
    assert values(['"AAU="', '"BQ=="', '"AQA="'], ColumnType("bit", 12)) == [5, 5, 256]
    assert values(['"AAAAAAAAAAE="', '"AQ=="'], ColumnType("bit", 64)) == [Decimal(1), Decimal(1)]
    assert values(['"AQ=="', '"AA=="'], ColumnType("bit", 1)) == [True, False]


def test_an_invalid_timestamp_becomes_null_and_is_counted() -> None:
    result = typed(['"0000-00-00 00:00:00"', '"1606233662"'], ColumnType("timestamp"))
    assert not result.failures
    assert result.columns[0].null_count == 1
    assert result.lossy == {"zero_date": 1}


def test_an_invalid_date_that_is_passed_through_becomes_null_and_is_counted_or_fails() -> None:
    result = typed(['"0000-00-00"', '"2023-02-31"', '"soon"'], ColumnType("date"))
    assert result.lossy == {"zero_date": 1, "invalid_date": 1}
    assert [failure.row for failure in result.failures] == [2]


def test_a_moment_with_the_name_of_its_zone_is_an_instant() -> None:
    token = '"2020-11-25 00:01:02.012345 Asia/Shanghai"'
    instant = ["2020-11-24 16:01:02.012345Z"]
    assert values([token], ColumnType("timestamp", 6), said="ZONED_DATETIME") == instant
    assert values([token], ColumnType("timestamp", 6), oracle=True) == instant
    assert values([token], ColumnType("longtext"), oracle=True) == [token.strip('"')]


def test_of_an_oracle_tenant_timestamps_are_local_times_of_the_stated_zone() -> None:
    kind = ColumnType("timestamp")
    assert values(['"2020-11-25 00:01:02"'], kind, oracle=True, zone="Asia/Shanghai") == ["2020-11-24 16:01:02.000000Z"]
    assert values(['"2020-11-25 00:01:02"'], ColumnType("datetime"), oracle=True) == ["2020-11-25 00:01:02.000000"]


def test_of_an_oracle_tenant_a_date_with_a_time_does_not_lose_it() -> None:
    result = typed(['"2020-11-25 00:00:00"', '"2020-11-25 00:01:02"'], ColumnType("date"), oracle=True)
    assert [failure.row for failure in result.failures] == [1]


def test_intervals_and_rowids_stay_the_text_they_are() -> None:
    texts = ["INTERVAL '3' DAY", "INTERVAL '4' YEAR", "AAAOeDAAFAAAABXAAA"]
    assert values([f'"{text}"' for text in texts], ColumnType("varchar", 40), oracle=True) == texts


@pytest.mark.parametrize("said", [None, "DECIMAL", "NUMBER"])
def test_a_number_in_a_text_column_keeps_its_spelling(said: str | None) -> None:
    tokens = ["1.10", "12345678901234567890123456789012345678901234567890.5", "1E-130"]
    assert values(tokens, ColumnType("longtext"), said=said, oracle=True) == tokens


@pytest.mark.parametrize("kind", ["float", "double"])
def test_an_oracle_number_is_not_rounded_to_binary(kind: str) -> None:
    for said in (None, "DECIMAL", "FLOAT"):
        with pytest.raises(DataError, match="would round"):
            oms_columns.encoding("c", ColumnType(kind), said=said, oracle=True)
    assert values(["0.1"], ColumnType("double"), said="BINARY_DOUBLE", oracle=True) == [0.1]


@pytest.mark.parametrize("kind", ["geometry", "point"])
def test_a_type_of_which_oms_does_not_say_how_it_is_written_is_refused(kind: str) -> None:
    with pytest.raises(DataError, match="does not say"):
        oms_columns.encoding("c", ColumnType(kind))


def test_older_names_of_sources_mean_what_the_newer_ones_do() -> None:
    assert all(map(oms_columns.speaks_oracle, ("ORACLE", "OB_ORACLE", "OB_IN_ORACLE_MODE", "ob_oracle")))
    assert not any(map(oms_columns.speaks_oracle, ("MYSQL", "OB_MYSQL", "OCEANBASE", "DB2", "DB2_LUW", None)))
    assert all(map(oms_columns.is_oceanbase, ("OB_MYSQL", "OB_ORACLE", "OCEANBASE", "OB_IN_ORACLE_MODE", "ob_mysql")))
    assert not any(map(oms_columns.is_oceanbase, ("MYSQL", "ORACLE", "DB2", "DB2_LUW", None)))


def test_a_type_name_without_a_known_meaning_has_no_type() -> None:
    assert oms_columns.column_type("GEOMETRY") is None
    assert oms_columns.column_type("varchar(") is None
    assert oms_columns.column_type("decimal(10,2)") == ColumnType("decimal", 10, 2)
    assert oms_columns.column_type("NUMBER(10,2)", oracle=True) == ColumnType("decimal", 10, 2)
    assert oms_columns.column_type("NUMBER(*,2)", oracle=True) is None
    assert oms_columns.column_type("FLOAT(126)", oracle=True) == ColumnType("longtext")
