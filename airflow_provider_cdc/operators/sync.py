# SPDX-License-Identifier: Apache-2.0
"""Run one batch of a pipeline as an Airflow task."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import conf

from airflow_provider_cdc.batch.arguments import PipelineLike, as_instant, as_pipeline
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError
from airflow_provider_cdc.operators.batch import GRACE, BatchOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_cdc.batch.platform_run import AwayBatch
    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.batch.window import ExactWindow, Until
    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.ledger import Ledger

_WINDOWS = ("cover", "exact")


class CdcSyncOperator(BatchOperator):
    """Bring a pipeline's tables up to a time: plan, land, apply, publish.

    The same request again (retry, clear, backfill) finds its batch done and returns the stored result. Another run that
    works on the pipeline is waited for, and a retry takes over from its own dead try at once.

    Every asset among the task's ``outlets`` gets an event with the cut as its extra, every ``AssetAlias`` one event for
    each table that changed, with the asset ``cdc://<pipeline>/<database>/<table>``. The asset ``cdc://<pipeline>`` gets
    one only where no table is parked or waits.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param until: the tables then hold everything that the source committed before it. ``now`` means what is in Kafka
        now. Without it the run decides: the end of its data interval, else the time in the asset event that started
        it, else now. (templated)
    :param after: begin of the window; needed with ``window="exact"``. (templated)
    :param window: ``cover``: a run is done as soon as a batch reaches ``until``; late or parallel runs may share one.
        ``exact``: each run's window is one batch; a run waits for the windows before it, and fails if another batch
        holds its window.
    :param on_parked: what parked tables do to the task, after the others are committed: ``fail`` it without retry,
        ``warn`` in the log, or ``skip`` it and so what follows.
    :param on_waiting: the same for tables that wait for a schema change. None of it spends a try: the next run reads
        what has arrived meanwhile, and a table that waits for too long is parked.
    :param lease_wait: longest wait for other runs of the pipeline; ``[cdc] lease_wait`` without it.
    :param deferrable: wait in the triggerer, without a worker: for other runs, and while a platform runs a batch
        (``spark.submit``).
    :param poll_interval: seconds between two looks while waiting.
    :param accept_loss: continue although Kafka deleted records that no batch has read.
    :param new_generation: the record with which a new log of the source may begin, as the error
        ``source.new_generation`` names it. It approves this one record; a later run with it has no effect. (templated)
    """

    template_fields: Sequence[str] = ("pipeline", "until", "after", "new_generation")

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        until: str | datetime | None = None,
        after: str | datetime | None = None,
        window: Literal["cover", "exact"] = "cover",
        on_parked: Literal["fail", "warn", "skip"] = "fail",
        on_waiting: Literal["fail", "warn", "skip"] = "fail",
        lease_wait: timedelta | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float = 10,
        accept_loss: bool = False,
        new_generation: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            pipeline=pipeline,
            on_parked=on_parked,
            on_waiting=on_waiting,
            lease_wait=lease_wait,
            deferrable=deferrable,
            poll_interval=poll_interval,
            **kwargs,
        )
        self.until = until
        self.after = after
        self.window = window
        self.accept_loss = accept_loss
        self.new_generation = new_generation
        self._exact: ExactWindow | None = None
        self._back: AwayBatch | None = None

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """Return what the task is going to read, as far as its pipeline names it."""
        from airflow.providers.openlineage.extractors import OperatorLineage

        from airflow_provider_cdc.batch.source_log import open_log
        from airflow_provider_cdc.observability.lineage import as_operator_lineage, expected_lineage

        try:
            pipeline = as_pipeline(self.pipeline)
            return as_operator_lineage(expected_lineage(pipeline, open_log(pipeline).namespace()))
        except (CdcError, OSError):  # execute reports it
            return OperatorLineage()

    # ---- course

    def asked(self, context: Context) -> Until:
        """Return the end of the window that the argument or the run names."""
        from airflow_provider_cdc.batch.window import choose_until

        until = choose_until(self.until, context)
        self._exact = self._exact_window(until)
        self.log.info("%s: %s", as_pipeline(self.pipeline).name, self._exact or until)
        return until

    def resume(
        self, context: Context, started: float | None = None, event: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Continue after the wait, with the batch that a platform ran meanwhile."""
        from airflow_provider_cdc.batch.platform_run import AwayBatch

        away = (event or {}).get("away")
        self._back = None if away is None else AwayBatch.from_document(away)
        return super().resume(context, started, event)

    def settled(self, pipeline: CdcPipeline, until: Until, **course: Any) -> BatchResult:
        """Plan, run and publish."""
        from airflow_provider_cdc.batch.platform_run import Absence
        from airflow_provider_cdc.batch.runner import run_batch

        if self.deferrable and pipeline.spark.elsewhere:
            course["absence"] = Absence(partial(self._leave, pipeline), self._back)

        return run_batch(
            pipeline,
            until=until.at,
            accept_loss=self.accept_loss,
            new_generation=self.new_generation or "",
            **course,
        )

    def _leave(self, pipeline: CdcPipeline, away: AwayBatch) -> None:
        """Leave a batch that a platform runs to the triggerer."""
        from airflow_provider_cdc.triggers.run import CdcRunTrigger

        self.log.info("batch %s: run %s goes on without a worker", away.seq, away.run)
        limit = self.execution_timeout
        deadline = None if limit is None else away.began + limit.total_seconds()
        trigger = CdcRunTrigger(pipeline.to_dict(), away.document(), self.poll_interval, deadline)
        timeout = None if deadline is None else timedelta(seconds=max(0.0, deadline - time.time())) + GRACE
        self.defer(trigger=trigger, method_name="resume", kwargs={"started": away.began}, timeout=timeout)

    def window_of_trigger(self) -> list[str] | None:
        """Return the exact window."""
        return None if self._exact is None else [self._exact.after.isoformat(), self._exact.until.isoformat()]

    def _exact_window(self, until: Until) -> ExactWindow | None:
        from airflow_provider_cdc.batch.window import ExactWindow

        if self.window not in _WINDOWS:
            raise ConfigurationError([f"window: {self.window!r} is none of {', '.join(_WINDOWS)}"])
        if self.window == "cover":
            return None
        after = as_instant(self.after, "after")
        if after is None or until.at is None:
            raise ConfigurationError(["window: 'exact' needs the arguments after and until, or a run's data interval"])
        if after >= until.at:
            raise ConfigurationError([f"after: {after.isoformat()} is not before until, {until.at.isoformat()}"])
        return ExactWindow(after, until.at)

    def holds_back(self, pipeline: CdcPipeline, ledger: Ledger, context: Context) -> str:
        """Return why the run has to wait for the windows before its own; empty if it need not."""
        exact = self._exact
        reason = "" if exact is None else exact.holds_back(ledger, pipeline.name)
        if not reason or exact is None:
            return ""
        start = getattr(context.get("dag"), "start_date", None)
        if start is not None and exact.after <= start:
            return ""
        from airflow_provider_cdc.batch.planner import has_rows_before
        from airflow_provider_cdc.batch.source_log import open_log

        return reason if has_rows_before(pipeline, ledger, open_log(pipeline), exact.after) else ""
