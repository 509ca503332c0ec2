# SPDX-License-Identifier: Apache-2.0
"""Catalogs as their own clients see them."""

from __future__ import annotations

from typing import Any, Protocol

from tests.services.process import free_port
from tests.services.s3 import S3

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
