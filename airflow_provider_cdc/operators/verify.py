# SPDX-License-Identifier: Apache-2.0
"""Compare the tables of a pipeline with the change log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.operators.pipeline import PipelineOperator, airflow_errors

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


class CdcVerifyOperator(PipelineOperator):
    """Compare tables with all that the change log has of them; write to no table, and read nothing of the source.

    The result has ``pipeline``, ``seq``, ``position``, ``equal`` and ``tables``: of each ``table``, ``equal``, equal
    ``rows``, ``counts`` of rows that differ by kind, and ``reason`` where it cannot be compared; never values. The task
    fails without retry where a table differs.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param tables: ``database.table`` of each; all that are ``ok`` if empty. (templated)
    """

    template_fields: Sequence[str] = ("pipeline", "tables")
    ui_color = "#ede9fe"

    def __init__(self, *, pipeline: PipelineLike, tables: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.tables = tables

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the verdict."""
        from airflow_provider_cdc.batch.verify import verify

        with airflow_errors():
            verdict = verify(self.configured(context), self.tables, say=self._say)
        document = {**verdict.document(), "equal": verdict.equal}
        for table in document["tables"]:
            del table["differences"]  # they have values
        differing = [f"{table.table}: {table.counts}" for table in verdict.tables if table.equal is False]
        if differing:
            if "ti" in context and self.do_xcom_push:
                context["ti"].xcom_push("return_value", document)
            raise AirflowFailException(printable(f"tables differ from the change log: {'; '.join(differing)}"))
        return document

    def _say(self, line: str) -> None:
        self.log.info("%s", printable(line))
