# SPDX-License-Identifier: Apache-2.0
"""Check what entries of a catalog become, for each kind of catalog, as other clients see them."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from airflow_provider_cdc.core.config.register import Register
from airflow_provider_cdc.core.config.registrar_kinds import REGISTRARS
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.types import arrow_type
from airflow_provider_cdc.registrars import glue, unity
from airflow_provider_cdc.registrars.column_types import hive_type, type_text
from airflow_provider_cdc.registrars.contract import (
    CatalogName,
    CatalogTable,
    Registrar,
    RegistrationError,
    is_at,
)
from airflow_provider_cdc.sinks.contract import StoredColumn
from airflow_provider_cdc.sinks.delta import reader
from tests.services.catalogs import Catalog, GlueCatalog, UnityCatalog
from tests.services.unity import UnityServer

MODULES = {"glue": glue, "unity": unity}
COLUMNS = (StoredColumn("id", "long", False, "the key"), StoredColumn("price", "decimal(10,2)"))

# source type, Spark's text, Hive's where it is another one; by hand, from the pages of Spark's and Hive's types
TYPES = [
    (ColumnType("tinyint"), "tinyint", ""),
    (ColumnType("tinyint", unsigned=True), "smallint", ""),
    (ColumnType("int"), "int", ""),
    (ColumnType("int", unsigned=True), "bigint", ""),
    (ColumnType("bigint"), "bigint", ""),
    (ColumnType("bigint", unsigned=True), "decimal(20,0)", ""),
    (ColumnType("decimal", 38, 10), "decimal(38,10)", ""),
    (ColumnType("float"), "float", ""),
    (ColumnType("double"), "double", ""),
    (ColumnType("bit", 1), "boolean", ""),
    (ColumnType("bit", 20), "bigint", ""),
    (ColumnType("year"), "smallint", ""),
    (ColumnType("date"), "date", ""),
    (ColumnType("datetime", 6), "timestamp_ntz", "timestamp"),
    (ColumnType("timestamp", 6), "timestamp", ""),
    (ColumnType("time", 6), "string", ""),
    (ColumnType("varchar", 20), "string", ""),
    (ColumnType("json"), "string", ""),
    (ColumnType("blob"), "binary", ""),
    (ColumnType("geometry"), "binary", ""),
    (ColumnType("vector", 3), "array<float>", ""),
]


@pytest.fixture
def unity_server() -> Iterator[UnityServer]:
    server = UnityServer()
    yield server
    server.stop()


@pytest.fixture(params=list(REGISTRARS))
def catalog(request: pytest.FixtureRequest) -> Catalog:
    """Return a catalog of each kind."""
    if request.param == "glue":
        return GlueCatalog(request.getfixturevalue("s3"))
    return UnityCatalog(request.getfixturevalue("unity_server"))


def opened(catalog: Catalog, monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any] | None = None) -> Registrar:
    monkeypatch.setenv("AIRFLOW_CONN_THE_CATALOG", json.dumps(connection or catalog.connection))
    section = Register(connection="the_catalog", **catalog.section)
    registrar: Registrar = MODULES[section.type].open_registrar(section)
    return registrar


def test_an_entry_comes_changes_and_goes(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    registrar = opened(catalog, monkeypatch)
    table = CatalogTable(CatalogName("comes", "orders"), "s3://lake/comes/orders", COLUMNS, "of the shop")
    for _ in range(2):
        registrar.register(table)
    assert catalog.tables("comes") == {"orders": (table.location, {"id": "bigint", "price": "decimal(10,2)"})}
    assert catalog.writes("comes", "orders") == 1  # the second time there was nothing to send
    wider = replace(table, columns=(*COLUMNS, StoredColumn("at", "date")))
    for _ in range(2):
        registrar.register(wider)
    assert list(catalog.tables("comes")["orders"][1]) == ["id", "price", "at"]
    assert catalog.writes("comes", "orders") == 2
    for _ in range(2):
        assert registrar.remove(table.name, table.location)
    assert catalog.tables("comes") == {}


def test_an_entry_of_others_is_left_as_it_is(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog.put("others", "orders", "s3://their/orders")
    before = catalog.tables("others")
    registrar, name = opened(catalog, monkeypatch), CatalogName("others", "orders")
    with pytest.raises(RegistrationError, match=r"others\.orders at s3://their/orders, which is not ours") as caught:
        registrar.register(CatalogTable(name, "s3://lake/others/orders", COLUMNS))
    assert not caught.value.passing
    assert not registrar.remove(name, "s3://lake/others/orders")
    assert (catalog.tables("others"), catalog.writes("others", "orders")) == (before, 1)


def test_a_catalog_that_does_not_answer_is_given_up(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULES[catalog.section["type"]], "CALL_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        hangs = {**catalog.connection, "host": address} | (
            {"extra": {**catalog.connection["extra"], "endpoint_url": address}} if "extra" in catalog.connection else {}
        )
        for connection in (catalog.away, hangs):
            registrar, started = opened(catalog, monkeypatch, connection), time.monotonic()
            with pytest.raises(RegistrationError) as caught:
                registrar.register(CatalogTable(CatalogName("away", "orders"), "s3://lake/orders", COLUMNS))
            assert caught.value.passing
            assert catalog.connection["password"] not in str(caught.value)
            assert time.monotonic() - started < 8


def test_an_answer_that_is_lost_repeats_nothing(unity_server: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = UnityCatalog(unity_server)
    registrar = opened(catalog, monkeypatch)
    table = CatalogTable(CatalogName("lost", "orders"), "/lake/a b/lost/orders", COLUMNS)
    wider = replace(table, columns=(*COLUMNS, StoredColumn("at", "date")))
    unity_server.schemas["lost"] = {}
    for lost, now in (("POST", table), ("DELETE", wider), ("POST", replace(wider, columns=COLUMNS))):
        unity_server.lose(lost)
        with pytest.raises(RegistrationError) as caught:
            registrar.register(now)
        assert caught.value.passing
        registrar.register(now)
        assert unity_server.created.count("lost.orders") == 1
        unity_server.created.clear()
    (entry,) = unity_server.tables.values()
    assert entry["storage_location"] == "file:///lake/a%20b/lost/orders"


def test_a_managed_table_is_never_deleted(unity_server: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    registrar = opened(UnityCatalog(unity_server), monkeypatch)
    table = CatalogTable(CatalogName("m", "orders"), "s3://lake/m/orders", COLUMNS)
    registrar.register(table)
    unity_server.tables["main.m.orders"]["table_type"] = "MANAGED"
    with pytest.raises(RegistrationError, match="not ours"):
        registrar.register(replace(table, columns=COLUMNS[:1]))
    assert not registrar.remove(table.name, table.location)
    assert list(unity_server.tables) == ["main.m.orders"]


def test_a_login_that_is_refused_and_a_catalog_that_is_missing_end_the_work(
    unity_server: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = UnityCatalog(unity_server)
    table = CatalogTable(CatalogName("m", "orders"), "s3://lake/m/orders", COLUMNS)
    with pytest.raises(RegistrationError, match="401") as caught:
        opened(catalog, monkeypatch, {**catalog.connection, "password": "wrong"}).register(table)
    assert caught.value.passing and "wrong" not in str(caught.value)
    catalog.section["catalog"] = "nowhere"
    with pytest.raises(RegistrationError, match="no catalog 'nowhere'") as caught:
        opened(catalog, monkeypatch).register(table)
    assert caught.value.passing


def test_what_people_wrote_into_an_entry_stays(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = GlueCatalog(s3)
    registrar = opened(catalog, monkeypatch)
    table = CatalogTable(CatalogName("stays", "orders"), "s3://lake/stays/orders", COLUMNS)
    registrar.register(table)
    entry = catalog.client.get_table(DatabaseName="stays", Name="orders")["Table"]
    assert entry["Parameters"] == {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "delta", "table_type": "delta"}
    assert entry["StorageDescriptor"]["SerdeInfo"]["Parameters"]["path"] == table.location
    changed = {key: entry[key] for key in ("Name", "TableType", "StorageDescriptor")}
    changed["StorageDescriptor"]["Columns"][1]["Comment"] = "in euro"
    changed |= {"Parameters": {**entry["Parameters"], "team": "a"}, "Owner": "me", "Description": "ours"}
    catalog.client.update_table(DatabaseName="stays", TableInput=changed)
    registrar.register(replace(table, columns=COLUMNS[::-1]))
    entry = catalog.client.get_table(DatabaseName="stays", Name="orders")["Table"]
    comments = {column["Name"]: column.get("Comment") for column in entry["StorageDescriptor"]["Columns"]}
    assert comments == {"price": "in euro", "id": "the key"}
    assert (entry["Parameters"]["team"], entry["Owner"], entry["Description"]) == ("a", "me", "ours")


def test_every_type_has_its_text(tmp_path: Path, unity_server: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"c{number}" for number in range(len(TYPES))]
    schema = pa.schema([(name, arrow_type(source)) for name, (source, _, _) in zip(names, TYPES, strict=True)])
    write_deltalake(str(tmp_path), pa.table({field.name: pa.nulls(0, field.type) for field in schema}, schema=schema))
    columns = reader().open(str(tmp_path), {}).columns()
    assert [(column.name, type_text(column.type)) for column in columns] == [
        (name, text) for name, (_, text, _) in zip(names, TYPES, strict=True)
    ]
    assert [hive_type(column.type) for column in columns] == [hive or text for _, text, hive in TYPES]
    # polars reads the types from the JSON of each column
    catalog = UnityCatalog(unity_server)
    opened(catalog, monkeypatch).register(CatalogTable(CatalogName("types", "t"), str(tmp_path), tuple(columns)))
    (table,) = catalog.client.list_tables("main", "types")
    read = {name: str(kind) for name, kind in (table.get_polars_schema() or {}).items()}
    assert (read["c6"], read["c9"], read["c20"]) == ("Decimal(precision=38, scale=10)", "Boolean", "List(Float32)")
    assert len(read) == len(TYPES)


@pytest.mark.parametrize(
    ("entry", "location", "same"),
    [
        ("s3://lake/a/", "s3://lake/a", True),
        ("s3a://lake//a", "s3://lake/a", True),
        ("file:/lake/a%20b", "/lake/a b", True),
        ("file:///lake/a", "/lake/a", True),
        ("/lake/a", "/lake/a", True),
        ("s3://lake/ab", "s3://lake/a", False),
        ("s3://lake/a%20b", "s3://lake/a b", False),
        ("", "/lake/a", False),
    ],
)
def test_locations_are_compared_in_any_spelling(entry: str, location: str, same: bool) -> None:
    assert is_at(entry, location) is same
