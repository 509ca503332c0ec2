# SPDX-License-Identifier: Apache-2.0
"""A proxy before the S3 service that fails as stores and networks do."""

from __future__ import annotations

import random
import socket
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal

Fault = Literal["cut", "reset", "503", "500", "late", "unheard"]
FAULTS: tuple[Fault, ...] = ("cut", "reset", "503", "500", "late", "unheard")
_ANSWER = "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
LATE_SECONDS = 3.0


@dataclass
class Weather:
    """State what happens to requests.

    :param fault: ``cut``: only the first bytes of the answer arrive; ``reset``: none does and the request is not passed
        on; ``503`` and ``500``: an error instead of an answer; ``late``: the answer takes seconds; ``unheard``: the
        request is carried out and its answer is lost.
    :param share: of all requests.
    :param cut_at: how many bytes arrive of an answer that is cut, None for half of them; a text is where it ends: the
        text and one more byte arrive.
    """

    fault: Fault | None = None
    share: float = 0.0
    rnd: random.Random = field(default_factory=lambda: random.Random(0))
    cut_at: int | bytes | None = None

    def strikes(self) -> Fault | None:
        """Return what happens to one request."""
        return self.fault if self.rnd.random() < self.share else None


class FailingServer(ABC):
    """Stands before a server: passes on to it what it is asked, or fails.

    :param server: its host and port.
    :ivar address: its own host and port.
    """

    def __init__(self, server: str) -> None:
        host, _, port = server.partition(":")
        self._server = (host, int(port))
        self.weather = Weather()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    @abstractmethod
    def _serve(self, client: socket.socket) -> None:
        """Serve a connection, and close it."""


class FailingStore(FailingServer):
    """Passes each request on to an object store, or fails; one request a connection."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint.removeprefix("http://"))
        self.endpoint = f"http://{self.address}"

    def refusal(self, request: str) -> str:
        """Return the answer with which a request is refused, empty where it is not.

        :param request: its first line, as ``PUT /lake/a HTTP/1.1``.
        """
        return ""

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                self._answer(client)
            except OSError:
                return

    def _answer(self, client: socket.socket) -> None:
        client.settimeout(30)
        request = _message(client)
        if not request:
            return
        fault = self.weather.strikes()
        refusal = self.refusal(request.partition(b"\r\n")[0].decode("latin-1"))
        if refusal:
            client.sendall(refusal.encode())
            return
        if fault == "reset":
            return
        if fault in ("503", "500"):
            reason = {"503": "503 Slow Down", "500": "500 Internal Server Error"}[fault]
            client.sendall(_ANSWER.format(status=reason).encode())
            return
        with socket.create_connection(self._server, timeout=30) as server:
            server.sendall(_closing(request))
            pieces = []
            while piece := server.recv(1 << 16):
                pieces.append(piece)
        answer = b"".join(pieces)
        if fault == "unheard":
            return
        if fault == "late":
            threading.Event().wait(LATE_SECONDS)
        client.sendall(_beginning(answer, self.weather.cut_at) if fault == "cut" else answer)


def _beginning(answer: bytes, cut_at: int | bytes | None) -> bytes:
    if isinstance(cut_at, bytes):
        before, text, after = answer.partition(cut_at)
        return before + text + after[:1]
    return answer[: len(answer) // 2 if cut_at is None else cut_at]


def _message(client: socket.socket) -> bytes:
    """Return one whole HTTP request."""
    data = bytearray()
    while b"\r\n\r\n" not in data:
        piece = client.recv(1 << 16)
        if not piece:
            return b""
        data += piece
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
    }
    if headers.get(b"expect", b"").lower() == b"100-continue":
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        head = b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"expect"))
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        while not body.endswith(b"0\r\n\r\n"):
            body += client.recv(1 << 16)
    else:
        length = int(headers.get(b"content-length", b"0"))
        while len(body) < length:
            body += client.recv(1 << 16)
    return head + b"\r\n\r\n" + body


def _closing(request: bytes) -> bytes:
    """Ask the server to close the connection after its answer, so that its end is known."""
    head, _, body = request.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    return b"\r\n".join([*lines, b"Connection: close"]) + b"\r\n\r\n" + body
