# SPDX-License-Identifier: Apache-2.0
"""Wait until a schema change that no batch has read waits in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.sensors.condition import DEFERRABLE, ConditionSensor


class CdcSchemaChangeSensor(ConditionSensor):
    """Wait until a schema change of some kinds, which no batch has read, waits in the log.

    It returns the statements. It needs ``source.schema_topic``: changes among the rows are seen only by a batch.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param kinds: ``destructive`` (removes rows, columns or the table), ``unknown`` (is not understood and parks its
        table), ``barrier`` (may change stored values or the key), ``mapping`` (leaves stored values as they are).
    :param tables: names ``database.table`` that count; None for all. (templated)
    :param deferrable: wait in the triggerer; ``timeout`` and ``execution_timeout`` hold there too.
    """

    condition = "schema_change"

    template_fields: Sequence[str] = ("pipeline", "tables")

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        kinds: Sequence[str] = ("destructive", "unknown"),
        tables: Sequence[str] | None = None,
        deferrable: bool = DEFERRABLE,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, deferrable=deferrable, **kwargs)
        self.kinds = kinds
        self.tables = tables

    def arguments(self) -> dict[str, Any]:
        """Return the condition's arguments."""
        return {"kinds": self.kinds, "tables": self.tables}
