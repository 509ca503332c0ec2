# SPDX-License-Identifier: Apache-2.0
"""Decide when a watcher rings: pure functions of what was seen, what was rung before, and the time.

The memory of a bell is plain JSON data and survives the process. A ring that gets lost with a process, or whose run
fails, comes again after a while as long as its reason lasts; otherwise no reason rings twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from airflow_provider_cdc.core.model.offsets import Offsets
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.plan.lag import Lag, Verdict
from airflow_provider_cdc.ledger.records import offsets_document, parse_offsets
from airflow_provider_cdc.watch.health import Health, unsettled

Memory = dict[str, Any]
Reading = TypeVar("Reading")

_SHOWN = 50


class Bell(ABC, Generic[Reading]):
    """A bell of one watcher.

    :ivar memory: what was rung; restored after a restart.
    """

    def __init__(self) -> None:
        self.memory: Memory = {}

    @abstractmethod
    def ring(self, reading: Reading, now: float) -> dict[str, Any] | None:
        """Return the payload of a ring, None for silence; change the memory.

        :param now: seconds since 1970.
        """


@dataclass(frozen=True)
class LogEnds:
    """Ends of a pipeline's topics.

    :param ends: offsets after the last record, exclusive.
    :param applied: end of the last committed batch; a partition that no batch has read counts from its first offset.
    """

    ends: Offsets
    applied: Offsets


@dataclass
class NewRecordsBell(Bell[LogEnds]):
    """Ring for records that no batch has read.

    :param min_records: number of new records below which it stays silent.
    :param quiet: seconds without a new record after which it rings.
    :param at_most_every: least seconds between two rings, and seconds after which it rings although records go on
        arriving.
    :param again_after: seconds after which it rings again for records that are still not applied.
    """

    min_records: int
    quiet: float
    at_most_every: float
    again_after: float
    memory: Memory = field(default_factory=dict)
    _seen: Offsets | None = None
    _changed_at: float = 0.0
    _first_at: float | None = None

    def ring(self, reading: LogEnds, now: float) -> dict[str, Any] | None:
        """Return the payload of a ring, None for silence; change the memory."""
        if reading.ends != self._seen:
            self._seen, self._changed_at = reading.ends, now
        rung_at = float(self.memory.get("rung_at", float("-inf")))
        waiting = _beyond(reading.ends, reading.applied)
        known = parse_offsets(self.memory.get("ends", {}))
        new = _beyond(reading.ends, _furthest(reading.applied, known))
        if new < self.min_records and (waiting < self.min_records or now - rung_at < self.again_after):
            self._first_at = None
            return None
        first_at = self._first_at = now if self._first_at is None else self._first_at
        due = now - self._changed_at >= self.quiet or now - first_at >= self.at_most_every
        if not due or now - rung_at < self.at_most_every:
            return None
        self._first_at = None
        self.memory = {"ends": offsets_document(reading.ends), "rung_at": now}
        return {"records": waiting, "ends": offsets_document(reading.ends)}


def _beyond(ends: Offsets, known: Offsets) -> int:
    return sum(
        max(0, end - known.get(topic, {}).get(partition, 0))
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
    )


def _furthest(first: Offsets, second: Offsets) -> Offsets:
    topics = {topic: {**second.get(topic, {}), **first.get(topic, {})} for topic in {*first, *second}}
    return {
        topic: {
            partition: max(first.get(topic, {}).get(partition, 0), second.get(topic, {}).get(partition, 0))
            for partition in partitions
        }
        for topic, partitions in topics.items()
    }


@dataclass
class LagBell(Bell[Lag]):
    """Ring when a lag goes above its bounds, and again after a while as long as it stays there.

    :param max_seconds: bound of the seconds; None for no bound.
    :param max_records: bound of the records that are not applied; None for no bound.
    :param again_after: seconds after which it rings again.
    :param for_looks: number of looks in a row that must be above.
    """

    max_seconds: float | None
    max_records: int | None
    again_after: float
    for_looks: int = 1
    memory: Memory = field(default_factory=dict)
    _looks: int = 0

    def ring(self, reading: Lag, now: float) -> dict[str, Any] | None:
        """Return the payload of a ring, None for silence; change the memory."""
        verdict = reading.compare(self.max_seconds, self.max_records)
        if verdict == Verdict.UNKNOWN:
            return None  # neither the end of a reason nor a new one
        if verdict == Verdict.BELOW:
            self._looks, self.memory = 0, {}
            return None
        self._looks += 1
        rung_at = self.memory.get("rung_at")
        if self._looks < self.for_looks or (rung_at is not None and now - float(rung_at) < self.again_after):
            return None
        self.memory = {"rung_at": now}
        lag_document = {name: value for name, value in reading.document().items() if name != "at"}
        return {"max_seconds": self.max_seconds, "max_records": self.max_records, "lag": lag_document}


@dataclass
class ParkedBell(Bell[Health]):
    """Ring for tables that are parked now and were not before, or for another reason."""

    memory: Memory = field(default_factory=dict)

    def ring(self, reading: Health, now: float) -> dict[str, Any] | None:
        """Return the payload of a ring, None for silence; change the memory."""
        parked = unsettled(reading, TableStatus.PARKED)
        before = self.memory.get("parked", {})
        new = {name: reason for name, reason in parked.items() if before.get(name) != reason}
        self.memory = {"parked": parked} if parked else {}
        if not new:
            return None
        tables = [{"table": name, "reason": reason} for name, reason in list(new.items())[:_SHOWN]]
        return {"seq": reading.seq, "tables": tables, "parked": len(parked)}
