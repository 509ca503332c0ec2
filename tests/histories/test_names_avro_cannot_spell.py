# SPDX-License-Identifier: Apache-2.0
"""Columns whose names Avro cannot spell come into a table under their own names, where these are certain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.formats.connect.adjusted_names import columns_of, escaped, prefixed, underscored
from tests.cross_format.connect_avro import AvroConverter
from tests.histories.avro_connector import Connector
from tests.histories.log import Log
from tests.histories.scripted import Script
from tests.locations import table_location
from tests.services.registered_schemas import ServedSchemas

CREATE = "CREATE TABLE n (`2nd id` INT PRIMARY KEY, `a-b c` INT, `größe` VARCHAR(20), plain_one INT)"
FIRST = {"2nd id": 1, "a-b c": 2, "größe": "m", "plain_one": 3}
SECOND = {"2nd id": 2, "a-b c": None, "größe": "l", "plain_one": 4}


@pytest.fixture
def converter() -> AvroConverter:
    return AvroConverter()


@pytest.fixture
def script(log: Log, lake: Path, converter: AvroConverter) -> Iterator[Script]:
    server = ServedSchemas(converter.schemas)
    yield Script(log, lake, "debezium-avro", registry={"url": server.url, "timeout": "5"})
    server.stop()


def content(script: Script) -> list[dict[str, Any]]:
    rows = DeltaTable(table_location(str(script.root), "shop", "n")).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda one: [str(one[name]) for name in sorted(one)])


@pytest.mark.parametrize("adjusted", [underscored, prefixed, escaped])
def test_names_of_statements_are_known(
    adjusted: Callable[[str], str], script: Script, converter: AvroConverter
) -> None:
    writer = Connector(converter, adjusted)
    script.send(writer.ddl(CREATE, 10))
    script.send(writer.row("c", "n", 20, FIRST, key=("2nd id",)))
    script.send(writer.row("c", "n", 30, SECOND, key=("2nd id",)))
    script.sync()
    assert script.states_of("shop", "n") == ["ok"]
    assert content(script) == [FIRST, SECOND]
    later = {**FIRST, "a-b c": 9}
    script.send(writer.row("u", "n", 40, later, before=FIRST, key=("2nd id",)))
    script.send(writer.row("d", "n", 50, None, before=SECOND, key=("2nd id",)))
    script.sync()
    assert content(script) == [later]
    renamed = {"größer" if name == "größe" else name: cell for name, cell in later.items()}
    script.send(writer.ddl("ALTER TABLE n RENAME COLUMN `größe` TO `größer`, ADD COLUMN `€` INT", 60))
    script.send(writer.row("c", "n", 70, {**renamed, "2nd id": 3, "€": 7}, key=("2nd id",)))
    script.sync()
    assert content(script) == [{**renamed, "€": None}, {**renamed, "2nd id": 3, "€": 7}]


def test_a_name_that_two_columns_may_have_is_not_taken_for_one(script: Script, converter: AvroConverter) -> None:
    writer = Connector(converter)
    script.send(writer.ddl("CREATE TABLE n (id INT PRIMARY KEY, `a-b` INT, `a b` INT)", 10))
    script.send(writer.row("c", "n", 20, {"id": 1, "a-b": 2, "a b": 3}, key=("id",), left_out=("a b",)))
    script.sync()
    ((state),) = script.states.values()
    assert state.state == "waiting"
    assert "[apply.schema_missing] a row has other columns" in state.reason
    assert "column.propagate.source.type" in state.reason
    assert not script.rows("shop", "n")


def test_names_that_the_schema_states_need_no_statement(script: Script, converter: AvroConverter) -> None:
    script.schema_topic = None
    writer = Connector(converter, propagates=True)
    both = {**FIRST, "a b c": 5}
    script.send(writer.row("c", "n", 20, both, key=("2nd id",), left_out=("a b c",)))
    script.sync()
    assert content(script) == [FIRST]


def test_a_name_that_a_transform_gave_is_no_adjusted_one(script: Script, converter: AvroConverter) -> None:
    script.schema_topic = None
    writer = Connector(converter, lambda name: {"a": "renamed"}.get(name, name), propagates=True)
    script.send(writer.row("c", "n", 20, {"id": 1, "a": 2}, key=("id",)))
    script.sync()
    assert content(script) == [{"id": 1, "renamed": 2}]


@pytest.mark.parametrize(
    ("name", "avro", "sanitized", "unicode"),
    [
        ("2nd-value", "_nd_value", "_2nd_value", "_u0032nd_u002dvalue"),
        ("a_b", "a_b", "a_b", "a_u005fb"),
        ("größe", "gr__e", "gr__e", "gr_u00f6_u00dfe"),
        ("名", "_", "_", "_u540d"),
        ("😀x", "__x", "__x", "_ud83d_ude00x"),
        ("tab\t", "tab_", "tab_", "tab_u009"),
        ("ā", "_", "_", "_u101"),
    ],
)
def test_names_are_adjusted_as_debezium_does(name: str, avro: str, sanitized: str, unicode: str) -> None:
    """As the code of SchemaNameAdjuster reads: characters are Java's, and few hex digits are not filled up to four."""
    assert (underscored(name), prefixed(name), escaped(name)) == (avro, sanitized, unicode)


@pytest.mark.parametrize(
    ("names", "columns", "known"),
    [
        (("id", "a_b"), ("id", "a-b"), {"a_b": "a-b"}),
        (("id", "a_b"), ("id", "a_b"), {}),
        (("id", "a_b", "x"), ("id", "a-b"), {"a_b": "a-b"}),  # the row has a column that the table lacks: it says so
        (("id", "a_b"), ("id", "a-b", "x-y"), {"a_b": "a-b"}),  # it lacks one: it says so, too
        (("id", "a_b", "x"), ("id", "a-b", "x-y"), {}),
        (("id", "a_b"), ("id", "a-b", "a b"), {}),
        (("id", "a_b"), ("id", "a_b", "a-b"), {}),
        (("a_u005fb", "c_u002dd"), ("a_b", "c-d"), {"a_u005fb": "a_b", "c_u002dd": "c-d"}),
        (("a_u005fb", "c_d"), ("a_b", "c-d"), {}),  # of two modes
        ((), ("a-b",), {}),
    ],
)
def test_only_what_one_mode_gives_is_taken_back(
    names: tuple[str, ...], columns: tuple[str, ...], known: dict[str, str]
) -> None:
    assert columns_of(names, columns) == known
