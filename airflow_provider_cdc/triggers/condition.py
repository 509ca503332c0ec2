# SPDX-License-Identifier: Apache-2.0
"""Wait in the triggerer until a condition of a pipeline holds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_cdc.connections.settings import look_timeout
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import CdcError, Transient, concerns_configuration
from airflow_provider_cdc.watch.announcements import Announcements
from airflow_provider_cdc.watch.condition import Answer, Condition
from airflow_provider_cdc.watch.looks import shared_looks
from airflow_provider_cdc.watch.registry import open_condition


class CdcConditionTrigger(BaseTrigger):
    """Look at intervals until a condition holds, waiting ends, or an error cannot pass.

    Looks run in threads; triggers of the same pipeline share them.

    :param condition: its name (``watch.registry``).
    :param pipeline: the pipeline as plain data; it holds no secrets.
    :param poke_interval: seconds between two looks.
    :param deadline: end of waiting, in seconds since 1970.
    :param limit: the argument of the sensor that set the deadline.
    :param arguments: those of the condition, as plain JSON data.
    """

    def __init__(
        self,
        condition: str,
        pipeline: dict[str, Any],
        poke_interval: float,
        deadline: float,
        limit: str = "timeout",
        **arguments: Any,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.condition = condition
        self.pipeline = pipeline
        self.poke_interval = poke_interval
        self.deadline = deadline
        self.limit = limit
        self.arguments = arguments

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what builds an equal trigger."""
        arguments = {
            "condition": self.condition,
            "pipeline": self.pipeline,
            "poke_interval": self.poke_interval,
            "deadline": self.deadline,
            "limit": self.limit,
            **self.arguments,
        }
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: reached, timeout or failed."""
        announcements = Announcements(self.log)
        try:
            condition = open_condition(self.condition, CdcPipeline.from_dict(self.pipeline), **self.arguments)
        except CdcError as error:
            yield _failed(error)
            return
        message, code = "nothing was read in time", ""
        while True:
            try:
                answer = await self._look(condition)
                if answer is not None:
                    message, code = answer.message, ""
                    announcements.note(answer)
                    if answer.reached or answer.alarm:
                        yield _ended(answer)
                        return
            except CdcError as error:
                if not isinstance(error, Transient):
                    yield _failed(error)
                    return
                message, code = str(error), error.code
                announcements.fail(error.code, message)
            left = self.deadline - time.time()
            if left <= 0:
                yield TriggerEvent({"status": "timeout", "limit": self.limit, "message": message, "code": code})
                return
            await asyncio.sleep(min(self.poke_interval, left))

    async def _look(self, condition: Condition[Any, Any]) -> Answer | None:
        """Look once; None if waiting ended before the answer."""
        look = shared_looks().answer(condition, max_age=self.poke_interval / 2)
        # After the deadline too: a triggerer may have been away for longer.
        try:
            return await asyncio.wait_for(look, max(2 * look_timeout(), self.deadline - time.time()))
        except TimeoutError:
            return None


def _ended(answer: Answer) -> TriggerEvent:
    status = "failed" if answer.alarm else "reached"
    return TriggerEvent({"status": status, "message": answer.message, "value": answer.document})


def _failed(error: CdcError) -> TriggerEvent:
    about = {"code": error.code, "configuration": concerns_configuration(error)}
    return TriggerEvent({"status": "failed", "message": str(error), **about})
