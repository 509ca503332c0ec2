# SPDX-License-Identifier: Apache-2.0
"""Catalogs as their own clients see them."""

from __future__ import annotations

from typing import Any, Protocol

import polars

from tests.services.process import free_port
from tests.services.s3 import S3
from tests.services.unity import UnityServer

Tables = dict[str, tuple[str, dict[str, str]]]


class Catalog(Protocol):
    """A catalog of a kind.

    section: what the pipeline states of it, without its connection.
    connection: to it.
    away: a connection to where nothing answers.
    """

    section: dict[str, str]
    connection: dict[str, Any]
    away: dict[str, Any]

    def put(self, database: str, table: str, location: str) -> None:
        """Create a table that is nobody's, in a database that may be missing."""
        ...

    def tables(self, database: str) -> Tables:
        """Return location and types of columns of each table of a database."""
        ...

    def writes(self, database: str, table: str) -> int:
        """Return how often the entry of a table was written."""
        ...


class GlueCatalog:
    """Glue of moto's server."""

    def __init__(self, service: S3) -> None:
        import boto3

        keys = {"login": service.access_key, "password": service.secret_key}
        aws = {"conn_type": "aws", **keys}
        self.section = {"type": "glue"}
        self.connection = {**aws, "extra": {"endpoint_url": service.endpoint, "region_name": service.region}}
        nowhere = f"http://127.0.0.1:{free_port()}"
        self.away = {**aws, "extra": {"endpoint_url": nowhere, "region_name": service.region}}
        self.client = boto3.client(
            "glue",
            endpoint_url=service.endpoint,
            region_name=service.region,
            aws_access_key_id=service.access_key,
            aws_secret_access_key=service.secret_key,
        )

    def put(self, database: str, table: str, location: str) -> None:
        self.client.create_database(DatabaseInput={"Name": database})
        entry = {"Name": table, "StorageDescriptor": {"Location": location, "Columns": []}}
        self.client.create_table(DatabaseName=database, TableInput=entry)

    def tables(self, database: str) -> Tables:
        answer = self.client.get_tables(DatabaseName=database)["TableList"]
        storages = {one["Name"]: one["StorageDescriptor"] for one in answer}
        return {
            name: (storage["Location"], {column["Name"]: column["Type"] for column in storage["Columns"]})
            for name, storage in storages.items()
        }

    def writes(self, database: str, table: str) -> int:
        versions = self.client.get_table_versions(DatabaseName=database, TableName=table)
        return len(versions["TableVersions"])


class UnityCatalog:
    """The stand-in of a Unity Catalog server, read by the client that polars has."""

    def __init__(self, server: UnityServer) -> None:
        self.server = server
        self.section = {"type": "unity", "catalog": server.catalog}
        self.connection = {"conn_type": "http", "host": server.address, "password": server.token}
        self.away = {**self.connection, "host": f"http://127.0.0.1:{free_port()}"}
        self.client = polars.Catalog(server.address, bearer_token=server.token, require_https=False)

    def put(self, database: str, table: str, location: str) -> None:
        self.server.schemas[database] = {"name": database, "catalog_name": self.server.catalog}
        entry = {
            "name": table, "catalog_name": self.server.catalog, "schema_name": database, "table_type": "EXTERNAL",
            "data_source_format": "DELTA", "storage_location": location,
        }  # fmt: skip
        assert self.server.create_table(entry)[0] == 200

    def tables(self, database: str) -> Tables:
        present = self.client.list_tables(self.server.catalog, database)
        return {
            table.name: (
                str(table.storage_location).removeprefix("file://"),
                {column.name: column.type_text for column in table.columns or ()},
            )
            for table in present
        }

    def writes(self, database: str, table: str) -> int:
        return self.server.created.count(f"{database}.{table}")
