# SPDX-License-Identifier: Apache-2.0
"""Wait for a condition of a pipeline: in the worker, with reschedules, or in the triggerer."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
    BaseOperatorLink,
    BaseSensorOperator,
    PokeReturnValue,
    conf,
)

from airflow_provider_cdc.batch.arguments import PipelineLike, as_pipeline
from airflow_provider_cdc.core.errors import CdcError, Transient, concerns_configuration
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.observability.metrics import error_metrics, send
from airflow_provider_cdc.operators.pipeline import introduce, rendered_pipeline
from airflow_provider_cdc.surface.links import CdcPipelineLink

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.watch.condition import Answer, Condition

_GRACE = timedelta(seconds=60)
"""Time after the trigger's own timeout, which says why; Airflow's timeout then is for a trigger that is gone."""


DEFERRABLE: bool = conf.getboolean("operators", "default_deferrable", fallback=False)
"""Whether a sensor that does not say waits in the triggerer: Airflow's setting."""


class _Misconfigured(Exception):
    """An error of the configuration on its way past ``soft_fail``."""


class ConditionSensor(BaseSensorOperator):
    """Wait until a condition of a pipeline holds.

    It looks once before it defers. ``timeout`` and ``execution_timeout`` hold while it is deferred, and the message of
    a timeout names what holds the condition back. An error of the configuration fails the task also with ``soft_fail``.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param deferrable: wait in the triggerer.
    :cvar condition: name of what is waited for (``watch.registry``).
    """

    template_fields: Sequence[str] = ("pipeline",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"pipeline": "yaml"}
    operator_extra_links: Sequence[BaseOperatorLink] = (CdcPipelineLink(),)
    ui_color = "#e0f2fe"
    condition: ClassVar[str]

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        deferrable: bool = DEFERRABLE,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.deferrable = deferrable
        self._condition: Condition[Any, Any] | None = None
        self._holding = ""
        self._code = ""

    def render_template_fields(self, context: Context, jinja_env: Any = None) -> None:
        """Render the templates, and those in the pipeline's file."""
        super().render_template_fields(context, jinja_env)
        self.pipeline = rendered_pipeline(self, self.pipeline, context, jinja_env)

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the condition.

        :raises ConfigurationError: an argument is wrong.
        """

    def execute(self, context: Context) -> Any:
        """Look once; then wait here or in the triggerer."""
        with suppress(CdcError, OSError):  # the look reports it
            introduce(self, as_pipeline(self.pipeline), context)
        wait = self._look_and_defer if self.deferrable else super().execute
        return self._explained(wait, context)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Return the trigger's answer, or raise its error."""
        resume = super().resume_execution
        return self._explained(lambda ctx: resume(next_method, next_kwargs, ctx), context)

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> Any:
        """Return the trigger's answer, or raise its error."""
        answer = event or {}
        message = printable(answer.get("message", "the trigger ended without an event"))
        self._code = str(answer.get("code") or "")
        if answer.get("status") == "reached":
            self.log.info("%s", message)
            return answer["value"]
        if answer.get("status") == "timeout":
            raise self._timeout(answer["limit"], message)
        if answer.get("configuration"):
            raise _Misconfigured(message)
        raise AirflowFailException(message)

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once."""
        try:
            answer = self.look(context)
        except CdcError as error:
            self._holding, self._code = printable(str(error)), error.code
            if concerns_configuration(error):
                raise _Misconfigured(self._holding) from error
            if not isinstance(error, Transient):
                raise AirflowFailException(self._holding) from error
            self._announcements.fail(error.code, self._holding)
            if self._condition is not None:
                send(self._condition.pipeline, error_metrics(error))
            return PokeReturnValue(False)
        return self._weigh(answer)

    def look(self, context: Context) -> Answer:
        """Return what the condition says now."""
        return self.prepared().check()

    def prepared(self) -> Condition[Any, Any]:
        """Return the condition; it is the same for all looks of a task's process."""
        from airflow_provider_cdc.watch.registry import open_condition

        if self._condition is None:
            self._condition = open_condition(self.condition, as_pipeline(self.pipeline), **self.arguments())
        return self._condition

    def note_failure(self, code: str, context: Context) -> None:
        """Leave a trace that the task failed, where others look for it.

        :param code: of the error that ended it, or the name of its class.
        """

    def _weigh(self, answer: Answer) -> PokeReturnValue:
        self._announcements.note(answer)
        self._holding, self._code = printable(answer.message), ""
        if answer.alarm:
            raise AirflowFailException(self._holding)
        return PokeReturnValue(answer.reached, answer.document if answer.reached else None)

    @property
    def _announcements(self) -> Any:
        from airflow_provider_cdc.watch.announcements import Announcements

        if not hasattr(self, "_lines"):
            self._lines = Announcements(self.log)
        return self._lines

    def _look_and_defer(self, context: Context) -> Any:
        started = time.time()
        try:
            reached = self.poke(context)
        except AirflowException as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(str(error)) from error
            raise
        if reached:
            return reached.xcom_value
        assert self._condition is not None
        limits = {"timeout": float(self.timeout)}
        if self.execution_timeout is not None:
            limits["execution_timeout"] = self.execution_timeout.total_seconds()
        limit = min(limits, key=lambda name: limits[name])
        from airflow_provider_cdc.triggers.condition import CdcConditionTrigger

        trigger = CdcConditionTrigger(
            self.condition,
            pipeline=self._condition.pipeline.to_dict(),
            poke_interval=float(self.poke_interval),
            deadline=started + limits[limit],
            limit=limit,
            **self.arguments(),
        )
        left = timedelta(seconds=max(0.0, limits[limit])) + _GRACE
        self.defer(trigger=trigger, method_name="execute_complete", timeout=left)

    def _explained(self, wait: Callable[[Context], Any], context: Context) -> Any:
        """Wait; log why the task is skipped, and name in a timeout what holds the condition back."""
        try:
            return wait(context)
        except _Misconfigured as error:
            self.note_failure(self._code, context)
            raise AirflowFailException(str(error)) from error
        except (AirflowFailException, AirflowTaskTimeout) as error:
            self.note_failure(self._code or type(error).__name__, context)
            raise
        except AirflowSensorTimeout as error:
            self.note_failure(self._code or type(error).__name__, context)
            raise AirflowSensorTimeout(self._named(str(error))) from error
        except AirflowSkipException as error:
            reason = self._named(str(error.__cause__ or error))
            self.log.warning("skipped: %s", reason)
            raise AirflowSkipException(f"skipped: {reason}") from error

    def _named(self, message: str) -> str:
        return message if not self._holding or self._holding in message else f"{message} Last look: {self._holding}"

    def _timeout(self, limit: str, message: str) -> BaseException:
        """Return the error of a wait that ended: Airflow retries after ``execution_timeout``, not after ``timeout``."""
        text = f"timed out ({limit}): {message}"
        if limit == "timeout":
            return AirflowSensorTimeout(text)
        if self.soft_fail or self.never_fail:
            return AirflowSkipException(text)
        return AirflowTaskTimeout(text)
