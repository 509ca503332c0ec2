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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.file_log.record_lines import opened, record_of
from airflow_provider_cdc.sources.kafka_reading import KafkaRecord

FIRST_HOUR = datetime(2026, 1, 5, 8, tzinfo=UTC)
_HOUR_MS = 3_600_000
_CLOCK = re.compile(rb'"ts_(ms|us|ns)":(\d+)')
_PER_MS = {b"ms": 1, b"us": 1_000, b"ns": 1_000_000}
_PACKAGE = Path(__file__).parents[1]


def examples() -> Path:
    """Return the folder of the example DAGs, with the recording: in the package, or next to it in a checkout.

    :raises ConfigurationError: it is not there.
    """
    for folder in (_PACKAGE / "example_dags", _PACKAGE.parent / "example_dags"):
        if (folder / "shop_data" / "records.jsonl.xz").is_file():
            return folder
    raise ConfigurationError(["the shop's recording is missing from this installation; install the package again"])


@dataclass(frozen=True)
class Phase:
    """One hour of the shop.

    :param start: when its hour begins.
    :param ends: topic -> end offset of each partition when it was over, as recorded.
    :param truth: file with the database's own content at its end.
    """

    number: int
    title: str
    start: datetime
    ends: dict[str, list[int]]
    window_start_ms: int
    window_end_ms: int
    truth: Path

    @property
    def end(self) -> datetime:
        """When its hour is over."""
        return self.start + timedelta(hours=1)


class ShopLog:
    """The recorded log.

    :param data: folder of the recording; that of the examples if None.
    :ivar records: as they were recorded.
    :ivar partitions: number of partitions by topic.
    """

    def __init__(self, data: Path | None = None) -> None:
        data = data or examples() / "shop_data"
        meta: dict[str, Any] = json.loads((data / "meta.json").read_text(encoding="utf-8"))
        self.phases = [_phase(entry, data) for entry in meta["phases"]]
        self._starts = [phase.window_start_ms for phase in self.phases]
        self._heartbeats = meta["heartbeat_topic"]
        self.partitions: dict[str, int] = meta["partitions"]
        self.records = list(_recorded(data / "records.jsonl.xz"))

    @classmethod
    def until(cls, end: datetime) -> ShopLog:
        """Return the log with the clock moved: its last hour ends then."""
        log = cls()
        shift = end - log.phases[-1].end
        log.phases = [replace(phase, start=phase.start + shift) for phase in log.phases]
        return log

    def hour(self, phase: Phase) -> list[KafkaRecord]:
        """Return the records of a phase, then one heartbeat of the next hour.

        The recorded connector fell silent at the end of each phase; in a running one the next heartbeat shows that the
        hour is complete, and the sensor waits for it.
        """
        earlier = self.phases[phase.number - 1] if phase.number else None
        due = [record for record in self.records if _end(earlier, record) <= record.offset < _end(phase, record)]
        beats = [record for record in due if record.topic == self._heartbeats]
        rows = [record for record in due if record.topic != self._heartbeats]
        beats.append(_next_heartbeat(beats[-1], phase))
        # each hour before has one more than was recorded
        beats = [replace(beat, offset=beat.offset + phase.number) for beat in beats]
        return [self._stretched(record) for record in [*rows, *beats]]

    def _stretched(self, record: KafkaRecord) -> KafkaRecord:
        assert record.timestamp_ms is not None
        value = None if record.value is None else _CLOCK.sub(_moved(self.moment_ms), record.value)
        return replace(record, timestamp_ms=self.moment_ms(record.timestamp_ms), value=value)

    def moment_ms(self, recorded_ms: int) -> int:
        """Return the demo's time of a recorded one; linear within a phase, so order is kept."""
        phase = self.phases[max(0, bisect_right(self._starts, recorded_ms) - 1)]
        width = phase.window_end_ms - phase.window_start_ms
        begin = int(phase.start.timestamp() * 1000)
        return begin + (recorded_ms - phase.window_start_ms) * _HOUR_MS // width


def _recorded(file: Path) -> Iterator[KafkaRecord]:
    with opened(str(file)) as stream:
        for line in stream:
            entry = record_of(line)
            assert isinstance(entry, dict), entry
            names = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
            yield KafkaRecord(*(entry[name] for name in names))


def _moved(moment: Callable[[int], int]) -> Callable[[re.Match[bytes]], bytes]:
    def move(result: re.Match[bytes]) -> bytes:
        unit = _PER_MS[result[1]]
        return b'"ts_%b":%d' % (result[1], moment(int(result[2]) // unit) * unit)

    return move


def _next_heartbeat(last: KafkaRecord, phase: Phase) -> KafkaRecord:
    moment = phase.window_end_ms + 1_000
    value = _CLOCK.sub(b'"ts_ms":%d' % moment, last.value or b"")
    return replace(last, offset=last.offset + 1, timestamp_ms=moment, value=value)


def _end(phase: Phase | None, record: KafkaRecord) -> int:
    ends = phase.ends.get(record.topic) if phase is not None else None
    return ends[record.partition] if ends else 0


def _phase(entry: dict[str, Any], data: Path) -> Phase:
    number = entry["phase"]
    return Phase(
        number=number,
        title=entry["title"],
        start=FIRST_HOUR + timedelta(hours=number),
        ends=entry["end_offsets"],
        window_start_ms=entry["window_start_ms"],
        window_end_ms=entry["window_end_ms"],
        truth=data / "source_at" / f"{number}.jsonl.xz",
    )
