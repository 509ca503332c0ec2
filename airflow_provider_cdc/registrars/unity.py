# SPDX-License-Identifier: Apache-2.0
"""Register tables in Unity Catalog through its open REST API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

from airflow_provider_cdc.connections.lookup import find_connection
from airflow_provider_cdc.core.config.register import Register
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.registrars.column_types import type_text
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

_API = "/api/2.1/unity-catalog"
_CONNECTION_TYPES = ("http", "databricks", "generic")
_MOST = 16 << 20  # bytes of an answer
_NOT_FOUND, _CONFLICT = 404, 409
_PASSING = (401, 403, 408, 425, 429)  # of the whole catalog, not of one table
_THERE = "ALREADY_EXISTS"


class _NoRedirects(HTTPRedirectHandler):
    """Follow no redirect: the token would go with it."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


class _RefusedError(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    @property
    def is_there(self) -> bool:
        """Return whether what was to be created exists."""
        return self.status == _CONFLICT or _THERE in self.code


class UnityRegistrar:
    """Keeps entries of one catalog of a Unity server.

    :param address: the server's, without a path of the API.
    :param token: empty for a server without login.
    :param catalog: it has to exist.
    """

    def __init__(self, address: str, token: str, catalog: str) -> None:
        self._address, self._catalog = address.rstrip("/") + _API, catalog
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._opener = build_opener(_NoRedirects)

    def register(self, table: CatalogTable) -> None:
        """Let the catalog have the table, in a schema that is created where it is missing.

        The API changes no columns of a table: an entry with others is deleted and created again.
        """
        there = self._entry(table.name)
        if there is not None:
            if not _is_ours(there, table.location):
                raise foreign(table.name, str(there.get("storage_location") or ""))
            if _shape(there.get("columns") or ()) == _shape(_columns(table)):
                return
            self._delete(table.name)
        self._create(table)

    def remove(self, name: CatalogName, location: str) -> bool:
        """Let the catalog have no entry of this name and location; return False for one with another location."""
        there = self._entry(name)
        if there is None:
            return True
        if not _is_ours(there, location):
            return False
        self._delete(name)
        return True

    def _entry(self, name: CatalogName) -> Mapping[str, Any] | None:
        try:
            answer: Mapping[str, Any] = self._call("GET", self._path(name))
        except _RefusedError as error:
            if error.status == _NOT_FOUND:
                return None
            raise _explained(error) from None
        return answer

    def _delete(self, name: CatalogName) -> None:
        try:
            self._call("DELETE", self._path(name))
        except _RefusedError as error:
            if error.status != _NOT_FOUND:
                raise _explained(error) from None

    def _create(self, table: CatalogTable) -> None:
        entry = {
            "name": table.name.table,
            "catalog_name": self._catalog,
            "schema_name": table.name.database,
            "table_type": "EXTERNAL",
            "data_source_format": "DELTA",
            "columns": _columns(table),
            "storage_location": _uri(table.location),
            **({"comment": table.comment} if table.comment else {}),
        }
        try:
            try:
                self._call("POST", "/tables", entry)
            except _RefusedError as error:
                if error.status != _NOT_FOUND:
                    raise
                self._create_schema(table.name.database)
                self._call("POST", "/tables", entry)
        except _RefusedError as error:
            raise _explained(error) from None

    def _create_schema(self, name: str) -> None:
        try:
            self._call("POST", "/schemas", {"name": name, "catalog_name": self._catalog})
        except _RefusedError as error:
            if error.status == _NOT_FOUND:
                raise RegistrationError(f"the server has no catalog {self._catalog!r}", passing=True) from None
            if not error.is_there:
                raise

    def _path(self, name: CatalogName) -> str:
        return f"/tables/{quote(f'{self._catalog}.{name}', safe='.')}"

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON of an answer.

        :raises _RefusedError: the answer is an error.
        :raises RegistrationError: there was none in time, or it is not the API's.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Accept": "application/json", "Content-Type": "application/json"}
        request = Request(self._address + path, data, headers, method=method)
        try:
            with self._opener.open(request, timeout=CALL_SECONDS) as answer:
                content = answer.read(_MOST)
            return json.loads(content) if content else {}
        except HTTPError as error:
            with error:
                raise _refusal(error.code, error.read(_MOST)) from None
        except (URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise RegistrationError(f"Unity Catalog does not answer ({type(reason).__name__})", passing=True) from None
        except ValueError:
            raise RegistrationError("the answer is not Unity Catalog's: check the address", passing=True) from None


def _refusal(status: int, content: bytes) -> _RefusedError:
    try:
        members = json.loads(content)
        return _RefusedError(status, str(members.get("error_code", "")), str(members.get("message", "")))
    except (ValueError, AttributeError):
        return _RefusedError(status, "", "")


def _explained(error: _RefusedError) -> RegistrationError:
    text = shown(f"Unity Catalog answers {error.status} {error.code} {error.message}")
    return RegistrationError(text, passing=error.status in _PASSING or error.status >= 500)


def _is_ours(entry: Mapping[str, Any], location: str) -> bool:
    """Return whether an entry may be deleted: with a managed table the server would delete its files."""
    external = entry.get("table_type") == "EXTERNAL"
    return external and is_at(str(entry.get("storage_location") or ""), location)


def _uri(location: str) -> str:
    return f"file://{quote(location)}" if location.startswith("/") else location


def _columns(table: CatalogTable) -> list[dict[str, Any]]:
    return [_column(column, position) for position, column in enumerate(table.columns)]


def _column(column: StoredColumn, position: int) -> dict[str, Any]:
    text = type_text(column.type)
    field = {"name": column.name, "type": column.type, "nullable": column.nullable, "metadata": {}}
    described = {
        "name": column.name,
        "type_text": text,
        "type_name": _type_name(column.type),
        "type_json": json.dumps(field),
        "position": position,
        "nullable": column.nullable,
        **({"comment": column.comment} if column.comment else {}),
    }
    if text.startswith("decimal("):
        precision, scale = text[len("decimal(") : -1].split(",")
        described |= {"type_precision": int(precision), "type_scale": int(scale)}
    return described


def _type_name(stored: Any) -> str:
    """Return the name of a type in the API's list ``ColumnTypeName``."""
    if not isinstance(stored, str):
        return str(stored["type"]).upper()
    return {"integer": "INT"}.get(stored, stored.partition("(")[0].upper())


def _shape(columns: Any) -> list[tuple[Any, ...]]:
    """Return what an entry's columns are compared by."""
    ordered = sorted(columns, key=lambda column: column.get("position", 0))
    return [
        (one.get("name"), str(one.get("type_text", "")).lower().replace(" ", ""), one.get("nullable", True))
        for one in ordered
    ]


def open_registrar(section: Register) -> UnityRegistrar:
    """Return the catalog of a pipeline's section.

    :raises ConfigurationError: the connection names no server.
    """
    conn = find_connection(section.connection, _CONNECTION_TYPES)
    host = conn.host or ""
    if not host:
        raise ConfigurationError([f"connection {section.connection}: names no host"])
    address = host if "://" in host else f"{conn.schema or 'https'}://{host}"
    if not address.startswith(("http://", "https://")):
        raise ConfigurationError([f"connection {section.connection}: the address is not one of HTTP"])
    if conn.port:
        address = f"{address.rstrip('/')}:{conn.port}"
    return UnityRegistrar(address, conn.password or "", section.catalog)
