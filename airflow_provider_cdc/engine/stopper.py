# SPDX-License-Identifier: Apache-2.0
"""Stop an engine; apart from what it runs, which a DAG is parsed without."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from airflow_provider_cdc.core.errors import UnavailableError


@dataclass
class Stopper:
    """Stop the running engine from another thread or a signal handler; an engine started later stops at once.

    :param stopped: the reason, empty before the stop.
    """

    stopped: str = ""
    _stop: Callable[[], None] | None = None

    def __call__(self, reason: str = "it was asked to stop") -> None:
        """Stop the engine that runs, and any that would be started."""
        self.stopped = self.stopped or reason
        stop = self._stop
        if stop is not None:
            stop()

    @contextlib.contextmanager
    def running(self, stop: Callable[[], None]) -> Any:
        """Register the way to stop the engine that runs inside the block.

        :raises UnavailableError: it was stopped before it started.
        """
        self._stop = stop
        try:
            self.check()
            yield
        finally:
            self._stop = None

    def check(self) -> None:
        """Raise after a stop."""
        if self.stopped:
            raise UnavailableError("engine.stopped", f"the batch was stopped: {self.stopped}", hint="run again")
