# SPDX-License-Identifier: Apache-2.0
"""Decide which looks are worth a line in the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.watch.condition import Answer

REPEAT_AFTER = 600.0
"""Seconds after which a look that says the same is logged again, at debug level."""


class Announcements:
    """Log a look where what holds the condition back has changed.

    :param log: takes the lines.
    :param clock: seconds on a clock that never goes back.
    """

    def __init__(self, log: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._last: tuple[str, ...] | None = None
        self._at = 0.0

    def note(self, answer: Answer) -> None:
        """Log a look at info level where the holding partitions or tables changed, else now and then at debug."""
        self._write(("reached",) if answer.reached else answer.holds, answer.message, logging.INFO)

    def fail(self, code: str, message: str) -> None:
        """Log a look that failed, at warning level where the one before did not fail in the same way."""
        self._write((code,), message, logging.WARNING)

    def _write(self, state: tuple[str, ...], message: str, level: int) -> None:
        changed = state != self._last
        if not changed and self._clock() - self._at < REPEAT_AFTER:
            return
        self._last, self._at = state, self._clock()
        self._log.log(level if changed else logging.DEBUG, "%s", printable(message))
