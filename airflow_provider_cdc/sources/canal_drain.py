# SPDX-License-Identifier: Apache-2.0
"""Take what a Canal server holds: get, make durable, and only then acknowledge, oldest first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airflow_provider_cdc.core.lake.segments import Packet
from airflow_provider_cdc.sources.canal_session import CanalBatch, CanalSession

FETCH_KIB = 1000
"""KiB of events, or entries, of one request: what the stock client asks for."""

HELD_BYTES = 8 << 20
"""Bytes after which packets are made durable: the server's buffer (16 MiB by default) holds what it did not
acknowledge, and has nothing to send when it is full."""

HELD_SECONDS = 10.0
"""Seconds after which packets are made durable, however few they are."""


@dataclass(frozen=True)
class Limits:
    """When a drain ends; it ends in any case when nothing new comes for ``idle_seconds``.

    :param entries: number of Canal entries.
    :param seconds: duration.
    """

    entries: float = float("inf")
    seconds: float = float("inf")
    idle_seconds: float = 1.0


@dataclass
class Drained:
    """Count what a drain took.

    :param acknowledged: number of the packets that were acknowledged.
    """

    packets: int = 0
    entries: int = 0
    acknowledged: int = 0

    def document(self) -> dict[str, int]:
        """Return plain JSON data."""
        return {"packets": self.packets, "entries": self.entries, "acknowledged": self.acknowledged}


Store = Callable[[Sequence[Packet]], object]
"""Makes packets durable before it returns."""


def drain(
    session: CanalSession,
    store: Store,
    limits: Limits,
    *,
    check: Callable[[], None] = lambda: None,
    enough: Callable[[bytes], bool] = lambda packet: False,
) -> Drained:
    """Take packets until a limit is reached; what was taken is durable and acknowledged when this returns.

    :param session: subscribed; what earlier sessions did not acknowledge comes again.
    :param check: raises where the drain must end; what is not stored then stays with the server.
    :param enough: whether a packet is the last that is needed.
    """
    started = time.monotonic()
    done = Drained()
    held: list[tuple[CanalBatch, Packet]] = []
    since, going_on = started, True

    session.rollback()
    while going_on:
        check()
        batch = session.get(FETCH_KIB, limits.idle_seconds)
        now = time.monotonic()
        if not batch.empty:
            since = since if held else now
            held.append((batch, Packet(batch.packet, time.time_ns() // 1_000_000)))
            done.entries += len(batch.entries)
        elif not held:
            break
        going_on = done.entries < limits.entries and now - started < limits.seconds and not enough(batch.packet)
        size = sum(len(packet.data) for _, packet in held)
        if batch.empty or not going_on or size >= HELD_BYTES or now - since >= HELD_SECONDS:
            check()
            store([packet for _, packet in held])
            done.packets += len(held)
            for stored, _ in held:
                session.ack(stored.id)
                done.acknowledged += 1
            held = []
    return done
