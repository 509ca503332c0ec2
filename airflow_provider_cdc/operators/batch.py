# SPDX-License-Identifier: Apache-2.0
"""Hold what tasks share that settle a batch: waiting for the pipeline, the result in Airflow, events, lineage."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowTaskTimeout,
    Asset,
    AssetAlias,
    BaseOperatorLink,
    conf,
)

from airflow_provider_cdc.batch.arguments import PipelineLike, as_pipeline, file_of
from airflow_provider_cdc.connections.settings import (
    default_lease_wait,
    max_xcom_tables,
    openlineage_columns,
)
from airflow_provider_cdc.core.errors import BusyError, CdcError, ConfigurationError
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.operators.pipeline import (
    PipelineOperator,
    airflow_error,
    airflow_errors,
    push_link,
    task_try,
)
from airflow_provider_cdc.operators.sync_report import report_batch
from airflow_provider_cdc.operators.sync_result import log_result, problem_of, small
from airflow_provider_cdc.surface.links import CdcBatchLink, CdcPipelineLink

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_cdc.batch.asset_events import AssetEvents
    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.batch.window import Until
    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.ledger import Ledger
    from airflow_provider_cdc.observability.lineage import BatchLineage

GRACE = timedelta(seconds=60)
"""Time after the trigger's own deadline; Airflow's timeout then is for a trigger that is gone."""
UNSETTLED = ("fail", "warn", "skip")


class BatchOperator(PipelineOperator):
    """Settle a batch of a pipeline; the arguments are those of :class:`CdcSyncOperator`."""

    operator_extra_links: Sequence[BaseOperatorLink] = (CdcPipelineLink(), CdcBatchLink())

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        on_parked: str = "fail",
        on_waiting: str = "fail",
        lease_wait: timedelta | None = None,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.on_parked = on_parked
        self.on_waiting = on_waiting
        self.lease_wait = default_lease_wait() if lease_wait is None else lease_wait
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.batch_seq: int | None = None
        self._stopper = Stopper()
        self._lineage: Callable[[], BatchLineage] | None = None

    @abstractmethod
    def asked(self, context: Context) -> Until:
        """Return up to which time the request reaches.

        :raises ConfigurationError: an argument is wrong.
        """

    @abstractmethod
    def settled(self, pipeline: CdcPipeline, until: Until, **course: Any) -> BatchResult:
        """Carry the request out and return its result.

        :param course: ``say``, ``kill``, ``owner`` and ``on_application`` as of ``runner.run_batch``.
        """

    def holds_back(self, pipeline: CdcPipeline, ledger: Ledger, context: Context) -> str:
        """Return why the run has to wait for others before it begins; empty if it need not."""
        return ""

    def window_of_trigger(self) -> list[str] | None:
        """Return the window that a trigger waits for the turn of, None where it waits for the pipeline alone."""
        return None

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the batch and return the small result."""
        return self._work(context, time.time())

    def resume(
        self, context: Context, started: float | None = None, event: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Continue after the wait.

        :param started: begin of the first attempt, in seconds since 1970; ``dag.test()`` loses it.
        """
        answer = event or {}
        if answer.get("status") == "failed":
            raise AirflowFailException(printable(str(answer.get("message"))))
        if answer.get("status") == "timeout":
            raise self._waited_too_long(context, printable(str(answer.get("message"))), str(answer.get("limit")))
        return self._work(context, time.time() if started is None else started)

    def on_kill(self) -> None:
        """Stop the engine."""
        self._stopper("the task was killed")

    # ---- lineage

    def get_openlineage_facets_on_complete(self, task_instance: object) -> OperatorLineage[Any, Any]:
        """Return what the batch read and wrote; Airflow's OpenLineage provider asks for it."""
        from airflow.providers.openlineage.extractors import OperatorLineage

        from airflow_provider_cdc.observability.lineage import as_operator_lineage

        if self._lineage is None:
            return OperatorLineage()
        return as_operator_lineage(self._lineage(), columns=openlineage_columns())

    def get_openlineage_facets_on_failure(self, task_instance: object) -> OperatorLineage[Any, Any]:
        """Return the same: other tables are committed where one is parked."""
        return self.get_openlineage_facets_on_complete(task_instance)

    # ---- course

    def _work(self, context: Context, started: float) -> dict[str, Any]:
        from airflow_provider_cdc.batch.attempts import failure_noted
        from airflow_provider_cdc.connections.lookup import ledger_url
        from airflow_provider_cdc.ledger import Ledger
        from airflow_provider_cdc.observability.metrics import error_metrics, failure_sent, send
        from airflow_provider_cdc.observability.remedies import copyable

        with airflow_errors():
            pipeline = self.configured(context)
            with failure_noted(pipeline, task_try(context), CdcError), failure_sent(pipeline):
                until = self._checked(context)
                ledger = Ledger(ledger_url(pipeline.ledger))
                while True:
                    waits = self.holds_back(pipeline, ledger, context)
                    if not waits:
                        try:
                            result = self._run(context, pipeline, until, started)
                            break
                        except BusyError as error:
                            if error.code != "ledger.busy":
                                raise
                            send(pipeline, error_metrics(error))
                            waits = str(error)
                    self._wait(context, pipeline, waits, started)
            if result.error is not None:
                self._lineage = report_batch(pipeline, ledger, result, ledger.open(pipeline.name), self.log)
                result.error.hint = copyable(result.error.hint, file_of(self.pipeline, pipeline.name))
                raise airflow_error(result.error) from result.error
        return self._conclude(context, pipeline, ledger, until, result)

    def _checked(self, context: Context) -> Until:
        for name, value in (("on_parked", self.on_parked), ("on_waiting", self.on_waiting)):
            if value not in UNSETTLED:
                raise ConfigurationError([f"{name}: {value!r} is none of {', '.join(UNSETTLED)}"])
        return self.asked(context)

    def _run(self, context: Context, pipeline: CdcPipeline, until: Until, started: float) -> BatchResult:
        with self._limited(started):
            return self.settled(
                pipeline,
                until,
                say=self._say,
                kill=self._stopper,
                owner=task_try(context),
                on_start=lambda batch: self._show_batch(context, batch.seq),
                on_application=partial(self._show_application, context),
            )

    def _show_batch(self, context: Context, seq: int | None) -> None:
        """Name the batch in XCom and link to it, before anything can fail."""
        if seq is None or seq == self.batch_seq or "ti" not in context:
            return
        self.batch_seq = seq
        context["ti"].xcom_push("batch_seq", seq)
        push_link(CdcBatchLink(), self, context)

    def _show_application(self, context: Context, application_id: str) -> None:
        """Name the Spark application in XCom while it runs."""
        if "ti" in context:
            context["ti"].xcom_push("spark_application_id", application_id)

    # ---- waiting

    def _deadline(self, started: float) -> tuple[float, str]:
        """Return the end of waiting, in seconds since 1970, and the argument that sets it."""
        limits = {"lease_wait": self.lease_wait.total_seconds()}
        if self.execution_timeout is not None:
            limits["execution_timeout"] = self.execution_timeout.total_seconds()
        limit = min(limits, key=lambda name: limits[name])
        return started + limits[limit], limit

    def _wait(self, context: Context, pipeline: CdcPipeline, reason: str, started: float) -> None:
        """Wait in the triggerer or here until another look is worth it."""
        deadline, limit = self._deadline(started)
        left = deadline - time.time()
        self.log.info("waiting for at most %.0f s (%s): %s", max(left, 0), limit, printable(reason))
        if left <= 0:
            raise self._waited_too_long(context, reason, limit)
        if not self.deferrable:
            self._stopper.check()
            time.sleep(min(self.poll_interval, left))
            return
        from airflow_provider_cdc.triggers.lease import CdcLeaseTrigger

        trigger = CdcLeaseTrigger(
            "lease",
            pipeline=pipeline.to_dict(),
            window=self.window_of_trigger(),
            poke_interval=self.poll_interval,
            deadline=deadline,
            limit=limit,
        )
        timeout = timedelta(seconds=left) + GRACE
        self.defer(trigger=trigger, method_name="resume", kwargs={"started": started}, timeout=timeout)

    def _waited_too_long(self, context: Context, reason: str, limit: str) -> BaseException:
        from airflow_provider_cdc.batch.attempts import note_attempt

        code = "window.waits" if self.window_of_trigger() else "ledger.busy"
        note_attempt(as_pipeline(self.pipeline), code, task_try(context))
        text = f"waited too long ({limit}): {reason}"
        return AirflowTaskTimeout(text) if limit == "execution_timeout" else AirflowException(text)

    @contextmanager
    def _limited(self, started: float) -> Iterator[None]:
        """Stop the engine when ``execution_timeout`` has passed since the first attempt: Airflow counts each alone."""
        if self.execution_timeout is None:
            yield
            return
        left = started + self.execution_timeout.total_seconds() - time.time()
        reason = f"execution_timeout of {self.execution_timeout} has passed, waiting included"
        timer = threading.Timer(max(left, 0), self._stopper, [reason])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    # ---- result

    def _conclude(
        self, context: Context, pipeline: CdcPipeline, ledger: Ledger, until: Until, result: BatchResult
    ) -> dict[str, Any]:
        """Log the result, send events, and return it or raise what parked and waiting tables ask for."""
        batch = None if result.seq is None else ledger.batch(pipeline.name, result.seq)
        self._show_batch(context, result.seq)
        log_result(self.log, result, batch)
        self._lineage = report_batch(pipeline, ledger, result, batch, self.log)
        answer = small(result, max_xcom_tables())
        answer["until"] = until.at.isoformat() if until.at else None
        if batch is not None and batch.until != until.at and result.repeated:
            answer["covered_by"] = batch.seq
        problem = problem_of(result, self.on_parked, self.on_waiting, self.log, file_of(self.pipeline, pipeline.name))
        if problem is None:
            self._announce(context, pipeline, ledger, result)
            return answer
        if "ti" in context and self.do_xcom_push:
            context["ti"].xcom_push("return_value", answer)
        raise problem

    def _say(self, line: str) -> None:
        self.log.info("%s", printable(line))

    # ---- asset events

    def _announce(self, context: Context, pipeline: CdcPipeline, ledger: Ledger, result: BatchResult) -> None:
        """Give the outlets' events their extra; an outlet without anything new sends none."""
        events = context.get("outlet_events")
        if events is None or not self.outlets:
            return
        from airflow_provider_cdc.batch.asset_events import events_to_send

        due = events_to_send(ledger, pipeline.name, result.seq, task_try(context))
        # Airflow sends an event for each outlet of a task that succeeds, so those without news are removed.
        self.outlets = [outlet for outlet in self.outlets if self._fill(events, outlet, pipeline, due)]
        if due is None:
            self.log.info("no asset events: nothing has changed since the last ones")
        else:
            ledger.mark_announced(pipeline.name, due.through)

    def _fill(self, events: Any, outlet: object, pipeline: CdcPipeline, due: AssetEvents | None) -> bool:
        """Add what is due to one outlet; return whether the outlet stays."""
        if isinstance(outlet, AssetAlias):
            from airflow_provider_cdc.surface.assets import cdc_asset, table_extra

            for (database, table), extra in {} if due is None else due.tables.items():
                events[outlet].add(cdc_asset(pipeline, f"{database}.{table}"), extra=table_extra(extra))
            return True
        if not isinstance(outlet, Asset):
            return True
        if due is None or (outlet.uri.startswith("cdc://") and not due.cut["consistent"]):
            return False
        events[outlet].extra = due.cut
        return True
