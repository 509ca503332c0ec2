"""Waiting in the triggerer until a pipeline's log is complete up to a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import CdcError, Transient
from airflow_provider_cdc.hooks.kafka_config import client_config
from airflow_provider_cdc.hooks.kafka_log import KafkaLog

_SHOWN = 5


@dataclass(frozen=True)
class Seen:
    """What one look at the log showed.

    :param progress: source time up to which everything is there, None while unknown.
    :param told: the same in a sentence that names what holds it back.
    """

    reached: bool
    until: str
    progress: str | None
    told: str

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {"until": self.until, "received": self.progress}


def look(pipeline: CdcPipeline, until: datetime, log: KafkaLog) -> Seen:
    """Look at the ends of the pipeline's partitions once; blocks for as long as Kafka takes.

    :raises CdcError: the log cannot be read.
    """
    from airflow_provider_cdc.core.plan.progress import received
    from airflow_provider_cdc.planner import observe

    facts, beats = observe(pipeline, log)
    found = received(int(until.timestamp() * 1000), facts, beats)
    progress = _iso(found.progress_ms)
    text = until.astimezone(UTC).isoformat()
    if found.reached:
        return Seen(True, text, progress, f"everything before {text} is in Kafka; received up to {progress}")
    held = [
        f"{hold.topic}/{hold.partition} (known up to {_iso(hold.progress_ms) or 'nothing'}: {hold.why})"
        for hold in found.holds[:_SHOWN]
    ]
    rest = f" and {len(found.holds) - _SHOWN} more" if len(found.holds) > _SHOWN else ""
    return Seen(
        False, text, progress, f"not everything before {text} is in Kafka; held back by {', '.join(held)}{rest}"
    )


class CdcReceivedTrigger(BaseTrigger):
    """Looks at the log now and then, in a thread, until it is complete up to a time.

    :param pipeline: the pipeline as plain data; it holds no secrets.
    :param until: ISO time.
    :param poke_interval: seconds between two looks.
    :param deadline: seconds since the epoch when to give up.
    """

    def __init__(self, pipeline: dict[str, Any], until: str, poke_interval: float, deadline: float) -> None:
        super().__init__()
        self.pipeline = pipeline
        self.until = until
        self.poke_interval = poke_interval
        self.deadline = deadline

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what builds an equal trigger."""
        arguments = {
            "pipeline": self.pipeline,
            "until": self.until,
            "poke_interval": self.poke_interval,
            "deadline": self.deadline,
        }
        return "airflow_provider_cdc.triggers.received.CdcReceivedTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: reached, timeout or failed."""
        pipeline, until = CdcPipeline.from_dict(self.pipeline), datetime.fromisoformat(self.until)
        told = "nothing was seen"
        while True:
            try:
                log = await _open(pipeline.source.connection)
                seen = await asyncio.to_thread(look, pipeline, until, log)
                told = seen.told
                if seen.reached:
                    yield TriggerEvent({"status": "reached", "told": told, "seen": seen.document()})
                    return
            except CdcError as error:
                told = str(error)
                if not isinstance(error, Transient):
                    yield TriggerEvent({"status": "failed", "told": told})
                    return
            self.log.info("%s", told)
            left = self.deadline - time.time()
            if left <= 0:
                yield TriggerEvent({"status": "timeout", "told": f"timed out: {told}"})
                return
            await asyncio.sleep(min(self.poke_interval, left))


class _ResolvedLog(KafkaLog):
    """A log whose connection was resolved before, without blocking."""

    def __init__(self, conn_id: str, config: dict[str, str]) -> None:
        self._config = config
        super().__init__(conn_id)

    def client_config(self) -> dict[str, str]:
        return self._config


async def _open(conn_id: str) -> KafkaLog:
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowNotFoundException

    from airflow_provider_cdc.core.errors import ConfigurationError

    try:
        found = await BaseHook.aget_connection(conn_id)
    except AirflowNotFoundException:
        raise ConfigurationError([f"there is no connection {conn_id!r}"], where={"connection": conn_id}) from None
    config = client_config(
        conn_id, found.extra_dejson, host=found.host, port=found.port, login=found.login, password=found.password
    )
    return _ResolvedLog(conn_id, config)


def _iso(millis: int | None) -> str | None:
    return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC).isoformat()
