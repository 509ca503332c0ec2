# SPDX-License-Identifier: Apache-2.0
"""Test statements under settings of the source's server."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.registry import format_names, open_format
from airflow_provider_cdc.core.model.schema import Column, ColumnType, Default, TableName, TableSchema
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline
from tests.unit.core.apply.altering import carried

LOWER, EXACT = Server(lower_case_names=True), Server(lower_case_names=False)
ON, OFF = Server(explicit_timestamps=True), Server(explicit_timestamps=False)
ALTERED = Default("constant", "1970-01-01 00:00:02.000000")  # the second statement's time
ZERO = Default("constant", "0000-00-00 00:00:00")


def table(server: Server | None, *statements: str, name: str = "orders") -> TableTimeline:
    """Return a table after statements at positions 01, 02, ... and seconds 1, 2, ... in the database ``Shop``."""
    changes = [SchemaChange(f"{n:02d}", n, "Shop", text, time=n * 1_000_000) for n, text in enumerate(statements, 1)]
    built = build_timeline(changes, server)
    for database in ("shop", "Shop"):
        table_id = built.owner(TableName(database, name), "99")
        if table_id is not None:
            return built.tables[table_id]
    raise AssertionError(f"no table {name}")


# -- lower_case_table_names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("ALTER TABLE ORDERS ADD b INT", "orders"),
        ("ALTER TABLE sHop.Orders ADD b INT, RENAME TO Shop.Bills", "bills"),
        ("RENAME TABLE oRders TO SHOP.Bills", "bills"),
    ],
)
def test_names_mean_tables_in_lower_case(statement: str, name: str) -> None:
    built = table(LOWER, "CREATE TABLE Orders (a INT)", statement, name=name)
    assert built.name == TableName("shop", name)
    assert built.blocked == []
    assert ("b" in [column.name for column in built.schema.columns]) == ("ADD" in statement)


def test_truncate_drop_and_create_again_in_another_case() -> None:
    created = "CREATE TABLE Orders (a INT)"
    assert table(LOWER, created, "TRUNCATE TABLE ORDERS").clears == ["02"]
    assert table(LOWER, created, "DROP TABLE ORDERS", "CREATE TABLE orders (b INT)").schema.named("b") is not None
    dropped = build_timeline([SchemaChange(str(n), n, "x", text) for n, text in enumerate(
        ("CREATE TABLE Shop.T (a INT)", "DROP DATABASE SHOP"))], LOWER)  # fmt: skip
    assert [built.name for built in dropped.tables.values()] == [None]


def test_the_tools_own_account_of_a_table_is_taken_under_its_lower_case_name() -> None:
    stated = TableSchema((Column(1, "a", ColumnType("int")), Column(2, "b", ColumnType("date"))))
    changes = [
        SchemaChange("1", 1, "Shop", "CREATE TABLE Orders (a INT)"),
        SchemaChange("2", 2, "Shop", "ALTER TABLE ORDERS ADD b DATE", (("Shop", "ORDERS", stated),)),
        SchemaChange("3", 3, "Shop", "ALTER TABLE ORDERS FROBNICATE"),
    ]
    (built,) = build_timeline(changes, LOWER).tables.values()
    assert [column.name for column in built.schema.columns] == ["a", "b"]
    assert [block.position for block in built.blocked] == ["3"]


@pytest.mark.parametrize(
    "statement",
    ["ALTER TABLE Orders ADD b INT", "TRUNCATE Orders", "DROP TABLE Orders", "RENAME TABLE Orders TO bills"],
)
def test_where_the_setting_is_not_stated_a_name_in_another_case_parks_the_table(statement: str) -> None:
    (block,) = table(None, "CREATE TABLE orders (a INT)", statement).blocked
    assert "source.options.lower_case_table_names" in block.reason
    assert table(EXACT, "CREATE TABLE orders (a INT)", statement).blocked == []
    both = table(None, "CREATE TABLE orders (a INT)", "CREATE TABLE Orders (a INT)", statement)
    assert both.blocked == []


# -- explicit_defaults_for_timestamp -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "definition", "off", "on"),
    [
        # MySQL 5.7 manual, system variable explicit_defaults_for_timestamp; the first recorded on a server
        ("a INT", "TIMESTAMP", ALTERED, Default("constant", None)),
        ("a INT", "TIMESTAMP NOT NULL", ALTERED, ZERO),
        ("a INT, t TIMESTAMP", "TIMESTAMP", ZERO, Default("constant", None)),
        ("a INT, t TIMESTAMP", "TIMESTAMP NOT NULL", ZERO, ZERO),
        ("a INT", "TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", ZERO, Default("constant", None)),
        ("a INT", "TIMESTAMP NULL", Default("constant", None), Default("constant", None)),
        ("a INT", "TIMESTAMP DEFAULT '0000-00-00 00:00:00'", ZERO, ZERO),
        ("a INT", "DATETIME", Default("constant", None), Default("constant", None)),
    ],
)
def test_stored_rows_get_the_implicit_default(before: str, definition: str, off: Default, on: Default) -> None:
    statements = (f"CREATE TABLE orders ({before})", f"ALTER TABLE orders ADD n {definition}")
    for server, expected in ((OFF, off), (ON, on)):
        built = table(server, *statements)
        assert built.blocked == []
        (column,) = (column for column in built.schema.columns if column.name == "n")
        assert built.fills[column.id] == expected
    unknown = table(None, *statements)
    assert bool(unknown.blocked) == (on != off)
    assert all("source.options.explicit_defaults_for_timestamp" in block.reason for block in unknown.blocked)


def test_stored_rows_have_the_time_of_the_alter_in_a_timestamp_that_is_implicitly_now() -> None:
    """The second statement runs at second 2. A stored NULL or zero date is NULL in the lake."""
    for server, statement, value in (
        (OFF, "ADD n TIMESTAMP", datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)),
        (ON, "ADD n TIMESTAMP", None),
        (OFF, "ADD t TIMESTAMP, ADD n TIMESTAMP", None),
    ):
        built = table(server, "CREATE TABLE orders (a INT)", f"ALTER TABLE orders {statement}")
        (row,) = carried(built, {"a": 7})
        assert (row["a"], row["n"]) == (7, value)


def test_a_timestamp_is_not_null_where_nothing_is_stated() -> None:
    created = "CREATE TABLE orders (a INT, t TIMESTAMP, u TIMESTAMP, v TIMESTAMP NULL)"
    assert [column.nullable for column in table(OFF, created).schema.columns] == [True, False, False, True]
    assert [column.nullable for column in table(ON, created).schema.columns] == [True, True, True, True]


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", format_names())
def test_every_format_takes_the_settings(name: str) -> None:
    settings = {
        "lower_case_table_names": "1",
        "explicit_defaults_for_timestamp": "false",
        "server": "mariadb",
        "session_time_zone": "+08:00",
    }
    own = {"schema": '{"type": "record", "name": "r", "fields": []}'} if name == "drs-avro" else {}
    try:
        open_format(name, own)
    except ConfigurationError:
        pytest.skip("the format needs more options")
    open_format(name, {**own, **settings})
    assert Server.of({**own, **settings}) == Server(True, False, "mariadb", "+08:00")


@pytest.mark.parametrize(
    ("option", "value"),
    [("lower_case_table_names", "2"), ("explicit_defaults_for_timestamp", "maybe"), ("server", "MySQL")],
)
def test_a_value_that_the_variable_cannot_have_is_refused(option: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"source\.options\.{option}: '{value}' is not one of"):
        open_format("canal-json", {option: value})


@pytest.mark.parametrize("zone", ["SYSTEM", "CST8", "+8", "Asia/Nowhere", "../UTC"])
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(ConfigurationError, match=r"source\.options\.session_time_zone: .* time zone"):
        open_format("canal-json", {"session_time_zone": zone})


# -- session_time_zone -------------------------------------------------------------------------------------------------

CREATED = "CREATE TABLE orders (a INT)"


@pytest.mark.parametrize(
    ("zone", "definition", "utc"),
    [
        ("+08:00", "TIMESTAMP DEFAULT '2024-01-02 03:04:05'", "2024-01-01 19:04:05.000000"),
        ("+08:00", "TIMESTAMP(3) NOT NULL DEFAULT '2024-01-02 03:04:05.678'", "2024-01-01 19:04:05.678000"),
        ("Asia/Shanghai", "TIMESTAMP NOT NULL DEFAULT '2024-1-2'", "2024-01-01 16:00:00.000000"),
        ("Europe/Berlin", "TIMESTAMP NULL DEFAULT 20240702030405", "2024-07-02 01:04:05.000000"),
        ("UTC", "TIMESTAMP NULL DEFAULT TIMESTAMP'1970-01-01 00:00:01'", "1970-01-01 00:00:01.000000"),
        ("-05:30", "TIMESTAMP NULL DEFAULT ('2038-01-18 21:44:07')", "2038-01-19 03:14:07.000000"),
    ],
)
def test_a_timestamp_literal_is_of_the_sessions_zone(zone: str, definition: str, utc: str) -> None:
    statements = (CREATED, f"ALTER TABLE orders ADD n {definition}")
    built = table(Server(time_zone=zone, explicit_timestamps=True), *statements)
    assert built.blocked == []
    assert list(built.fills.values())[-1] == Default("constant", utc)
    (block,) = table(ON, *statements).blocked
    assert "source.options.session_time_zone" in block.reason


@pytest.mark.parametrize(
    "default",
    [
        "'2024-03-31 02:30:00'",  # the clocks showed it never
        "'2024-10-27 02:30:00'",  # and this twice
        "'2024-00-01'",
        "'2024-01-01 00:00:00.5'",  # MySQL rounds, MariaDB truncates
        "'2024-01-01 00:00:00+01:00'",
        "(FROM_UNIXTIME(7))",
    ],
)
def test_a_timestamp_default_that_the_zone_does_not_decide_parks_the_table(default: str) -> None:
    server = Server(time_zone="Europe/Berlin", explicit_timestamps=True)
    assert table(server, CREATED, f"ALTER TABLE orders ADD n TIMESTAMP DEFAULT {default}").blocked


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("DATETIME DEFAULT CURRENT_TIMESTAMP", "1970-01-01 08:00:02.000000"),
        ("TIMESTAMP DEFAULT CURRENT_TIMESTAMP", "1970-01-01 00:00:02.000000"),
    ],
)
def test_the_present_time_is_local_in_a_datetime(definition: str, value: str) -> None:
    """The second statement runs at second 2 of 1970, in UTC."""
    statement = f"ALTER TABLE orders ADD n {definition}"
    built = table(Server(time_zone="+08:00"), CREATED, statement)
    assert list(built.fills.values())[-1] == Default("constant", value)
    assert "session_time_zone" not in built.notes[-1]
    unknown = table(None, CREATED, statement)
    assert list(unknown.fills.values())[-1] == Default("constant", "1970-01-01 00:00:02.000000")
    assert ("session_time_zone" in unknown.notes[-1]) == ("DATETIME" in definition)


# -- server ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "value"), [("mysql", "null"), ("mariadb", ""), (None, "null")])
def test_json_not_null_in_stored_rows_is_what_the_server_reads(kind: str | None, value: str) -> None:
    built = table(Server(kind=kind), CREATED, "ALTER TABLE orders ADD n JSON NOT NULL")
    assert built.blocked == []
    assert list(built.fills.values())[-1] == Default("constant", value)


def test_what_a_record_shows_counts_more_than_what_is_stated() -> None:
    changes = [
        SchemaChange("1", 1, "Shop", CREATED, server="mysql"),
        SchemaChange("2", 2, "Shop", "ALTER TABLE orders ADD n JSON NOT NULL", server="mysql"),
    ]
    (built,) = build_timeline(changes, Server(kind="mariadb")).tables.values()
    assert list(built.fills.values())[-1] == Default("constant", "null")
    assert built.versions[-1].server == "mysql"


def test_a_vector_that_is_not_null_parks_the_table() -> None:
    assert table(None, CREATED, "ALTER TABLE orders ADD n VECTOR(3) NOT NULL").blocked
