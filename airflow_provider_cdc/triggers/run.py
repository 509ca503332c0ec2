# SPDX-License-Identifier: Apache-2.0
"""Wait in the triggerer for the end of a platform's run, and keep the pipeline leased meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import BusyError, CdcError, Transient
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.watch.announcements import Announcements
from airflow_provider_cdc.watch.condition import Answer

if TYPE_CHECKING:
    from airflow_provider_cdc.core.documents import StagedPlace
    from airflow_provider_cdc.ledger import Ledger
    from airflow_provider_cdc.platforms.contract import Platform


class CdcRunTrigger(BaseTrigger):
    """Look at a run at intervals until it has ended, the lease is lost, or waiting ends, which cancels the run.

    What the job says of how far it is goes into the ledger.

    A triggerer that takes over from a dead one goes on with the same lease.

    :param pipeline: the pipeline as plain data; it holds no secrets.
    :param away: the batch, as ``AwayBatch`` documents it.
    :param poke_interval: seconds between two looks.
    :param deadline: end of waiting, in seconds since 1970; None for none.
    """

    def __init__(
        self, pipeline: dict[str, Any], away: dict[str, Any], poke_interval: float, deadline: float | None = None
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = pipeline
        self.away = away
        self.poke_interval = poke_interval
        self.deadline = deadline
        self._known = CdcPipeline.from_dict(pipeline)
        self._job: StagedPlace | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what builds an equal trigger."""
        names = ("pipeline", "away", "poke_interval", "deadline")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: ended, lost, timeout or failed."""
        announcements = Announcements(self.log)
        run, seconds = self.away["run"], self._known.policy.lease_seconds
        while True:
            try:
                if not await self._renew(seconds):
                    yield self._event("lost", "somebody else works on the pipeline")
                    return
                # after a pause: the scheduler fails a task that runs again before it has processed its deferral
                await asyncio.sleep(max(0.0, min(self.poke_interval, seconds / 3, self._left())))
                state = await _in_thread(lambda: self._platform().state(run))
                if state.ended:
                    yield self._event("ended", state.text)
                    return
                await self._record()
                announcements.note(Answer(False, f"run {run}: {state.text}", holds=(state.text,)))
            except CdcError as error:
                if not isinstance(error, Transient):
                    yield self._event("failed", f"run {run} goes on, but nobody can look at it: {error}")
                    return
                announcements.fail(error.code, str(error))
                await asyncio.sleep(min(self.poke_interval, seconds / 3))
            if self._left() <= 0:
                yield self._event("timeout", await self._given_up())
                return

    async def on_kill(self) -> None:
        """Cancel the run and free the pipeline: somebody cleared or ended the task.

        A run that a later try has adopted goes on: it has the lease.
        """
        ledger = await self._ledger()
        await _in_thread(lambda: self._cancel(ledger))

    async def _given_up(self) -> str:
        """Cancel the run; return what came of that."""
        try:
            await self.on_kill()
        except CdcError as error:
            return f"run {self.away['run']} has not ended, and was not cancelled: {error}"
        return f"run {self.away['run']} has not ended and is cancelled"

    def _cancel(self, ledger: Ledger) -> None:
        run, lease = self.away["run"], self.away["lease"]
        try:
            with ledger.lease(self._known.name, f"the triggerer, which cancels run {run}", handed_over=lease):
                self._platform().cancel(run)
        except BusyError as error:
            self.log.info("run %s goes on: %s", run, printable(error.message))

    def _left(self) -> float:
        return float("inf") if self.deadline is None else self.deadline - time.time()

    def _event(self, status: str, message: str) -> TriggerEvent:
        return TriggerEvent({"status": status, "message": message, "limit": "execution_timeout", "away": self.away})

    async def _renew(self, seconds: float) -> bool:
        ledger = await self._ledger()
        return await _in_thread(lambda: ledger.renew_lease(self._known.name, self.away["lease"], seconds)) is not None

    async def _record(self) -> None:
        """Let the ledger know what the running job now says of how far it is; the batch does not depend on it."""
        with suppress(CdcError):
            self._job = self._job or await _in_thread(self._opened_job)
            progress = await _in_thread(self._job.news)
            if progress is not None:
                ledger, away = await self._ledger(), self.away
                mine = self._known.name, away["lease"], away["seq"]
                await _in_thread(lambda: ledger.progressed(*mine, progress.document()))

    async def _ledger(self) -> Ledger:
        from airflow_provider_cdc.connections.lookup import async_ledger_url
        from airflow_provider_cdc.ledger import Ledger

        return Ledger(await async_ledger_url(self._known.ledger))

    def _opened_job(self) -> StagedPlace:
        from airflow_provider_cdc.batch.staged_job import place_of

        return place_of(self._known, self.away["job"])

    def _platform(self) -> Platform:
        from airflow_provider_cdc.platforms.contract import open_platform

        return open_platform(self._known.spark)


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Run what blocks; its thread can ask Airflow for connections."""
    return await sync_to_async(work, thread_sensitive=False)()
