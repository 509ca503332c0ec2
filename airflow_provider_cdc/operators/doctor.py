# SPDX-License-Identifier: Apache-2.0
"""Check from a worker that everything a pipeline needs is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.operators.pipeline import PipelineOperator, airflow_errors

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


class CdcDoctorOperator(PipelineOperator):
    """Check packages, format, broker, ledger and sink as ``airflow-cdc doctor`` does, on the worker; fail with hints.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param probe: also make a small table in the sink, merge into it and remove it.
    """

    ui_color = "#dcfce7"

    def __init__(self, *, pipeline: PipelineLike, probe: bool = False, **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.probe = probe

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Return the findings."""
        from airflow_provider_cdc.commands.doctor import findings

        with airflow_errors():
            results = list(findings(self.configured(context), probe=self.probe))
        for result in results:
            sign = "-" if result.ok is None else "ok" if result.ok else "FAIL"
            self.log.info("%s: %s: %s", result.check, sign, printable(result.message))
        wrong = [result for result in results if result.ok is False]
        if wrong:
            lines = "; ".join(f"{result.check}: {result.message} -> {result.hint}" for result in wrong)
            raise AirflowFailException(printable(lines))
        return [result.document() for result in results]
