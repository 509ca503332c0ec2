# SPDX-License-Identifier: Apache-2.0
"""Register tables in the AWS Glue Data Catalog through boto3."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow_provider_cdc.connections.lookup import storage_options
from airflow_provider_cdc.core.config.register import Register
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.registrars.column_types import hive_type
from airflow_provider_cdc.registrars.contract import (
    CALL_SECONDS,
    CatalogName,
    CatalogTable,
    RegistrationError,
    foreign,
    is_at,
    shown,
)
from airflow_provider_cdc.sinks.contract import StoredColumn

# What Spark, Trino and Athena know a Delta table by. Apache XTable writes the same.
_PARAMETERS = {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "delta", "table_type": "delta"}
_KEPT = ("Owner", "Retention", "ViewOriginalText", "ViewExpandedText", "PartitionKeys")
_MISSING, _THERE = "EntityNotFoundException", "AlreadyExistsException"
_COMMENT, _DESCRIPTION = 255, 2048  # characters of a column's comment, and of a table's
_REFUSED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_LINE_REFUSED = re.compile(r"[\x00-\x08\x0a-\x1f\ufffe\uffff]")  # a column's comment is one line
# of the whole catalog, not of one table
_PASSING = {
    "AccessDeniedException", "ConcurrentModificationException", "ExpiredTokenException", "GlueEncryptionException",
    "InternalServiceException", "InvalidSignatureException", "OperationTimeoutException", "ThrottlingException",
    "UnrecognizedClientException",
}  # fmt: skip


class GlueRegistrar:
    """Keeps entries of a Glue Data Catalog.

    :param client: boto3's client of Glue.
    :param catalog: account whose catalog it is; empty for that of the credentials.
    """

    def __init__(self, client: Any, catalog: str = "") -> None:
        self._client = client
        self._catalog = {"CatalogId": catalog} if catalog else {}

    def register(self, table: CatalogTable) -> None:
        """Let the catalog have the table, in a database that is created where it is missing."""
        there = self._entry(table.name)
        if there is None:
            self._create(table)
            return
        at = there.get("StorageDescriptor", {}).get("Location", "")
        if not is_at(at, table.location):
            raise foreign(table.name, at)
        entry = _entry_of(table, there)
        if any(there.get(key) != value for key, value in entry.items()):
            self._call("update_table", DatabaseName=table.name.database, TableInput=entry)

    def remove(self, name: CatalogName, location: str) -> bool:
        """Let the catalog have no entry of this name and location; return False for one with another location."""
        there = self._entry(name)
        if there is None:
            return True
        if not is_at(there.get("StorageDescriptor", {}).get("Location", ""), location):
            return False
        self._call("delete_table", ignored=_MISSING, DatabaseName=name.database, Name=name.table)
        return True

    def _entry(self, name: CatalogName) -> dict[str, Any] | None:
        answer = self._call("get_table", ignored=_MISSING, DatabaseName=name.database, Name=name.table)
        return None if answer is None else answer["Table"]

    def _create(self, table: CatalogTable) -> None:
        request: dict[str, Any] = {"DatabaseName": table.name.database, "TableInput": _entry_of(table, {})}
        if self._call("create_table", ignored=_MISSING, **request) is None:
            self._call("create_database", ignored=_THERE, DatabaseInput={"Name": table.name.database})
            self._call("create_table", **request)

    def _call(self, operation: str, ignored: str = "", **request: Any) -> Any:
        """Return the answer of a call; None where it failed with the ignored error.

        :raises RegistrationError: it failed otherwise.
        """
        from botocore.exceptions import ClientError

        with _explained():
            try:
                return getattr(self._client, operation)(**self._catalog, **request)
            except ClientError as error:
                if error.response["Error"]["Code"] == ignored:
                    return None
                raise


@contextmanager
def _explained() -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code, message = (str(error.response["Error"].get(key, "")) for key in ("Code", "Message"))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        passing = code in _PASSING or status >= 500
        raise RegistrationError(f"Glue answers {shown(f'{code}: {message}')}", passing=passing) from None
    except BotoCoreError as error:
        raise RegistrationError(f"Glue cannot be asked ({type(error).__name__})", passing=True) from None


def _entry_of(table: CatalogTable, there: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a table; what others wrote into the present one and a table does not state stays."""
    storage = there.get("StorageDescriptor", {})
    comments = {one["Name"]: one.get("Comment", "") for one in storage.get("Columns", ())}
    serde = storage.get("SerdeInfo", {})
    path = {"serialization.format": "1", "path": table.location}
    entry = {
        **{key: there[key] for key in _KEPT if key in there},
        "Name": table.name.table,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {**there.get("Parameters", {}), **_PARAMETERS},
        "StorageDescriptor": {
            **storage,
            "Columns": [_column(column, comments.get(column.name.lower(), "")) for column in table.columns],
            "Location": table.location,
            "SerdeInfo": {**serde, "Parameters": {**serde.get("Parameters", {}), **path}},
        },
    }
    comment = _REFUSED.sub(" ", table.comment)[:_DESCRIPTION] or there.get("Description", "")
    return {**entry, "Description": comment} if comment else entry


def _column(column: StoredColumn, comment: str) -> dict[str, str]:
    comment = _LINE_REFUSED.sub(" ", column.comment or comment)[:_COMMENT]
    # Athena and Hive know no upper case
    named = {"Name": column.name.lower(), "Type": hive_type(column.type)}
    return {**named, "Comment": comment} if comment else named


def open_registrar(section: Register) -> GlueRegistrar:
    """Return the catalog of a pipeline's section.

    :raises ConfigurationError: boto3 is missing, or the connection is not one of AWS.
    """
    try:
        import boto3
        from botocore.config import Config
    except ModuleNotFoundError:
        raise ConfigurationError(
            ["sink.register.type: glue needs boto3: pip install 'airflow-provider-cdc[glue]'"]
        ) from None
    options = storage_options(section.connection)
    waits = Config(connect_timeout=CALL_SECONDS, read_timeout=CALL_SECONDS, retries={"total_max_attempts": 1})
    with _explained():
        client = boto3.client(
            "glue",
            region_name=options.get("AWS_REGION"),
            endpoint_url=options.get("AWS_ENDPOINT_URL"),
            aws_access_key_id=options.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=options.get("AWS_SECRET_ACCESS_KEY"),
            aws_session_token=options.get("AWS_SESSION_TOKEN"),
            config=waits,
        )
    return GlueRegistrar(client, section.catalog)
