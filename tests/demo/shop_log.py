# SPDX-License-Identifier: Apache-2.0
"""The shop's recorded log, phase by phase, with the clock stretched so that each phase fills an hour.

The recording took five minutes. What is changed is its clock alone: the records' timestamps and the ``ts_ms``,
``ts_us`` and ``ts_ns`` that the connector wrote next to the images; and each hour ends with one heartbeat more. Keys,
images and order stay as recorded, offsets too but for the heartbeats'.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.services.capture import Record, read, replay

DATA = Path(__file__).parents[2] / "example_dags" / "shop_data"
FIRST_HOUR = datetime(2026, 1, 5, 8, tzinfo=UTC)
_HOUR_MS = 3_600_000
_CLOCK = re.compile(rb'"ts_(ms|us|ns)":(\d+)')
_PER_MS = {b"ms": 1, b"us": 1_000, b"ns": 1_000_000}


@dataclass(frozen=True)
class Phase:
    """One hour of the shop.

    :param start: when its hour begins.
    :param ends: topic -> end offset of each partition when it was over.
    """

    number: int
    title: str
    start: datetime
    ends: dict[str, list[int]]
    window_start_ms: int
    window_end_ms: int

    @property
    def end(self) -> datetime:
        """When its hour is over."""
        return self.start + timedelta(hours=1)

    @property
    def truth(self) -> Path:
        """The database's own content at its end."""
        return DATA / "source_at" / f"{self.number}.jsonl.xz"


class ShopLog:
    """The recorded log.

    :param data: folder of the recording.
    :ivar records: as they were recorded.
    """

    def __init__(self, data: Path = DATA) -> None:
        meta: dict[str, Any] = json.loads((data / "meta.json").read_text(encoding="utf-8"))
        self.phases = [_phase(entry) for entry in meta["phases"]]
        self._starts = [phase.window_start_ms for phase in self.phases]
        self._heartbeats = meta["heartbeat_topic"]
        self._partitions: dict[str, int] = meta["partitions"]
        self.records = list(read(data))

    def feed(self, broker: Any, phase: Phase) -> int:
        """Bring a phase into the broker, then one heartbeat of the next hour; return how many records.

        The recorded connector fell silent at the end of each phase; in a running one the next heartbeat shows that the
        hour is complete, and the sensor waits for it.
        """
        earlier = self.phases[phase.number - 1] if phase.number else None
        due = [record for record in self.records if _end(earlier, record) <= record.offset < _end(phase, record)]
        beats = [record for record in due if record.topic == self._heartbeats]
        rows = [record for record in due if record.topic != self._heartbeats]
        beats.append(_next_heartbeat(beats[-1], phase))
        partitions = {topic: count for topic, count in self._partitions.items() if topic in phase.ends}
        replay(broker, [self._stretched(record) for record in rows], partitions)
        replay(broker, [self._stretched(record) for record in beats], partitions, same_offsets=False)
        return len(rows) + len(beats)

    def _stretched(self, record: Record) -> Record:
        value = None if record.value is None else _CLOCK.sub(_moved(self.moment_ms), record.value)
        return replace(record, timestamp=self.moment_ms(record.timestamp), value=value)

    def moment_ms(self, recorded_ms: int) -> int:
        """Return the demo's time of a recorded one; linear within a phase, so order is kept."""
        phase = self.phases[max(0, bisect_right(self._starts, recorded_ms) - 1)]
        width = phase.window_end_ms - phase.window_start_ms
        begin = int(phase.start.timestamp() * 1000)
        return begin + (recorded_ms - phase.window_start_ms) * _HOUR_MS // width


def _moved(moment: Callable[[int], int]) -> Callable[[re.Match[bytes]], bytes]:
    def move(result: re.Match[bytes]) -> bytes:
        unit = _PER_MS[result[1]]
        return b'"ts_%b":%d' % (result[1], moment(int(result[2]) // unit) * unit)

    return move


def _next_heartbeat(last: Record, phase: Phase) -> Record:
    moment = phase.window_end_ms + 1_000
    value = _CLOCK.sub(b'"ts_ms":%d' % moment, last.value or b"")
    return replace(last, offset=last.offset + 1, timestamp=moment, value=value)


def _end(phase: Phase | None, record: Record) -> int:
    ends = phase.ends.get(record.topic) if phase is not None else None
    return ends[record.partition] if ends else 0


def _phase(entry: dict[str, Any]) -> Phase:
    number = entry["phase"]
    return Phase(
        number=number,
        title=entry["title"],
        start=FIRST_HOUR + timedelta(hours=number),
        ends=entry["end_offsets"],
        window_start_ms=entry["window_start_ms"],
        window_end_ms=entry["window_end_ms"],
    )
