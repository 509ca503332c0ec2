# SPDX-License-Identifier: Apache-2.0
"""Watch a pipeline from the triggerer and start DAGs: triggers for ``AssetWatcher``."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

from airflow.sdk.exceptions import AirflowRuntimeError
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from airflow_provider_cdc.batch.arguments import PipelineLike, as_pipeline
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.watch.announcements import Announcements
from airflow_provider_cdc.watch.bells import Bell, LagBell, NewRecordsBell, ParkedBell
from airflow_provider_cdc.watch.condition import Condition
from airflow_provider_cdc.watch.health import HealthCondition
from airflow_provider_cdc.watch.lag import LagCondition, as_seconds
from airflow_provider_cdc.watch.log_ends import LogEndsCondition
from airflow_provider_cdc.watch.looks import shared_looks

_MEMORY = "cdc_watcher"

Span = timedelta | float


class WatchTrigger(BaseEventTrigger):
    """Look at intervals for as long as a DAG waits for the asset; ring whenever there is a reason.

    What was rung is remembered in the asset's state store, so that a restarted triggerer rings nothing twice. An error,
    also of the configuration, is logged and looked at again: nobody would restart a watcher that ended.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file, which is read here.
    :param poke_interval: seconds between two looks.
    """

    def __init__(self, pipeline: PipelineLike, poke_interval: Span = 30.0, **arguments: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = as_pipeline(pipeline).to_dict()
        self.poke_interval = _seconds("poke_interval", poke_interval)
        self.arguments = arguments

    @abstractmethod
    def condition(self, pipeline: CdcPipeline) -> Condition[Any, Any]:
        """Return what is read."""

    @abstractmethod
    def bell(self) -> Bell[Any]:
        """Return what decides when to ring."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what builds an equal trigger; equal triggers of several assets are one."""
        arguments = {"pipeline": self.pipeline, "poke_interval": self.poke_interval, **self.arguments}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield an event for each ring; does not end."""
        announcements = Announcements(self.log)
        pipeline = CdcPipeline.from_dict(self.pipeline)
        condition, bell = self.condition(pipeline), self.bell()
        bell.memory = await self._remembered()
        while True:
            try:
                stored, seen = await shared_looks().readings(condition, max_age=self.poke_interval / 2)
            except CdcError as error:
                announcements.fail(error.code, str(error))
            else:
                before = bell.memory
                payload = bell.ring(stored if seen is None else seen, time.time())
                if payload is not None:
                    self.log.info("ring: %s", printable(str(payload)))
                    yield TriggerEvent({"pipeline": pipeline.name, **payload})
                if bell.memory != before:
                    await self._remember(bell.memory)
            await asyncio.sleep(self.poke_interval)

    async def _remembered(self) -> dict[str, Any]:
        store = self._store()
        if store is None:
            return {}
        try:
            memory = await store.aget(_MEMORY)
        except ValueError:  # the trigger of several assets: none of their stores is its own
            self.asset_state_store = None
            self.log.warning("several assets share this trigger: a restart forgets what was rung")
            return {}
        return memory if isinstance(memory, dict) else {}

    async def _remember(self, memory: dict[str, Any]) -> None:
        store = self._store()
        if store is None:
            return
        try:
            await store.aset(_MEMORY, memory)
        except AirflowRuntimeError as error:
            self.log.warning("what was rung cannot be remembered: %s", printable(str(error)))

    def _store(self) -> Any:
        """Return what keeps the memory; None without an asset, and before Airflow 3.3, where a restart forgets."""
        return getattr(self, "asset_state_store", None)


class CdcNewRecordsTrigger(WatchTrigger):
    """Ring when Kafka has records of a pipeline that no batch has read.

    The event's payload has ``pipeline``, ``records`` and ``ends``; the run that it starts plans its own range, so that
    rings that come late, together or twice do no harm.

    :param min_records: number of new records below which it stays silent.
    :param quiet: time without a new record after which it rings.
    :param at_most_every: least time between two rings, and time after which it rings although records go on arriving.
    :param again_after: time after which it rings again for records that are still not applied.
    """

    def __init__(
        self,
        pipeline: PipelineLike,
        *,
        min_records: int = 1,
        quiet: Span = 30.0,
        at_most_every: Span = 60.0,
        again_after: Span = 3600.0,
        poke_interval: Span = 10.0,
    ) -> None:
        super().__init__(
            pipeline,
            poke_interval,
            min_records=min_records,
            quiet=_seconds("quiet", quiet),
            at_most_every=_seconds("at_most_every", at_most_every),
            again_after=_seconds("again_after", again_after),
        )

    def condition(self, pipeline: CdcPipeline) -> LogEndsCondition:
        """Return what is read."""
        return LogEndsCondition(pipeline)

    def bell(self) -> NewRecordsBell:
        """Return what decides when to ring."""
        return NewRecordsBell(**self.arguments)


class CdcLagExceededTrigger(WatchTrigger):
    """Ring when the tables of a pipeline are further behind the source than a bound.

    The event's payload has ``pipeline``, the bounds, and ``lag``: seconds, records, and the partitions behind.

    :param max_lag: bound of the lag in time; a number is seconds; None for no bound in time.
    :param max_records: bound of the records in Kafka that are not applied; None for no bound in records.
    :param again_after: time after which it rings again as long as the lag stays above.
    :param for_looks: number of looks in a row that must be above.
    """

    def __init__(
        self,
        pipeline: PipelineLike,
        *,
        max_lag: Span | None = None,
        max_records: int | None = None,
        again_after: Span = 3600.0,
        for_looks: int = 1,
        poke_interval: Span = 60.0,
    ) -> None:
        super().__init__(
            pipeline,
            poke_interval,
            max_lag=as_seconds("max_lag", max_lag),
            max_records=max_records,
            again_after=_seconds("again_after", again_after),
            for_looks=for_looks,
        )
        self._condition()

    def _condition(self, pipeline: CdcPipeline | None = None) -> LagCondition:
        mine = pipeline or CdcPipeline.from_dict(self.pipeline)
        arguments = self.arguments
        return LagCondition(mine, arguments["max_lag"], arguments["max_records"], for_looks=arguments["for_looks"])

    def condition(self, pipeline: CdcPipeline) -> LagCondition:
        """Return what is read."""
        return self._condition(pipeline)

    def bell(self) -> LagBell:
        """Return what decides when to ring."""
        arguments = self.arguments
        return LagBell(arguments["max_lag"], arguments["max_records"], arguments["again_after"], arguments["for_looks"])


class CdcTableParkedTrigger(WatchTrigger):
    """Ring when a table of a pipeline is parked, or parked for another reason; reads only the ledger.

    The event's payload has ``pipeline``, ``seq`` and ``tables``: name and reason of each.
    """

    def __init__(self, pipeline: PipelineLike, *, poke_interval: Span = 60.0) -> None:
        super().__init__(pipeline, poke_interval)

    def condition(self, pipeline: CdcPipeline) -> HealthCondition:
        """Return what is read."""
        return HealthCondition(pipeline)

    def bell(self) -> ParkedBell:
        """Return what decides when to ring."""
        return ParkedBell()


def _seconds(name: str, value: Span) -> float:
    seconds = as_seconds(name, value)
    if seconds is None:
        raise ConfigurationError([f"{name}: expected a time span or seconds"])
    return seconds
