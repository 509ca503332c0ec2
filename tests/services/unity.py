# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a Unity Catalog server, after the API document of the open one: its own is in no package registry."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_API = "/api/2.1/unity-catalog"
_TABLE = {"name", "catalog_name", "schema_name", "table_type", "data_source_format"}  # required, as the document says
_COLUMN = {"name", "type_text", "type_name", "type_json", "position", "nullable"}
_TYPES = frozenset(
    """
    BOOLEAN BYTE SHORT INT LONG FLOAT DOUBLE DATE TIMESTAMP TIMESTAMP_NTZ STRING BINARY DECIMAL INTERVAL ARRAY STRUCT
    MAP CHAR NULL USER_DEFINED_TYPE TABLE_TYPE
    """.split()  # noqa: SIM905
)


class UnityServer:
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
        server = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.headers.get("authorization") != f"Bearer {server.token}":
                    return self._send(401, {"error_code": "UNAUTHENTICATED", "message": "no valid token"})
                status, content = server._answer(self.command, self.path, json.loads(body) if body else {})
                lost, server._lost = server._lost, "" if server._lost == self.command else server._lost
                if lost != self.command:
                    self._send(status, content)

            def _send(self, status: int, content: dict[str, Any]) -> None:
                data = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = _serve

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def lose(self, method: str) -> None:
        """Carry out the next request of a method without an answer."""
        self._lost = method

    def stop(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        parts = urlsplit(path)
        route, _, name = parts.path.removeprefix(f"{_API}/").partition("/")
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if route == "schemas" and method == "POST":
            return self._create_schema(body)
        if route != "tables":
            return _error(404, "NOT_FOUND", "no such route")
        if method == "POST":
            return self.create_table(body)
        if not name:
            prefix = f"{query['catalog_name']}.{query['schema_name']}."
            return 200, {"tables": [table for full, table in self.tables.items() if full.startswith(prefix)]}
        full = unquote(name)
        if full not in self.tables:
            return _error(404, "TABLE_NOT_FOUND", f"table not found: {full}")
        return (200, self.tables.pop(full) and {}) if method == "DELETE" else (200, self.tables[full])

    def _create_schema(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if body["catalog_name"] != self.catalog:
            return _error(404, "CATALOG_NOT_FOUND", "catalog not found")
        if body["name"] in self.schemas:
            return _error(409, "SCHEMA_ALREADY_EXISTS", "schema exists")
        self.schemas[body["name"]] = body
        return 200, {**body, "full_name": f"{self.catalog}.{body['name']}"}

    def create_table(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
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


def _error(status: int, code: str, message: str) -> tuple[int, dict[str, Any]]:
    return status, {"error_code": code, "message": message}
