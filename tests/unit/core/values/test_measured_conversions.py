# SPDX-License-Identifier: Apache-2.0
"""Test conversions of ALTER TABLE against what real servers stored: equal to them, or refused as not certain."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.ddl.column_types import read_type, settle
from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.tokens import tokenize
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.alter.convert import convert, without_nulls
from airflow_provider_cdc.core.values.alter.default_values import constant
from airflow_provider_cdc.core.values.types import arrow_type

DATA = Path(__file__).parent / "data"
SERVERS = ("mysql", "mysql", "mariadb", "mariadb")
MEASURED = [json.loads(line) for line in (DATA / "measured_conversions.jsonl").read_text("utf-8").splitlines()]
# the servers differ in these; with the server known, none of them is refused
TEXTS_TO_INT = {"1e5": ("100000", "1"), "1.5": ("2", "1"), "-0.5": ("-1", "0"), "\n7": ("0", "7"), "15e-1": ("2", "15")}


def type_of(sql: str) -> ColumnType:
    return settle(read_type(TokenReader(sql, tokenize(sql))), None)


def stored(text: str, arrow: pa.DataType) -> Any:
    """Return a printed value as Arrow stores it."""
    if pa.types.is_string(arrow):
        return text
    if pa.types.is_date32(arrow):
        return None if text.startswith("0000") else date.fromisoformat(text)
    if pa.types.is_timestamp(arrow):
        return None if text.startswith("0000") else datetime.fromisoformat(text)
    return Decimal(text) if pa.types.is_decimal(arrow) else float(text) if pa.types.is_floating(arrow) else int(text)


def equal(actual: Any, printed: str, column_type: ColumnType, arrow: pa.DataType) -> bool:
    """Return whether a value is what a server printed; servers print floats with few digits."""
    if column_type.name in ("date", "datetime") and "-00" in printed:
        return actual is None  # no date of the calendar
    if column_type.name in ("float", "double"):
        digits = 1e-5 if column_type.name == "float" else 1e-14
        return actual == pytest.approx(float(printed), rel=digits, abs=0)
    if column_type.name == "bit":
        return int(actual) == int(printed)
    return bool(actual == stored(printed, arrow))


@pytest.mark.parametrize("known", [True, False], ids=["server", "no-server"])
@pytest.mark.parametrize("case", MEASURED, ids=lambda case: f"{case['from']}-{case['to']}")
def test_what_is_converted_is_what_the_servers_stored(case: dict[str, Any], known: bool) -> None:
    old, new = type_of(case["from"]), type_of(case["to"])
    target = arrow_type(new)
    for value, results in case["stored"].items():
        column = pa.array([stored(value, arrow_type(old))], arrow_type(old))
        if column.null_count:
            continue  # a zero date, which is NULL before and after
        for server, printed in zip(SERVERS, [results] * 4 if isinstance(results, str) else results, strict=True):
            try:
                actual = convert(column, old, new, target, Counter(), server if known else None)[0].as_py()
            except DataError as error:
                assert error.code == "values.conversion_unknown"
                continue
            assert equal(actual, printed, new, target), (value, server, actual, printed)


@pytest.mark.parametrize(("text", "results"), TEXTS_TO_INT.items())
def test_a_text_becomes_the_integer_of_its_server_and_is_refused_without_one(
    text: str, results: tuple[str, str]
) -> None:
    old, new = ColumnType("varchar", 9), ColumnType("int")
    column = pa.array([text])
    for server, integer in zip(("mysql", "mariadb"), results, strict=True):
        assert convert(column, old, new, pa.int32(), Counter(), server).to_pylist() == [int(integer)]
    with pytest.raises(DataError, match=r"source\.options\.server"):
        convert(column, old, new, pa.int32(), Counter(), None)


@pytest.mark.parametrize("text", ["9" * 5000, "1." + "9" * 5000, "1e" + "9" * 5000])
@pytest.mark.parametrize("new", [ColumnType("int"), ColumnType("decimal", 10, 2)], ids=str)
def test_a_number_of_very_many_digits_is_refused(text: str, new: ColumnType) -> None:
    with pytest.raises(DataError, match="very many digits"):
        convert(pa.array([text]), ColumnType("longtext"), new, arrow_type(new), Counter(), "mysql")


DEFAULTS: dict[str, dict[str, list[str | None]]] = json.loads((DATA / "measured_defaults.json").read_text("utf-8"))


def is_default(actual: Any, measured: str, column_type: ColumnType) -> bool:
    """Return whether a value is what was measured: a date with zeros is NULL in the lake."""
    if measured.startswith("0000-"):
        return actual is None
    if column_type.name == "bit":
        return int(actual) == int(measured.removeprefix("hex:"), 16)
    if isinstance(actual, bytes):
        return "hex:" + actual.hex() == measured
    return actual == measured if isinstance(actual, str) else Decimal(actual) == Decimal(measured)


@pytest.mark.parametrize("sql", DEFAULTS)
@pytest.mark.parametrize("index", range(4), ids=SERVERS)
def test_stored_rows_of_a_not_null_column_are_what_the_servers_stored(sql: str, index: int) -> None:
    column_type, server = type_of(sql), SERVERS[index]
    arrow = arrow_type(column_type)
    added, modified = (DEFAULTS[sql][how][index] for how in ("add", "modify"))
    if added is not None:
        actual = constant(column_type.implicit_default(server), column_type, arrow).as_py()
        assert is_default(actual, added, column_type)
    if modified is not None:
        (actual,) = without_nulls(pa.nulls(1, arrow), column_type, server=server).to_pylist()
        assert is_default(actual, modified, column_type)
