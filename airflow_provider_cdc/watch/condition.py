# SPDX-License-Identifier: Apache-2.0
"""Define a condition that is waited for: what it reads of ledger and log, and what it says of that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from airflow_provider_cdc.core.errors import CdcError

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.source_log import SourceLog
    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.ledger import Ledger, ProgressSample

Stored = TypeVar("Stored")
Seen = TypeVar("Seen")

SHOWN = 5
"""Partitions or tables that a message names."""


@dataclass(frozen=True)
class Answer:
    """Result of one look at a condition.

    :param reached: whether it holds.
    :param message: one sentence that names what holds it back.
    :param document: plain JSON data for XCom.
    :param holds: names of the partitions or tables that hold it back.
    :param alarm: whether waiting has to end with an error.
    """

    reached: bool
    message: str
    document: dict[str, Any] = field(default_factory=dict)
    holds: tuple[str, ...] = ()
    alarm: bool = False


class Condition(ABC, Generic[Stored, Seen]):
    """A condition of one pipeline: two readings that others may share, and a judgement without any input or output.

    :param pipeline: the pipeline.
    """

    reads_ledger: ClassVar[bool] = False
    reads_log: ClassVar[bool] = False

    def __init__(self, pipeline: CdcPipeline) -> None:
        self.pipeline = pipeline

    def stored(self, ledger: Ledger) -> Stored:
        """Read the ledger; blocks."""
        raise NotImplementedError

    def seen(self, log: SourceLog, stored: Stored | None) -> Seen:
        """Read the log; blocks."""
        raise NotImplementedError

    def ledger_key(self) -> Hashable:
        """Return what decides the result of :meth:`stored`, in one ledger."""
        return type(self), self.pipeline.name

    def log_key(self, stored: Stored | None) -> Hashable:
        """Return what decides the result of :meth:`seen`, in one cluster."""
        source = self.pipeline.source.document()
        return type(self), repr(sorted(source.items(), key=lambda item: item[0]))

    @abstractmethod
    def judge(self, stored: Stored | None, seen: Seen | None) -> Answer:
        """Return what the readings say; called once for each look."""

    def check(self) -> Answer:
        """Look once, here; blocks. Report it.

        :raises CdcError: ledger or log cannot be read.
        """
        stored, seen, ledger = None, None, None
        if self.reads_ledger:
            from airflow_provider_cdc.connections.lookup import ledger_url
            from airflow_provider_cdc.ledger import Ledger

            ledger = Ledger(ledger_url(self.pipeline.ledger))
            stored = self.stored(ledger)
        if self.reads_log:
            from airflow_provider_cdc.batch.source_log import open_log, when_free
            from airflow_provider_cdc.connections.settings import look_timeout

            log = open_log(self.pipeline, right=when_free(self.pipeline, "a sensor"), first_contact=look_timeout())
            seen = self.seen(log, stored)
        sample = self.report(stored, seen)
        if sample is not None and ledger is not None:
            with suppress(CdcError):  # the answer does not depend on its record
                ledger.record_progress(self.pipeline.name, sample)
        return self.judge(stored, seen)

    def report(self, stored: Stored | None, seen: Seen | None) -> ProgressSample | None:
        """Send the metrics of a look, and return what of it belongs into the history of the pipeline's progress."""
        return None


def name_some(holds: list[str]) -> str:
    """Return the first of some sentences, and how many more there are."""
    rest = f" and {len(holds) - SHOWN} more" if len(holds) > SHOWN else ""
    return ", ".join(holds[:SHOWN]) + rest
