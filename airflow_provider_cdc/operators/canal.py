# SPDX-License-Identifier: Apache-2.0
"""Take what a Canal server holds into Kafka or files, as an Airflow task."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperator

from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.operators.pipeline import airflow_errors

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.sources.canal_targets import KafkaTarget, LandingFolder


class CanalDrainOperator(BaseOperator):
    """Write what a Canal server holds to a Kafka topic or to files, and acknowledge what is durable there.

    A crash before the acknowledgement repeats packets. Only one task, pipeline or other client may use a client id at a
    time. The task returns the numbers of ``packets`` and ``entries`` that were taken, and of packets that were
    ``acknowledged``.

    :param canal_conn_id: Airflow connection of type ``canal``.
    :param destination: name of the Canal instance. (templated)
    :param to: ``KafkaTarget`` or ``LandingFolder``.
    :param max_entries: Canal entries after which the task ends; None for no limit.
    :param max_time: time after which the task ends; None for no limit.
    :param until_idle: the task ends when nothing new came for so long.
    :param filter: regular expressions of ``schema.table``, separated by commas; empty leaves the server's. (templated)
    :param instance_wide_filter: allow a filter, which replaces that of the whole instance, for every client.
    """

    template_fields: Sequence[str] = ("destination", "filter")
    ui_color = "#dbeafe"

    def __init__(
        self,
        *,
        destination: str,
        to: KafkaTarget | LandingFolder,
        canal_conn_id: str = "canal_default",
        max_entries: int | None = None,
        max_time: timedelta | None = None,
        until_idle: timedelta = timedelta(seconds=30),
        filter: str = "",
        instance_wide_filter: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.canal_conn_id = canal_conn_id
        self.destination = destination
        self.to = to
        self.max_entries = max_entries
        self.max_time = max_time
        self.until_idle = until_idle
        self.filter = filter
        self.instance_wide_filter = instance_wide_filter
        self._stopper = Stopper()

    def execute(self, context: Context) -> dict[str, int]:
        """Take, store and acknowledge; return the numbers."""
        from airflow_provider_cdc.connections.lookup import canal_address
        from airflow_provider_cdc.core.config import CanalSource
        from airflow_provider_cdc.sources.canal_drain import Limits, drain
        from airflow_provider_cdc.sources.canal_session import CanalSession

        with airflow_errors():
            source = CanalSource(
                self.destination, self.canal_conn_id, idle_seconds=self.until_idle.total_seconds()
            )  # checks the arguments
            limits = Limits(
                float("inf") if self.max_entries is None else self.max_entries,
                float("inf") if self.max_time is None else self.max_time.total_seconds(),
                source.idle_seconds,
            )
            store = self.to.open(source.destination)
            with CanalSession(canal_address(source.connection), source.destination) as session:
                session.subscribe(self.filter, instance_wide=self.instance_wide_filter)
                done = drain(session, store, limits, check=self._stopper.check)
        self.log.info("%d packets with %d entries, all of them acknowledged", done.packets, done.entries)
        return done.document()

    def on_kill(self) -> None:
        """End after the present request; what is not stored stays with the server."""
        self._stopper("the task was killed")
