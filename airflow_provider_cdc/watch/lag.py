# SPDX-License-Identifier: Apache-2.0
"""Condition: the tables, or the log, are at most so far behind the source."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_cdc.batch.planner import marks_of, observe
from airflow_provider_cdc.batch.source_log import SourceLog
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.config.checks import Checks
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.model.offsets import Offsets
from airflow_provider_cdc.core.plan.lag import (
    FIRST_RECORDS,
    HeldTable,
    Lag,
    PartitionLag,
    Verdict,
    iso_time,
    lag,
    unread_windows,
)
from airflow_provider_cdc.watch.condition import Answer, Condition, name_some

if TYPE_CHECKING:
    from airflow_provider_cdc.ledger import Ledger, ProgressSample, UnsettledTable

LAG_OF = ("applied", "received")
UNKNOWN_POLICIES = ("wait", "pass", "fail")


@dataclass(frozen=True)
class Applied:
    """Offsets that the batches have read, and the tables that did not apply all of them.

    :param seq: number of the batch that says so, 0 before the first.
    """

    seq: int
    offsets: Offsets
    held: tuple[HeldTable, ...] = ()


class LagCondition(Condition[Applied, Lag]):
    """The tables, or the log, are at most so far behind the source, for some looks one after the other.

    :param max_seconds: bound of the seconds; None for no bound.
    :param max_records: bound of the records that are not applied; None for no bound.
    :param of: ``applied``: the tables behind the source; ``received``: the log behind the source.
    :param for_looks: number of looks in a row that must agree.
    :param raise_above: whether a lag above the bound ends waiting with an error.
    :param unknown: what an unknown lag means: ``wait``, ``pass`` (as below), ``fail`` (ends waiting with an error).
    """

    reads_ledger = True
    reads_log = True

    def __init__(
        self,
        pipeline: CdcPipeline,
        max_seconds: float | None = None,
        max_records: int | None = None,
        of: str = "applied",
        for_looks: int = 1,
        raise_above: bool = False,
        unknown: str = "wait",
    ) -> None:
        super().__init__(pipeline)
        checks = Checks()
        checks.choice("of", of, LAG_OF)
        checks.choice("unknown", unknown, UNKNOWN_POLICIES)
        checks.integer("for_looks", for_looks, least=1)
        checks.integer("max_records", max_records, optional=True)
        checks.raise_any()
        if max_seconds is None and max_records is None:
            raise ConfigurationError(["max_lag, max_records: a lag needs a bound"])
        if of == "received" and (max_records is not None or max_seconds is None):
            raise ConfigurationError(["max_records: a log that is behind the source has no bound in records"])
        self.max_seconds = max_seconds
        self.max_records = max_records
        self.of = of
        self.for_looks = for_looks
        self.raise_above = raise_above
        self.unknown = unknown
        self.streak: tuple[Verdict | None, int] = (None, 0)

    def stored(self, ledger: Ledger) -> Applied:
        """Read what is applied."""
        return applied_offsets(ledger, self.pipeline.name)

    def seen(self, log: SourceLog, stored: Applied | None) -> Lag:
        """Read the ends of the pipeline's partitions, and the first records that are not applied."""
        assert stored is not None
        return observe_lag(self.pipeline, log, stored)

    def log_key(self, stored: Applied | None) -> Hashable:
        """Return what decides the lag."""
        return "lag", self.pipeline.name, stored and stored.seq, super().log_key(stored)

    def report(self, stored: Applied | None, seen: Lag | None) -> ProgressSample | None:
        """Send the lag as metrics, and return it for the history."""
        return report_lag(self.pipeline, seen) if seen is not None else None

    def judge(self, stored: Applied | None, seen: Lag | None) -> Answer:
        """Return whether the lag has been below its bounds for enough looks."""
        assert seen is not None
        verdict = self._compare(seen)
        same, count = self.streak
        self.streak = (verdict, count + 1 if verdict == same else 1)
        settled = self.streak[1] >= self.for_looks
        passes = verdict == Verdict.BELOW or (verdict == Verdict.UNKNOWN and self.unknown == "pass")
        fails = (verdict == Verdict.ABOVE and self.raise_above) or (
            verdict == Verdict.UNKNOWN and self.unknown == "fail"
        )
        holding = [] if verdict == Verdict.BELOW else self._holding(seen, verdict)
        looks = f", {min(self.streak[1], self.for_looks)} of {self.for_looks} looks" if self.for_looks > 1 else ""
        message = f"{self._bound()}: {verdict}{looks}; {describe(seen)}"
        if holding:
            message += f"; held back by {name_some([self._describe(part) for part in holding])}"
        document = {**seen.document(), "verdict": str(verdict)}
        held = [table.name for table in seen.held] if verdict != Verdict.BELOW and self.of == "applied" else []
        unnamed = () if passes and settled else (str(verdict),)
        names = (*(part.name for part in holding), *held) or unnamed
        return Answer(passes and settled, message, document, names, alarm=fails and settled)

    def _compare(self, seen: Lag) -> Verdict:
        if self.of == "received":
            assert self.max_seconds is not None
            return seen.compare_received(self.max_seconds)
        return seen.compare(self.max_seconds, self.max_records)

    def _bound(self) -> str:
        bounds = [] if self.max_seconds is None else [f"{self.max_seconds:g} s"]
        bounds += [] if self.max_records is None else [f"{self.max_records} records"]
        what = "the log" if self.of == "received" else "the tables"
        return f"lag of {what} against {' and '.join(bounds)}"

    def _holding(self, seen: Lag, verdict: Verdict) -> list[PartitionLag]:
        received = self.of == "received"
        bound = None if self.max_seconds is None else seen.at_ms - self.max_seconds * 1000

        def late(part: PartitionLag) -> bool:
            time_ms = part.received_ms if received else part.applied_ms
            return bound is not None and (time_ms is None or time_ms < bound)

        many = verdict == Verdict.ABOVE and self.max_records is not None and seen.records > self.max_records
        return [part for part in seen.behind(received=received) if late(part) or (many and part.records)]

    def _describe(self, part: PartitionLag) -> str:
        if self.of == "received":
            return f"{part.name} (received up to {iso_time(part.received_ms) or 'nothing'})"
        reason = f": {part.why}" if part.why else ""
        return f"{part.name} ({part.records} records, applied up to {iso_time(part.applied_ms) or 'unknown'}{reason})"


