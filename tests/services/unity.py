# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a Unity Catalog server, after the API document of the open one: its own is in no package registry."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from tests.services.json_server import Answer, JsonServer

_API = "/api/2.1/unity-catalog"
_TABLE = {"name", "catalog_name", "schema_name", "table_type", "data_source_format"}  # required, as the document says
_COLUMN = {"name", "type_text", "type_name", "type_json", "position", "nullable"}
_TYPES = frozenset(
    """
    BOOLEAN BYTE SHORT INT LONG FLOAT DOUBLE DATE TIMESTAMP TIMESTAMP_NTZ STRING BINARY DECIMAL INTERVAL ARRAY STRUCT
    MAP CHAR NULL USER_DEFINED_TYPE TABLE_TYPE
    """.split()  # noqa: SIM905
)


class UnityServer(JsonServer):
    """One catalog, with the schemas and tables that are made in it.

    created: names of tables that were created, each time.
    """

    catalog = "main"
    token = "dapi-s3cret"

    def __init__(self) -> None:
        self.schemas: dict[str, dict[str, Any]] = {}
        self.tables: dict[str, dict[str, Any]] = {}
        self.created: list[str] = []
        self._lost = ""
        super().__init__()
        self.address = f"http://127.0.0.1:{self.port}"

    def lose(self, method: str) -> None:
        """Carry out the next request of a method without an answer."""
        self._lost = method

    def answer(self, method: str, path: str, document: dict[str, Any], login: str) -> Answer | None:
        """Answer as the API does."""
        if login != f"Bearer {self.token}":
            return 401, {"error_code": "UNAUTHENTICATED", "message": "no valid token"}
        answer = self._answer(method, path, document)
        if self._lost != method:
            return answer
        self._lost = ""
        return None

    def _answer(self, method: str, path: str, document: dict[str, Any]) -> Answer:
        route, _, name = path.removeprefix(f"{_API}/").partition("/")
        if route == "schemas" and method == "POST":
            return self._create_schema(document)
        if route != "tables":
            return _error(404, "NOT_FOUND", "no such route")
        if method == "POST":
            return self.create_table(document)
        if not name:
            prefix = f"{document['catalog_name']}.{document['schema_name']}."
            return 200, {"tables": [table for full, table in self.tables.items() if full.startswith(prefix)]}
        full = unquote(name)
        if full not in self.tables:
            return _error(404, "TABLE_NOT_FOUND", f"table not found: {full}")
        return (200, self.tables.pop(full) and {}) if method == "DELETE" else (200, self.tables[full])

    def _create_schema(self, body: dict[str, Any]) -> Answer:
        if body["catalog_name"] != self.catalog:
            return _error(404, "CATALOG_NOT_FOUND", "catalog not found")
        if body["name"] in self.schemas:
            return _error(409, "SCHEMA_ALREADY_EXISTS", "schema exists")
        self.schemas[body["name"]] = body
        return 200, {**body, "full_name": f"{self.catalog}.{body['name']}"}

    def create_table(self, body: dict[str, Any]) -> Answer:
        """Return status and content of the answer to a request for a table."""
        if body["catalog_name"] != self.catalog or body["schema_name"] not in self.schemas:
            return _error(404, "SCHEMA_NOT_FOUND", "schema not found")
        missing = _TABLE - body.keys()
        columns = body.get("columns") or []
        for column in columns:
            missing |= _COLUMN - column.keys()
        if missing or any(column["type_name"] not in _TYPES for column in columns):
            return _error(400, "INVALID_ARGUMENT", f"missing: {sorted(missing)}")
        if "://" not in body.get("storage_location", ""):
            return _error(400, "INVALID_ARGUMENT", "the location of an external table is an address")
        name = f"{body['schema_name']}.{body['name']}"
        full = f"{self.catalog}.{name}"
        if full in self.tables:
            return _error(409, "TABLE_ALREADY_EXISTS", f"table exists: {full}")
        self.created.append(name)
        self.tables[full] = {**body, "table_id": f"id-{len(self.created)}", "created_at": 1, "updated_at": 1}
        return 200, self.tables[full]


def _error(status: int, code: str, message: str) -> Answer:
    return status, {"error_code": code, "message": message}
