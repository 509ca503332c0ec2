# SPDX-License-Identifier: Apache-2.0
"""Condition: nobody works on the pipeline, and nothing holds a window back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import datetime
from typing import Any

from airflow_provider_cdc.batch.window import ExactWindow
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.watch.condition import Answer, Condition

Stored = tuple[dict[str, Any] | None, str]


class LeaseCondition(Condition[Stored, None]):
    """Nobody works on the pipeline, and everything before a window is applied.

    :param window: begin and end of an exact window, ISO texts; None for a run that needs no window of its own.
    """

    reads_ledger = True

    def __init__(self, pipeline: CdcPipeline, window: Sequence[str] | None = None) -> None:
        super().__init__(pipeline)
        self.window = None if window is None else ExactWindow(*map(datetime.fromisoformat, window))

    def ledger_key(self) -> Hashable:
        """Return what decides the result of :meth:`stored`, in one ledger."""
        return type(self), self.pipeline.name, self.window

    def stored(self, ledger: Ledger) -> Stored:
        """Return who works on the pipeline, and what holds the window back.

        :raises SourceError: code ``window.passed``.
        """
        waits = "" if self.window is None else self.window.holds_back(ledger, self.pipeline.name)
        return ledger.holder(self.pipeline.name), waits

    def judge(self, stored: Stored | None, seen: None) -> Answer:
        """Return whether the run may go on."""
        assert stored is not None
        holder, waits = stored
        if holder is not None:
            owner, until = holder["owner"], holder["until"]
            return Answer(False, f"the pipeline is leased by {owner!r}, until {until} or longer", holds=(owner,))
        return Answer(not waits, waits or "the pipeline is free", holds=(waits,) if waits else ())