def as_seconds(name: str, value: object) -> float | None:
    """Return an argument that is a time span, a number of seconds, or a text of one, as seconds.

    :param name: of the argument, for messages.
    :raises ConfigurationError: it is something else, or negative.
    """
    if value is None or value in ("", "None"):
        return None
    try:
        seconds = value.total_seconds() if isinstance(value, timedelta) else float(str(value))
    except ValueError:
        seconds = -1.0
    if isinstance(value, bool) or not 0 <= seconds < math.inf:
        raise ConfigurationError([f"{name}: expected a time span or seconds, got {value!r}"])
    return seconds


def describe(lag_now: Lag) -> str:
    """Return a lag in words."""
    seconds = "an unknown time" if lag_now.seconds is None else f"{lag_now.seconds:.1f} s"
    most = "" if lag_now.most_seconds is None else f", at most {lag_now.most_seconds:.1f} s behind the source"
    held = f"; {name_some([str(table) for table in lag_now.held])}" if lag_now.held else ""
    skew = "; the source's clock is ahead of ours" if lag_now.skewed else ""
    return f"{lag_now.records} records and {seconds} not applied{most}{held}{skew}"


def report_lag(pipeline: CdcPipeline, lag_now: Lag) -> ProgressSample:
    """Send a lag as metrics, and return it for the history."""
    from airflow_provider_cdc.observability.history import sample_of
    from airflow_provider_cdc.observability.metrics import lag_metrics, send

    send(pipeline, lag_metrics(lag_now))
    return sample_of(lag_now)


def applied_offsets(ledger: Ledger, pipeline: str) -> Applied:
    """Return the offsets that the batches have read, and the tables that did not apply all of them."""
    from airflow_provider_cdc.ledger import SYNC

    batch = ledger.last(pipeline, SYNC)
    if batch is None:
        return Applied(0, {})
    held = tuple(_held(table) for table in ledger.unsettled_tables(pipeline))
    # A batch that is only planned begins where the last one ended.
    return Applied(batch.seq, batch.end, held) if batch.committed else Applied(-batch.seq, batch.start, held)


def _held(table: UnsettledTable) -> HeldTable:
    since = None if table.since is None else datetime.fromisoformat(table.since)
    return HeldTable(
        f"{table.database}.{table.table}",
        str(table.state),
        None if since is None else int(since.timestamp() * 1000),
        None if table.source_time is None else table.source_time // 1000,
    )


def observe_lag(pipeline: CdcPipeline, log: SourceLog, applied: Applied) -> Lag:
    """Read the log once and return how far the tables are behind; blocks for as long as Kafka takes.

    :raises CdcError: the log cannot be read.
    """
    mark_of = marks_of(pipeline, log)
    facts, beats = observe(pipeline, log, mark_of)
    firsts = {}
    for tp, records in log.read(unread_windows(facts, applied.offsets), FIRST_RECORDS).items():
        firsts[tp] = [mark for mark in map(mark_of, records) if mark is not None]
    return lag(int(time.time() * 1000), facts, beats, applied.offsets, firsts, applied.held)
