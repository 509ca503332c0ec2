# SPDX-License-Identifier: Apache-2.0
"""Publish a batch that another provider's operator ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.arguments import PipelineLike, as_instant
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.operators.batch import BatchOperator

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.batch.window import Until
    from airflow_provider_cdc.core.config import CdcPipeline


class CdcPublishOperator(BatchOperator):
    """Record what came of a batch that ``CdcPlanOperator(stage=True)`` staged and a platform ran.

    Ledger, asset events, metrics and the end of the task are those of ``CdcSyncOperator``; the same again returns the
    stored result. It runs although the tasks between were skipped, as they are where nothing had to be run. Where the
    request needs further batches, it fails without retry after it published this one. It takes ``on_parked``,
    ``on_waiting``, ``lease_wait``, ``deferrable`` and ``poll_interval`` as ``CdcSyncOperator`` does.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param plan: what the task that staged the batch returned, its ``output``. (templated)
    """

    template_fields: Sequence[str] = ("pipeline", "plan")

    def __init__(self, *, pipeline: PipelineLike, plan: Any, trigger_rule: str = "none_failed", **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, trigger_rule=trigger_rule, **kwargs)
        self.plan = plan

    def asked(self, context: Context) -> Until:
        """Return the end of the window that was staged."""
        from airflow_provider_cdc.batch.window import Until

        if not isinstance(self.plan, Mapping) or "began" not in self.plan:
            raise ConfigurationError(["plan: expected what CdcPlanOperator(stage=True) returned, its output"])
        return Until(as_instant(self.plan["until"]), "the staged request")

    def settled(self, pipeline: CdcPipeline, until: Until, **course: Any) -> BatchResult:
        """Publish."""
        from airflow_provider_cdc.batch.staging import publish

        return publish(pipeline, self.plan, **course)
