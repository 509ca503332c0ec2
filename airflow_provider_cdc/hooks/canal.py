# SPDX-License-Identifier: Apache-2.0
"""Offer a Canal server as an Airflow connection with a form and a test button."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_cdc.connections.lookup import canal_address
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.sources.canal_session import CanalBatch, CanalSession


class CanalHook(BaseHook):
    """Read one destination of a Canal server over Canal's own TCP protocol.

    After an error the session is closed; :meth:`connect` begins a new one, with what was not acknowledged.

    :param canal_conn_id: Airflow connection of type ``canal``.
    :param destination: name of the Canal instance.
    :param timeout: seconds that the server may take to connect or to answer.
    """

    conn_name_attr = "canal_conn_id"
    default_conn_name = "canal_default"
    conn_type = "canal"
    hook_name = "Canal"

    def __init__(
        self, canal_conn_id: str = default_conn_name, destination: str = "example", *, timeout: float = 60.0
    ) -> None:
        super().__init__()
        self.canal_conn_id = canal_conn_id
        self.destination = destination
        self.timeout = timeout
        self._session: CanalSession | None = None

    def connect(self) -> CanalSession:
        """Connect, log in and return the session; the one before is closed.

        :raises CdcError: the server cannot be reached or refuses the login.
        """
        self.close()
        self._session = CanalSession(canal_address(self.canal_conn_id), self.destination, timeout=self.timeout)
        return self._session

    get_conn = connect

    def close(self) -> None:
        """End the session; a repeated call has no effect."""
        if self._session is not None:
            self._session.close()
            self._session = None

    @contextmanager
    def session(self) -> Iterator[CanalSession]:
        """Give a session that is subscribed and begins with what was not acknowledged; close it afterwards."""
        with CanalSession(canal_address(self.canal_conn_id), self.destination, timeout=self.timeout) as session:
            session.subscribe()
            session.rollback()
            yield session

    def subscribe(self, filter: str = "", *, instance_wide: bool = False) -> None:
        """Subscribe to the destination.

        :param filter: regular expressions of ``schema.table``, separated by commas; empty leaves the server's.
        :param instance_wide: allow a filter, which replaces that of the whole instance, for every client.
        """
        self._connected().subscribe(filter, instance_wide=instance_wide)

    def get(self, size: int = 1000, timeout: float | None = None) -> CanalBatch:
        """Return the next entries; they stay with the server until they are acknowledged.

        :param size: KiB of events, or number of entries where the server counts those.
        :param timeout: seconds to wait for so much; None returns at once with what there is.
        """
        return self._connected().get(size, timeout)

    def ack(self, batch_id: int) -> None:
        """Acknowledge the oldest batch that is not.

        :param batch_id: ``id`` of what :meth:`get` returned.
        """
        self._connected().ack(batch_id)

    def rollback(self, batch_id: int = 0) -> None:
        """Let the server send again what was not acknowledged.

        :param batch_id: the oldest batch that is not acknowledged; 0 means all.
        """
        self._connected().rollback(batch_id)

    def unsubscribe(self) -> None:
        """Let the server forget the client's cursor."""
        self._connected().unsubscribe()

    def test_connection(self) -> tuple[bool, str]:
        """Return for the connection form what ``doctor`` finds of the server and the login."""
        from airflow_provider_cdc.batch.findings import verdict
        from airflow_provider_cdc.batch.source_kinds.canal import connection_findings

        return verdict(connection_findings(self.canal_conn_id, self.destination, self.timeout))

    def _connected(self) -> CanalSession:
        if self._session is None:
            raise ConfigurationError(["CanalHook: connect() comes first"], where={"connection": self.canal_conn_id})
        return self._session


__all__ = ["CanalBatch", "CanalHook", "CanalSession"]
