# SPDX-License-Identifier: Apache-2.0
"""A proxy before a name node of HDFS that fails as servers and networks do."""

from __future__ import annotations

import contextlib
import socket
import threading

from tests.faults.store import LATE_SECONDS, FailingServer

_LENGTH_BYTES = 4  # before each answer


class FailingNameNode(FailingServer):
    """Passes calls on to a name node, or fails; an error of a store is an answer that is lost."""

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server, timeout=30) as server:
            server.settimeout(None)
            threading.Thread(target=self._answer, args=(server, client), daemon=True).start()
            try:
                while (piece := client.recv(1 << 16)) and not (
                    self.weather.fault == "reset" and self.weather.strikes()
                ):
                    server.sendall(piece)
            except OSError:
                pass
            finally:
                _close(client, server)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while answer := _frame(server):
                fault = None if self.weather.fault == "reset" else self.weather.strikes()
                if fault == "late":
                    threading.Event().wait(LATE_SECONDS)
                elif fault == "cut":
                    client.sendall(answer[: len(answer) // 2])
                if fault not in (None, "late"):
                    break
                client.sendall(answer)
        except OSError:
            pass
        finally:
            _close(client, server)


def _frame(server: socket.socket) -> bytes:
    """Return one whole answer, empty at the end."""
    data = bytearray()
    size = _LENGTH_BYTES
    while len(data) < size:
        piece = server.recv(size - len(data))
        if not piece:
            return b""
        data += piece
        if len(data) == _LENGTH_BYTES:
            size = _LENGTH_BYTES + int.from_bytes(data, "big")
    return bytes(data)


def _close(*connections: socket.socket) -> None:
    for one in connections:
        with contextlib.suppress(OSError):  # closed already
            one.shutdown(socket.SHUT_RDWR)
