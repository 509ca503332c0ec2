# SPDX-License-Identifier: Apache-2.0
"""Lease a pipeline: one holder, renewed while it lives, lost when somebody else takes over."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from types import TracebackType
from typing import Protocol

from airflow_provider_cdc.core.errors import BusyError, CdcError, Transient
from airflow_provider_cdc.ledger.owner import Owner


class LeaseKeeper(Protocol):
    """The part of the ledger that a lease needs."""

    def renew_lease(self, pipeline: str, token: int, seconds: float) -> datetime | None:
        """Extend the lease and return its new end; None when another holder has it."""

    def release_lease(self, pipeline: str, token: int) -> None:
        """Free the lease, if it is still the current one."""


def lease_lost(pipeline: str, owner: Owner, why: str) -> BusyError:
    """Return the error of a holder that lost its lease."""
    return BusyError(
        "ledger.lease_lost", f"the lease was lost: {why}", where={"pipeline": pipeline, "owner": str(owner)},
        hint="nothing was written since; run again",
    )  # fmt: skip


class Lease:
    """The right to plan and commit for one pipeline; a context manager that releases it.

    :param owner: the holder.
    :param token: grows with every new holder; every write of the ledger compares it.
    :param seconds: time that the lease outlives its holder; it is renewed every third of it.
    :param until: end of the lease by the database's clock, as last renewed.
    """

    def __init__(
        self,
        keeper: LeaseKeeper,
        pipeline: str,
        owner: Owner,
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
        # On our monotonic clock, from before the last successful renewal was requested: never too long.
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
            # The error of the work is more important; the lease ends by itself after its seconds.
            if kind is None:
                raise

    @property
    def lost(self) -> str:
        """Return the reason why the lease is lost; empty while it is held."""
        if not self._lost and time.monotonic() > self._good_until:
            return f"it could not be renewed for {self.seconds:g} s"
        return self._lost

    def check(self) -> None:
        """Raise when the lease is lost; cheap, without the database.

        :raises BusyError: code ``ledger.lease_lost``.
        """
        if self.lost:
            raise lease_lost(self.pipeline, self.owner, self.lost)

    def release(self) -> None:
        """Stop renewing and free the pipeline at once; a repeated call has no effect."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join(timeout=self.seconds)
        taken_over = bool(self._lost)
        self._lost = self._lost or "it was given back"
        if not taken_over:
            self._keeper.release_lease(self.pipeline, self.token)

    def hand_over(self) -> int:
        """Stop renewing but keep the pipeline leased; return the token, with which another process renews or takes it.

        :raises BusyError: the lease is lost.
        """
        self._stop.set()
        self._thread.join(timeout=self.seconds)
        self.check()
        if self._keeper.renew_lease(self.pipeline, self.token, self.seconds) is None:
            raise lease_lost(self.pipeline, self.owner, "somebody else took it over")
        return self.token

    def _renew(self) -> None:
        while not self._stop.wait(self.seconds / 3):
            asked = time.monotonic()
            try:
                until = self._keeper.renew_lease(self.pipeline, self.token, self.seconds)
            except Exception as error:
                # A short outage does no harm: check() raises when it becomes too long.
                if isinstance(error, CdcError) and not isinstance(error, Transient):
                    self._lost = f"it could not be renewed: {error}"
                    return
                continue
            if until is None:
                self._lost = "somebody else took it over"
                return
            self.until = until
            self._good_until = asked + self.seconds
