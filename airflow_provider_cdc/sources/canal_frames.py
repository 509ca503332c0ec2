# SPDX-License-Identifier: Apache-2.0
"""Send and receive the frames of Canal's TCP protocol (docs/wire/canal.md 3): 4 bytes of length, then one packet."""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

from airflow_provider_cdc.core.errors import SourceError, UnavailableError

FRAME_BYTES = 64 << 20
"""Largest frame that is accepted; the server has no limit of its own."""

BATCH_ENTRIES = 1 << 20
"""Most entries of one batch: an entry in memory costs more than the two bytes that it may have on the wire."""

_CHUNK = 1 << 16  # bytes of one call: memory grows with what arrives, not with the length that a frame claims
_BODY_OF_MESSAGES = 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True)
class Frame:
    """One packet that was received.

    :param packet: its bytes, as they came.
    :param kind: ``PacketType``.
    :param version: None where the packet has none.
    """

    packet: bytes
    kind: int
    version: int | None
    body: bytes


class Channel:
    """One connection to a server; each wait has an end.

    :param timeout: seconds that connecting, sending, or receiving one frame may take.
    :param where: members of errors' ``where``.
    :raises UnavailableError: ``canal.unavailable``.
    """

    def __init__(self, host: str, port: int, timeout: float, where: dict[str, Any]) -> None:
        self._timeout, self._where = timeout, where
        try:
            self._socket = socket.create_connection((host, port), timeout)
            # an acknowledgement has no answer: the next request would wait for the other side's delayed ACK
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise self._lost(f"no connection: {_reason(error)}") from None

    def close(self) -> None:
        """Close the connection; a repeated call has no effect."""
        self._socket.close()

    def send(self, packet: bytes) -> None:
        """Send one packet."""
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(struct.pack(">I", len(packet)) + packet)
        except OSError as error:
            raise self._lost(f"sending failed: {_reason(error)}") from None

    def receive(self, wait: float = 0.0) -> Frame:
        """Return the next packet.

        :param wait: seconds that the server was asked to wait, in addition to the timeout.
        :raises UnavailableError: ``canal.unavailable``, nothing came in time, or the connection ended.
        :raises SourceError: ``canal.malformed``, it is not a packet, or larger than :data:`FRAME_BYTES`.
        """
        deadline = time.monotonic() + self._timeout + wait
        (size,) = struct.unpack(">I", self._bytes(4, deadline))
        if size > FRAME_BYTES:
            raise self.malformed(f"a frame of {size} bytes, at most {FRAME_BYTES} are accepted")
        return self._frame(self._bytes(size, deadline))

    def _bytes(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._lost("no answer in time")
            try:
                self._socket.settimeout(left)
                piece = self._socket.recv(min(_CHUNK, size - len(data)))
            except OSError as error:
                raise self._lost(f"no answer: {_reason(error)}") from None
            if not piece:
                raise self._lost("the server closed the connection")
            data += piece
        return bytes(data)

    def _frame(self, data: bytes) -> Frame:
        from google.protobuf.message import DecodeError

        from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import (
            COMPRESSIONCOMPATIBLEPROTO2,
            NONE,
            Packet,
        )

        try:
            packet = Packet.FromString(data)
        except DecodeError:
            raise self.malformed("what came is not a packet of Canal") from None
        if packet.HasField("compression") and packet.compression not in (COMPRESSIONCOMPATIBLEPROTO2, NONE):
            raise self.malformed(f"the packet is compressed, kind {packet.compression}: Canal never does")
        version = packet.version if packet.HasField("version") else None
        return Frame(data, packet.type, version, packet.body)

    def malformed(self, text: str) -> SourceError:
        """Return the error of an answer that is not Canal's."""
        return SourceError(
            "canal.malformed",
            text,
            where=self._where,
            hint="check that host and port are those of a Canal server (canal.serverMode = tcp, canal.port)",
        )

    def _lost(self, text: str) -> UnavailableError:
        return UnavailableError(
            "canal.unavailable",
            text,
            where=self._where,
            hint="check that the Canal server runs and can be reached, then run again; it sends again what was not "
            "acknowledged",
        )


def batch_of(body: bytes) -> tuple[int, list[bytes]] | None:
    """Return the batch id and the entries of the body of ``Messages``, None where it is none.

    Read by hand: the number of entries is checked before they are all in memory.
    """
    batch_id, entries, offset = 0, [], 0
    while offset < len(body):
        tag, offset = _varint(body, offset)
        number, kind = tag >> 3, tag & 7
        if offset < 0 or number == 0:
            return None
        if kind == _BYTES:
            size, offset = _varint(body, offset)
            if offset < 0 or offset + size > len(body):
                return None
            if number == _BODY_OF_MESSAGES:
                entries.append(body[offset : offset + size])
                if len(entries) > BATCH_ENTRIES:
                    return None
            offset += size
        elif kind == _VARINT:
            value, offset = _varint(body, offset)
            if offset < 0:
                return None
            batch_id = value if number == 1 else batch_id
        elif kind in (_FIXED32, _FIXED64):
            offset += 4 if kind == _FIXED32 else 8
        else:
            return None
    if offset > len(body):
        return None
    return (batch_id - (1 << 64) if batch_id >> 63 else batch_id), entries


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a number and the offset behind it, which is negative where there is none."""
    value = shift = 0
    while offset < len(data) and shift < 70:
        byte = data[offset]
        value |= (byte & 127) << shift
        offset += 1
        if byte < 128:
            return value & (1 << 64) - 1, offset
        shift += 7
    return 0, -1


def _reason(error: OSError) -> str:
    return error.strerror or ("timed out" if isinstance(error, TimeoutError) else type(error).__name__)
