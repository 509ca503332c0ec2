# SPDX-License-Identifier: Apache-2.0
"""Speak with one destination of a Canal server over its own TCP protocol (docs/wire/canal.md 3, 10.1).

The server answers acknowledgements and rollbacks only where it refuses them, and the refusal then stands in front of
the answer to the next request. So a session ends with its first error and is never used again.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from airflow_provider_cdc.connections.canal_address import CanalAddress
from airflow_provider_cdc.core.errors import ConfigurationError, SourceError, UnavailableError
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.sources.canal_frames import Channel, Frame, batch_of

IDLE_MS = 3_600_000
"""Milliseconds without traffic after which the server may close the connection: what the stock client asks for."""

_MILLISECONDS = 2  # of Get.unit
_AT_ONCE = -1  # of Get.timeout; 0 and nothing make the server wait for ever, and all other clients with it
_NOTHING = -1  # batch id of an answer without entries
_MAX_TEXT = 300  # a refusal may hold a stack trace


@dataclass(frozen=True)
class CanalBatch:
    """Entries of one answer.

    :param id: number of the batch, to acknowledge or roll back; -1 where there was nothing.
    :param entries: one serialised ``Entry`` each.
    :param packet: the whole packet as the server sent it.
    """

    id: int
    entries: list[bytes]
    packet: bytes = field(repr=False, default=b"")

    @property
    def empty(self) -> bool:
        """True where the server had nothing."""
        return self.id == _NOTHING


class CanalSession:
    """One connection, logged in.

    :param timeout: seconds that the server may take to connect or to answer.
    :raises UnavailableError: ``canal.unavailable``.
    :raises SourceError: ``canal.login_refused``, or ``canal.malformed``.
    """

    def __init__(self, address: CanalAddress, destination: str, *, timeout: float = 60.0) -> None:
        self._address, self._destination = address, destination
        self._where = {**address.where, "destination": destination}
        self._subscribed = False
        self._outstanding: deque[int] = deque()
        self._channel = Channel(address.host, address.port, timeout, self._where)
        self._open = True
        try:
            self._log_in()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        """True while the session can be used."""
        return self._open

    def close(self) -> None:
        """End the session; a repeated call has no effect. What was not acknowledged stays with the server."""
        self._open = False
        self._channel.close()

    # ---- requests

    def subscribe(self, filter: str = "", *, instance_wide: bool = False) -> None:
        """Subscribe to the destination.

        :param filter: regular expressions of ``schema.table``, separated by commas; empty leaves the server's.
        :param instance_wide: allow a filter, which replaces that of the whole instance, for every client.
        :raises ConfigurationError: a filter, and it was not allowed.
        :raises SourceError: ``canal.refused``, the server does not know the destination.
        """
        from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import SUBSCRIPTION
        from airflow_provider_cdc.core.formats.generated.canal_session_pb2 import Sub

        if filter and not instance_wide:
            text = (
                "filter: replaces the filter of the whole Canal instance, for every client, and may hide schema "
                "changes from the server itself; set canal.instance.filter.regex on the server, select tables with "
                "tables.include, or allow it with instance_wide=True"
            )
            raise ConfigurationError([text], where=self._where)
        with self._closing():
            self._send(SUBSCRIPTION, Sub(**self._who(), filter=filter))
            self._confirm_subscription("the subscription")
        self._subscribed = True

    def unsubscribe(self) -> None:
        """Let the server forget the client's cursor: a later subscription begins where the server then is."""
        from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import UNSUBSCRIPTION
        from airflow_provider_cdc.core.formats.generated.canal_session_pb2 import Unsub

        with self._closing():
            self._send(UNSUBSCRIPTION, Unsub(**self._who()))
            self._confirm_subscription("the end of the subscription")
        self._subscribed = False

    def get(self, size: int = 1000, timeout: float | None = None) -> CanalBatch:
        """Return the next entries; they stay with the server until they are acknowledged.

        :param size: KiB of events, or number of entries where the server counts those (``canal.instance.memory.batch
            .mode``).
        :param timeout: seconds to wait for so much; None returns at once with what there is.
        :raises ConfigurationError: a size or timeout that is not above 0: the server would wait for ever.
        :raises UnavailableError: ``canal.out_of_order``, an acknowledgement or rollback before was refused, or the
            client is not subscribed any more.
        """
        from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import GET, MESSAGES
        from airflow_provider_cdc.core.formats.generated.canal_session_pb2 import Get

        if size < 1 or (timeout is not None and timeout <= 0):
            raise ConfigurationError(["get: size and timeout must be above 0"], where=self._where)
        self._demand_subscription()
        millis = _AT_ONCE if timeout is None else max(1, round(timeout * 1000))
        with self._closing():
            request = Get(**self._who(), fetch_size=size, timeout=millis, unit=_MILLISECONDS, auto_ack=False)
            self._send(GET, request)
            frame = self._channel.receive(wait=timeout or 0.0)
            if frame.kind != MESSAGES:
                self._refuse(frame, "a request for entries")
            read = batch_of(frame.body)
            if read is None:
                raise self._channel.malformed("the entries of an answer cannot be read")
            batch_id, entries = read
            if batch_id < 1 and (batch_id != _NOTHING or entries):
                raise self._channel.malformed(f"an answer has the batch id {batch_id}")
        if batch_id != _NOTHING:
            self._outstanding.append(batch_id)
        return CanalBatch(batch_id, entries, frame.packet)

    def ack(self, batch_id: int) -> None:
        """Acknowledge the oldest batch that is not; the server then forgets its entries.

        :raises UnavailableError: ``canal.out_of_order``, another batch is the oldest; the session is closed.
        """
        from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import CLIENTACK
        from airflow_provider_cdc.core.formats.generated.canal_session_pb2 import ClientAck

        with self._closing():
            self._demand_oldest("acknowledged", batch_id)
            self._send(CLIENTACK, ClientAck(**self._who(), batch_id=batch_id))
        self._outstanding.popleft()

    def rollback(self, batch_id: int = 0) -> None:
        """Let the server send again what was not acknowledged, under new batch ids.

        :param batch_id: the oldest batch that is not acknowledged; 0 means all, also those of earlier sessions.
        """
        from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import CLIENTROLLBACK
        from airflow_provider_cdc.core.formats.generated.canal_session_pb2 import ClientRollback

        self._demand_subscription()
        with self._closing():
            if batch_id:
                self._demand_oldest("rolled back", batch_id)
            self._send(CLIENTROLLBACK, ClientRollback(**self._who(), batch_id=batch_id))
        if batch_id:
            self._outstanding.popleft()
        else:
            self._outstanding.clear()

    # ---- answers

    @contextmanager
    def _closing(self) -> Iterator[None]:
        """Close the session where the block fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _log_in(self) -> None:
        from google.protobuf.message import DecodeError

        from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import CLIENTAUTHENTICATION, HANDSHAKE
        from airflow_provider_cdc.core.formats.generated.canal_session_pb2 import ClientAuth, Handshake

        frame = self._channel.receive()
        if frame.kind != HANDSHAKE or frame.version != 1:
            raise self._channel.malformed("the server's first packet is not a handshake of version 1")
        try:
            seeds = Handshake.FromString(frame.body).seeds
        except DecodeError:
            raise self._channel.malformed("the server's handshake cannot be read") from None
        self._send(
            CLIENTAUTHENTICATION,
            ClientAuth(
                username=self._address.login,
                password=hashed_password(self._address.password, seeds).encode() if self._address.password else b"",
                net_read_timeout=IDLE_MS,
                net_write_timeout=IDLE_MS,
            ),
        )
        refusal = self._confirm("the login")
        if refusal:
            hint = "check login and password of the connection (canal.user and canal.passwd of the server)"
            raise SourceError("canal.login_refused", refusal, where=self._where, hint=hint)

    def _confirm_subscription(self, what: str) -> None:
        refusal = self._confirm(what)
        if refusal:
            hint = "check the destination's name, and that the server runs it"
            raise SourceError("canal.refused", refusal, where=self._where, hint=hint)

    def _confirm(self, what: str) -> str:
        """Return why the server refuses a request that it always answers, empty where it does not."""
        from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import ACK

        frame = self._channel.receive()
        if frame.kind != ACK:
            raise self._channel.malformed(f"{what} was answered with a packet of type {frame.kind}")
        number, text = self._ack(frame)
        return f"the server refuses {what}: {number} {text}" if number else ""

    def _refuse(self, frame: Frame, what: str) -> None:
        """Raise for an answer that has no entries."""
        from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import ACK

        if frame.kind != ACK:
            raise self._channel.malformed(f"{what} was answered with a packet of type {frame.kind}")
        number, text = self._ack(frame)
        raise self._out_of_order(f"the server refuses {what}, or an acknowledgement before it: {number} {text}")

    def _ack(self, frame: Frame) -> tuple[int, str]:
        """Return error code, 0 for none, and text of an answer."""
        from google.protobuf.message import DecodeError

        from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import Ack

        try:
            ack = Ack.FromString(frame.body)
        except DecodeError:
            raise self._channel.malformed("an answer of the server cannot be read") from None
        lines = ack.error_message.splitlines() or [""]
        return ack.error_code, printable(lines[0])[:_MAX_TEXT]

    def _demand_oldest(self, what: str, batch_id: int) -> None:
        if not self._outstanding or self._outstanding[0] != batch_id:
            oldest = self._outstanding[0] if self._outstanding else "none"
            raise self._out_of_order(f"batch {batch_id} was to be {what}, but the oldest is {oldest}")

    def _demand_subscription(self) -> None:
        if self._open and not self._subscribed:
            with self._closing():
                raise self._out_of_order("the session is not subscribed to its destination")

    def _out_of_order(self, text: str) -> UnavailableError:
        hint = "run again: a new session begins with what was not acknowledged; only one client may use a client id"
        return UnavailableError("canal.out_of_order", text, where=self._where, hint=hint)

    def _send(self, kind: Any, body: Any) -> None:
        from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import Packet

        if not self._open:
            raise UnavailableError(
                "canal.session_closed",
                "the session has ended",
                where=self._where,
                hint="open a new one: it begins with what was not acknowledged",
            )
        self._channel.send(Packet(type=kind, body=body.SerializeToString()).SerializeToString())

    def _who(self) -> dict[str, str]:
        return {"destination": self._destination, "client_id": str(self._address.client_id)}


def hashed_password(password: str, seeds: bytes) -> str:
    """Return a password as the server compares it: 40 hexadecimal digits, other ones for each connection."""
    once = hashlib.sha1(password.encode()).digest()
    mixed = hashlib.sha1(seeds + hashlib.sha1(once).digest()).digest()
    return bytes(a ^ b for a, b in zip(once, mixed, strict=True)).hex()
