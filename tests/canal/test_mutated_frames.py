# SPDX-License-Identifier: Apache-2.0
"""Frames of a real server, mutated: a session ends with an error of ours or reads them, soon and in little memory."""

from __future__ import annotations

import random
import socket
import tracemalloc
from pathlib import Path

from airflow_provider_cdc.connections.canal_address import CanalAddress
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.sources.canal_session import CanalSession
from tests.canal.server import recorded, serving

SESSION = Path(__file__).parent / "sessions" / "05-rollback.jsonl.xz"
MEMORY = 64 << 20


def mutated(stream: bytes, chance: random.Random) -> bytes:
    """Return bytes with some of them changed, gone, doubled or put in."""
    data = bytearray(stream)
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = chance.choice([0, 1, 127, 128, 255])
        elif kind == 2:
            del data[at : at + chance.randrange(1, 20)]
        elif kind == 3:
            data[at:at] = chance.randbytes(chance.randrange(1, 20))
        elif kind == 4:
            data[at:at] = data[at : at + chance.randrange(1, 40)]
        else:
            del data[at:]
    return bytes(data)


def converse(port: int) -> bool:
    """Hold a session; return whether it came to its end."""
    try:
        with CanalSession(CanalAddress("127.0.0.1", port, "canal", "canal"), "example", timeout=5) as session:
            session.subscribe()
            session.rollback()
            for _ in range(3):
                batch = session.get(1000, 0.001)
                if not batch.empty:
                    session.ack(batch.id)
        return True
    except CdcError as error:
        assert error.code.startswith("canal.") and len(str(error)) < 2_000
        return False


def test_mutated_frames_end_a_session_with_an_error_of_ours(frames: int) -> None:
    answers = [line.data for line in recorded(SESSION) if not line.ours]
    assert len(answers) > 6
    chance = random.Random(15)
    streams: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        connection.sendall(streams[-1])
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(5)
        while connection.recv(65536):
            pass

    ended = sent = 0
    tracemalloc.start()
    try:
        with serving(serve) as port:
            while sent < frames:
                # whole frames in front, so that every kind of answer is mutated as often
                whole = chance.randrange(6)
                streams.append(b"".join(answers[:whole]) + mutated(b"".join(answers[whole:6]), chance))
                ended += converse(port)
                sent += 6 - whole
                del streams[:-1]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0 < ended < sent
    assert peak < MEMORY
