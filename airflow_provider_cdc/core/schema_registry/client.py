# SPDX-License-Identifier: Apache-2.0
"""Ask a schema registry for schemas by their ids, in the interface of Confluent's that Apicurio and Karapace have too.

One call of HTTP, over the standard library: Confluent's client needs four more packages, retries and caches in layers
of its own, and follows redirects with the login.
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, UnavailableError

SECRETS = ("password", "bearer.auth.token", "ssl.key.password")
"""Settings that no document has."""

_ASKED_AT_ONCE = 8
_TRIES = 3
_PAUSE = 0.3  # seconds before the second try, twice as many before the third
_LARGEST = 32 << 20  # bytes of an answer
_PIECE = 1 << 16
_NO_SCHEMA = 40403  # what a registry answers for an id that it does not have
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json"


def registry_digest(url: str) -> str:
    """Return a name for a registry, by its address."""
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"
    return hashlib.blake2b(address.encode(), digest_size=8).hexdigest()


def ask(settings: Mapping[str, str], ids: Collection[int]) -> dict[int, dict[str, Any] | None]:
    """Return what the registry of a pipeline answers for ids, None where it has none.

    :param settings: of :class:`RegistryClient`; empty where the pipeline names no registry.
    :raises UnavailableError: it does not answer, or not in time.
    :raises ConfigurationError: there is none, it refuses the login, or it is not a schema registry.
    """
    if not settings:
        raise ConfigurationError(
            ["source.schema_registry: is missing: the records name schemas of a registry; name its connection"]
        )
    client = RegistryClient(settings)
    try:
        return client.answers(ids)
    finally:
        client.close()


class RegistryClient:
    """Client of one registry; threads may share it.

    :param settings: ``url``; ``username`` with ``password``, or ``bearer.auth.token`` with, for Confluent Cloud,
        ``bearer.auth.logical.cluster`` and ``bearer.auth.identity.pool.id``; ``ssl.ca.location`` or ``ssl.ca.pem``,
        ``ssl.certificate.location``, ``ssl.key.location``, ``ssl.key.password``; ``timeout``, seconds for one answer.
    :raises ConfigurationError: a certificate or key cannot be read.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._url = urlsplit(settings["url"])
        self._where = {"registry": f"{self._url.scheme}://{self._url.netloc}"}
        self._timeout = float(settings.get("timeout", 10))
        self._headers = _headers(settings)
        self._tls = _tls(settings) if self._url.scheme == "https" else None
        self._of_thread = threading.local()  # a connection
        self._open: list[HTTPConnection] = []

    def close(self) -> None:
        """Close all connections."""
        while self._open:
            self._open.pop().close()

    def answers(self, ids: Collection[int]) -> dict[int, dict[str, Any] | None]:
        """Return what the registry answers for ids, None where it has none: ``schema``, ``schemaType``, ``references``.

        :raises UnavailableError: it does not answer, or not in time.
        :raises ConfigurationError: it refuses the login, or is not a schema registry.
        """
        if len(ids) < 2:
            return {identity: self.answer(identity) for identity in ids}
        with ThreadPoolExecutor(min(_ASKED_AT_ONCE, len(ids))) as threads:
            try:
                return dict(zip(ids, threads.map(self.answer, ids), strict=True))
            except CdcError:
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def answer(self, identity: int) -> dict[str, Any] | None:
        """Return what the registry answers for one id; as :meth:`answers`."""
        path = f"{self._url.path.rstrip('/')}/schemas/ids/{identity}"
        why = ""
        for number in range(_TRIES):
            if number:
                time.sleep(_PAUSE * 2 ** (number - 1))
            try:
                status, content = self._get(path)
            except (OSError, HTTPException) as error:
                self._of_thread.connection = None  # it is closed with all others
                if isinstance(error, ssl.SSLCertVerificationError):
                    raise self._refused(f"its certificate is not trusted: {error.verify_message}") from None
                why = str(getattr(error, "strerror", None) or error or type(error).__name__)
                continue
            if status not in _PASSING:
                return self._read(status, content)
            why = f"it answers with status {status}"
        text = f"the schema registry does not answer: {why[:200]}"
        raise UnavailableError(
            "registry.unreachable", text, where={**self._where, "schema": identity}, hint="run again once it answers"
        )

    def _get(self, path: str) -> tuple[int, bytes]:
        """Return status and content of one answer.

        :raises OSError: it did not come in time.
        """
        deadline = time.monotonic() + self._timeout
        connection = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = self._of_thread.connection = self._connect()
            self._open.append(connection)
        connection.request("GET", path, headers=self._headers)
        response: HTTPResponse = connection.getresponse()
        content = bytearray()
        while piece := response.read(_PIECE):
            content += piece
            if time.monotonic() > deadline or len(content) > _LARGEST:
                raise TimeoutError(f"the answer takes more than {self._timeout:g} seconds or {_LARGEST} bytes")
        return response.status, bytes(content)

    def _connect(self) -> HTTPConnection:
        host, port = str(self._url.hostname), self._url.port
        if self._tls is None:
            return HTTPConnection(host, port, timeout=self._timeout)
        return HTTPSConnection(host, port, timeout=self._timeout, context=self._tls)

    def _read(self, status: int, content: bytes) -> dict[str, Any] | None:
        """Return the schema of an answer, None where the registry says that it has none."""
        if status in (401, 403):
            raise self._refused(f"it refuses the login (status {status}): check login, password or token")
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if isinstance(answer, dict) and status == 200 and isinstance(answer.get("schema"), str):
            return {key: answer[key] for key in ("schema", "schemaType", "references") if answer.get(key)}
        if isinstance(answer, dict) and status == 404 and answer.get("error_code") == _NO_SCHEMA:
            return None
        raise self._refused(
            f"it answers with status {status} and no schema: check the URL (of Apicurio it ends in /apis/ccompat/v7)"
        )

    def _refused(self, why: str) -> ConfigurationError:
        return ConfigurationError([f"source.schema_registry: {why}"], where=dict(self._where))


def _headers(settings: Mapping[str, str]) -> dict[str, str]:
    headers = {"Accept": _ACCEPT}
    if "bearer.auth.token" in settings:
        headers["Authorization"] = f"Bearer {settings['bearer.auth.token']}"
        named = {"target-sr-cluster": "logical.cluster", "Confluent-Identity-Pool-Id": "identity.pool.id"}
        return {
            **headers,
            **{h: settings[f"bearer.auth.{n}"] for h, n in named.items() if f"bearer.auth.{n}" in settings},
        }
    if "username" in settings:
        login = f"{settings['username']}:{settings.get('password', '')}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"
    return headers


def _tls(settings: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.get("ssl.ca.location"), cadata=settings.get("ssl.ca.pem"))
        if "ssl.certificate.location" in settings:
            context.load_cert_chain(
                settings["ssl.certificate.location"],
                settings.get("ssl.key.location"),
                settings.get("ssl.key.password", ""),
            )
    except (OSError, ValueError) as error:  # what ssl raises for a wrong password or PEM is an OSError
        text = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigurationError([f"source.schema_registry: a certificate or key cannot be read: {text}"]) from None
    return context
