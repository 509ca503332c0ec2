"""A lease: one holder per pipeline, renewed while the holder lives, lost when somebody else took over."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from types import TracebackType
from typing import Protocol

from airflow_provider_cdc.core.errors import BusyError, CdcError, Transient


class LeaseKeeper(Protocol):
    """What a lease needs of the ledger."""

    def renew_lease(self, pipeline: str, token: int, seconds: float) -> datetime | None:
        """Move the lease's end; None when it is no longer ours."""

    def release_lease(self, pipeline: str, token: int) -> None:
        """Give the lease back, if it is still ours."""


def lease_lost(pipeline: str, owner: str, why: str) -> BusyError:
    """Return the error of a holder that lost its lease."""
    return BusyError(
        "ledger.lease_lost", f"the lease was lost: {why}", where={"pipeline": pipeline, "owner": owner},
        hint="nothing was written since; run again",
    )  # fmt: skip


class Lease:
    """The right to plan and commit for one pipeline; a context manager that gives it back.

    :param token: grows with every new holder; every write of the ledger compares it.
    :param seconds: how long the lease outlives its holder; it is renewed every third of that.
    :param until: end of the lease by the database's clock, as last renewed.
    """

    def __init__(
        self,
        keeper: LeaseKeeper,
        pipeline: str,
        owner: str,
        token: int,
        seconds: float,
        since: datetime,
        until: datetime,
    ) -> None:
        self.pipeline = pipeline
        self.owner = owner
        self.token = token
        self.seconds = seconds
        self.since = since
        self.until = until
        self._keeper = keeper
        self._lost = ""
        self._stop = threading.Event()
        # Counted on our own monotonic clock from before the last successful renewal was asked for: never too long.
        self._good_until = time.monotonic() + seconds
        self._thread = threading.Thread(target=self._renew, name=f"cdc-lease-{pipeline}", daemon=True)
        self._thread.start()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.release()
        except CdcError:
            # The work's own error says more; the lease ends by itself after its seconds.
            if kind is None:
                raise

    @property
    def lost(self) -> str:
        """Why the lease is lost; empty while it is held."""
        if not self._lost and time.monotonic() > self._good_until:
            return f"it could not be renewed for {self.seconds:g} s"
        return self._lost

    def check(self) -> None:
        """Raise when the lease is lost; cheap, asks no database.

        :raises BusyError: code ``ledger.lease_lost``.
        """
        if self.lost:
            raise lease_lost(self.pipeline, self.owner, self.lost)

    def release(self) -> None:
        """Stop renewing and free the pipeline at once; harmless when repeated."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join(timeout=self.seconds)
        taken_over = bool(self._lost)
        self._lost = self._lost or "it was given back"
        if not taken_over:
            self._keeper.release_lease(self.pipeline, self.token)

    def _renew(self) -> None:
        while not self._stop.wait(self.seconds / 3):
            asked = time.monotonic()
            try:
                until = self._keeper.renew_lease(self.pipeline, self.token, self.seconds)
            except Exception as error:
                # A short outage is survived: check() tells when it became too long.
                if isinstance(error, CdcError) and not isinstance(error, Transient):
                    self._lost = f"it could not be renewed: {error}"
                    return
                continue
            if until is None:
                self._lost = "somebody else took it over"
                return
            self.until = until
            self._good_until = asked + self.seconds
