# SPDX-License-Identifier: Apache-2.0
"""Byte servers that speak Canal's TCP protocol: one replays a recorded session, one serves packets as Canal does."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.formats.generated import canal_packet_pb2 as packets
from airflow_provider_cdc.core.formats.generated import canal_session_pb2 as bodies

SEEDS = bytes(range(1, 9))
NOTHING = bytes.fromhex("100118072a0b08ffffffffffffffffff01")
ACCEPTED = bytes.fromhex("10011803")
HANDSHAKE = bytes.fromhex("100118012a0a1208") + SEEDS


def frame(packet: bytes) -> bytes:
    """Return a packet with its length."""
    return struct.pack(">I", len(packet)) + packet


def refusal(code: int, text: str) -> bytes:
    """Return an answer that refuses a request."""
    ack = packets.Ack(error_code=code, error_message=text)
    return packets.Packet(version=1, type=packets.ACK, body=ack.SerializeToString()).SerializeToString()


class GoneError(Exception):
    """The client closed its connection."""


def receive(connection: socket.socket) -> bytes:
    """Return the next packet of a client."""
    (size,) = struct.unpack(">I", _exactly(connection, 4))
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise GoneError
        data += piece
    return data


@contextmanager
def serving(handle: Callable[[socket.socket], None]) -> Iterator[int]:
    """Serve each connection in a thread of its own; give the port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def one(connection: socket.socket) -> None:
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with suppress(GoneError, OSError):
                handle(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


# ---- recorded sessions


@dataclass(frozen=True)
class Line:
    """One frame of a recorded session.

    :param ours: it was sent by the client.
    """

    ours: bool
    data: bytes


def recorded(path: Path) -> list[Line]:
    """Return the frames of a recorded session."""
    with lzma.open(path, "rt") as lines:
        documents = [json.loads(line) for line in lines]
    return [Line(item["dir"] == "c2s", bytes.fromhex(item["hex"])) for item in documents if item["dir"] != "note"]


@dataclass
class Replay:
    """Replay a session: what the client sends is compared, what the server sent is sent.

    :param piece: bytes of one piece of what is sent; 0 sends frames whole.
    :param dies_after: bytes after which the server dies.
    :ivar wrong: the first frame of the client that is another one than recorded.
    """

    lines: list[Line]
    piece: int = 0
    dies_after: int | None = None
    wrong: str = ""
    requests: list[bytes] = field(default_factory=list)

    def __call__(self, connection: socket.socket) -> None:
        """Serve one connection."""
        left = self.dies_after
        for line in self.lines:
            if line.ours:
                request = frame(receive(connection))
                self.requests.append(request)
                if request != line.data and not self.wrong:
                    self.wrong = f"{request.hex()} instead of {line.data.hex()}"
                continue
            data = line.data if left is None else line.data[:left]
            for start in range(0, len(data), self.piece or len(data) or 1):
                connection.sendall(data[start : start + (self.piece or len(data))])
            if left is not None:
                left -= len(data)
                if left <= 0:
                    return
        connection.settimeout(5)
        with suppress(GoneError, OSError):
            self.requests.append(frame(receive(connection)))


# ---- a server with a cursor


@dataclass
class Canal:
    """A destination with packets, a cursor for each client and batches that are not acknowledged.

    :param messages: entries of each packet, in order.
    :param together: gives how many packets one answer joins.
    :param moment: is called with what happens (``get``, ``answered``, ``ack``) and the number of the packet.
    """

    messages: list[list[bytes]]
    destination: str = "example"
    login: str = "canal"
    password: str = "canal"
    together: Callable[[], int] = lambda: 1
    moment: Callable[[str, int], None] = lambda what, number: None
    _done: int = 0
    _connections: int = 0
    _next: int = 0
    _batch: int = 0
    _outstanding: dict[int, tuple[int, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def done(self) -> int:
        """Packets that were acknowledged; what clients that have gone sent last is read first."""
        deadline = time.monotonic() + 30
        while self._connections and time.monotonic() < deadline:
            time.sleep(0.001)
        return self._done

    def __call__(self, connection: socket.socket) -> None:
        """Serve one connection."""
        with self._lock:
            self._connections += 1
        try:
            self._serve(connection)
        finally:
            with self._lock:
                self._connections -= 1

    def _serve(self, connection: socket.socket) -> None:
        connection.sendall(frame(HANDSHAKE))
        packet = packets.Packet.FromString(receive(connection))
        auth = bodies.ClientAuth.FromString(packet.body)
        if packet.type != packets.CLIENTAUTHENTICATION or not self._may(auth):
            connection.sendall(frame(refusal(400, f"auth failed for user:{auth.username}")))
            connection.sendall(frame(ACCEPTED))
            return
        connection.sendall(frame(ACCEPTED))
        while True:
            answer = self._answer(packets.Packet.FromString(receive(connection)))
            if answer is not None:
                connection.sendall(frame(answer))
                self.moment("answered", self._next)

    def restart(self, back: int = 0) -> None:
        """Forget batches and their numbers; the cursor goes back to a clean place some packets before."""
        with self._lock:
            self._done = self._next = max(0, self._done - back)
            self._batch, self._outstanding = 0, {}

    def _may(self, auth: Any) -> bool:
        stored = hashlib.sha1(hashlib.sha1(self.password.encode()).digest()).digest()
        try:
            token = bytes.fromhex(auth.password.decode())
        except ValueError:
            return False
        mixed = hashlib.sha1(SEEDS + stored).digest()
        once = bytes(a ^ b for a, b in zip(token, mixed, strict=False))
        return auth.username == self.login and hashlib.sha1(once).digest() == stored

    def _answer(self, packet: Any) -> bytes | None:
        if packet.type in (packets.SUBSCRIPTION, packets.UNSUBSCRIPTION):
            if bodies.Sub.FromString(packet.body).destination != self.destination:
                return refusal(400, "something goes wrong with channel, exception=java.lang.NullPointerException")
            return ACCEPTED
        with self._lock:
            if packet.type == packets.GET:
                return self._get(bodies.Get.FromString(packet.body))
            if packet.type == packets.CLIENTACK:
                return self._ack(bodies.ClientAck.FromString(packet.body).batch_id)
            if packet.type == packets.CLIENTROLLBACK:
                self._next, self._outstanding = self._done, {}
                return None
        return refusal(400, "packet type is NOT supported!")

    def _get(self, request: Any) -> bytes:
        assert request.timeout != 0, "the server would wait for ever"
        self.moment("get", self._next)
        end = min(len(self.messages), self._next + self.together())
        if end == self._next:
            time.sleep(min(max(request.timeout, 0), 20) / 1000)
            return NOTHING
        self._batch += 1
        self._outstanding[self._batch] = (self._next, end)
        entries = [entry for message in self.messages[self._next : end] for entry in message]
        self._next = end
        body = packets.Messages(batch_id=self._batch, messages=entries).SerializeToString()
        return packets.Packet(type=packets.MESSAGES, body=body).SerializeToString()

    def _ack(self, batch: int) -> bytes | None:
        if next(iter(self._outstanding), None) != batch:
            return refusal(400, f"CanalMetaManagerException: batchId:{batch} is not the firstly")
        _, self._done = self._outstanding.pop(batch)
        self.moment("ack", self._done)
        return None


def kill(pid: int, seconds: float) -> None:
    """Kill a process after a while."""
    time.sleep(seconds)
    with suppress(ProcessLookupError):
        os.kill(pid, 9)
