# SPDX-License-Identifier: Apache-2.0
"""Iceberg's own REST catalog (its test fixture) on this machine, and a proxy that loses answers of it."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyspark

from airflow_provider_cdc.engine.jars import fetch, jar_cache, lock_of
from airflow_provider_cdc.engine.java import find_java
from tests.services.process import SHORT_LIVED_JAVA, Server, free_port, listens
from tests.services.s3 import S3

LOCK = Path(__file__).with_name("rest_catalog.lock")
_FLAGS = ["-Xmx400m", *SHORT_LIVED_JAVA.split(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
_COMMIT = re.compile(r"/v1/(namespaces/[^/]+/tables/[^/]+|transactions/commit)")
_OWN_HEADERS = {"host", "content-length", "accept-encoding", "transfer-encoding", "connection"}


class RestCatalog:
    """A catalog that is ready when the constructor returns; its tables' files stay where tables say.

    :param s3: the store that it may keep tables in, None for this machine alone.
    """

    def __init__(self, s3: S3 | None = None) -> None:
        java = find_java().executable
        locks = [LOCK] if s3 is None else [lock_of("s3a", "4.1"), LOCK]  # the fixture has an older client of its own
        jars = [jar for lock in locks for jar in fetch(lock, jar_cache(), java, _to_stderr)]
        self._folder = Path(tempfile.mkdtemp(prefix="cdc-rest-"))
        port = free_port()
        settings = {
            "CATALOG_IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
            "URI": f"jdbc:sqlite:{self._folder}/catalog.db",
            "WAREHOUSE": f"file://{self._folder}/warehouse",
            "JDBC_SCHEMA__VERSION": "V1",
            "REST_PORT": str(port),
        }
        environment = {**os.environ, **{f"CATALOG_{_variable(name)}": value for name, value in settings.items()}}
        if s3 is not None:
            (self._folder / "core-site.xml").write_text(_hadoop_settings(s3))
        further = [] if s3 is None else (Path(pyspark.__file__).parent / "jars").glob("httpc*-4.*.jar")  # of the client
        classes = ":".join(map(str, [self._folder, *jars, *further]))
        command = [str(java), *_FLAGS, "-cp", classes, "org.apache.iceberg.rest.RESTCatalogServer"]
        self.uri = f"http://127.0.0.1:{port}"
        self._server = Server("REST catalog", command, self._folder / "catalog.log", env=environment)
        self._server.wait_until(lambda: listens(port), timeout=60)

    def options(self) -> dict[str, str]:
        """Return the options of a sink of its tables."""
        return {"iceberg.type": "rest", "iceberg.uri": self.uri}

    def stop(self) -> None:
        """Stop the server."""
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _hadoop_settings(s3: S3) -> str:
    """Return the settings with which Hadoop's client reads and writes ``s3://`` in a store of tests."""
    values = {
        "fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.s3a.endpoint": s3.endpoint,
        "fs.s3a.endpoint.region": s3.region,
        "fs.s3a.access.key": s3.access_key,
        "fs.s3a.secret.key": s3.secret_key,
        "fs.s3a.path.style.access": "true",
    }
    stated = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in values.items())
    return f"<configuration>{''.join(stated)}</configuration>"


def _variable(name: str) -> str:
    return {"CATALOG_IMPL": "CATALOG__IMPL"}.get(name, name)


@cache
def shared_catalog() -> RestCatalog:
    """Return a catalog that the process keeps."""
    return RestCatalog()


class LosingProxy:
    """Hands requests on to a catalog; answers one commit, or some, with a status of its own.

    :ivar strikes: returns for each commit what happens to it: None, or as :meth:`lose` takes it.
    :ivar uri: to reach the catalog through it.
    :ivar asked: bodies of the requests for commits.
    """

    def __init__(self, catalog: RestCatalog) -> None:
        address = catalog.uri.removeprefix("http://")
        self.asked: list[dict[str, Any]] = []
        self.strikes: Callable[[], tuple[str, int] | None] = lambda: None
        self._fault: tuple[str, int] | None = None
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def _forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                commits = self.command == "POST" and bool(_COMMIT.fullmatch(self.path))
                fault = proxy._take() if commits else None
                if commits:
                    proxy.asked.append(json.loads(body))
                if fault is not None and fault[0] == "before":
                    return self._answer(fault[1], {}, b"{}")
                client = http.client.HTTPConnection(address, timeout=30)
                headers = {name: value for name, value in self.headers.items() if name.lower() not in _OWN_HEADERS}
                client.request(self.command, self.path, body or None, headers)
                answer = client.getresponse()
                content, status = answer.read(), answer.status
                client.close()
                if fault is not None:
                    return self._answer(fault[1], {}, b"{}")
                return self._answer(status, dict(answer.getheaders()), content)

            def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    if name.lower() not in _OWN_HEADERS:
                        self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_POST = do_HEAD = do_DELETE = _forward

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def lose(self, when: str, status: int) -> None:
        """Answer the next commit with a status, ``before`` or ``after`` the catalog carried it out."""
        self._fault = (when, status)

    def _take(self) -> tuple[str, int] | None:
        fault, self._fault = self._fault, None
        return fault or self.strikes()

    def stop(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()
