# SPDX-License-Identifier: Apache-2.0
"""Wait in the triggerer until a pipeline's log is complete up to a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import CdcError, Transient
from airflow_provider_cdc.hooks.kafka_config import client_config
from airflow_provider_cdc.hooks.kafka_log import KafkaLog


class CdcReceivedTrigger(BaseTrigger):
    """Check the log at intervals, in a thread, until it is complete up to a time.

    :param pipeline: the pipeline as plain data; it holds no secrets.
    :param until: ISO time.
    :param poke_interval: seconds between two checks.
    :param deadline: end of waiting, in seconds since 1970.
    """

    def __init__(self, pipeline: dict[str, Any], until: str, poke_interval: float, deadline: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
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
        message = "the log was not read"
        from airflow_provider_cdc.batch.received import check_received

        while True:
            try:
                log = await _open(pipeline.source.connection)
                status = await asyncio.to_thread(check_received, pipeline, until, log)
                message = status.message
                if status.reached:
                    yield TriggerEvent({"status": "reached", "told": message, "seen": status.document()})
                    return
            except CdcError as error:
                message = str(error)
                if not isinstance(error, Transient):
                    yield TriggerEvent({"status": "failed", "told": message})
                    return
            self.log.info("%s", message)
            left = self.deadline - time.time()
            if left <= 0:
                yield TriggerEvent({"status": "timeout", "told": f"timed out: {message}"})
                return
            await asyncio.sleep(min(self.poke_interval, left))


class _ResolvedLog(KafkaLog):
    """Read a log whose connection was resolved before, without blocking."""

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
        conn = await BaseHook.aget_connection(conn_id)
    except AirflowNotFoundException:
        raise ConfigurationError([f"there is no connection {conn_id!r}"], where={"connection": conn_id}) from None
    config = client_config(
        conn_id, conn.extra_dejson, host=conn.host, port=conn.port, login=conn.login, password=conn.password
    )
    return _ResolvedLog(conn_id, config)
