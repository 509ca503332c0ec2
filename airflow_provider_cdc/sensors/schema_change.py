# SPDX-License-Identifier: Apache-2.0
"""Wait until a schema change that no batch has read waits in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.sensors.condition import DEFERRABLE, ConditionSensor

if TYPE_CHECKING:
    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.triggers.schema_change import CdcSchemaChangeTrigger
    from airflow_provider_cdc.watch.schema_change import SchemaChangeCondition


class CdcSchemaChangeSensor(ConditionSensor):
    """Wait until a schema change of some kinds, which no batch has read, waits in the log.

    It returns the statements. It needs ``source.schema_topic``: changes among the rows are seen only by a batch.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param kinds: ``destructive`` (removes rows, columns or the table), ``unknown`` (is not understood and parks its
        table), ``barrier`` (may change stored values or the key), ``mapping`` (leaves stored values as they are).
    :param tables: names ``database.table`` that count; None for all. (templated)
    :param deferrable: wait in the triggerer; ``timeout`` and ``execution_timeout`` hold there too.
    """

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

    def condition(self, pipeline: CdcPipeline) -> SchemaChangeCondition:
        """Return what is waited for."""
        from airflow_provider_cdc.watch.schema_change import SchemaChangeCondition

        return SchemaChangeCondition(pipeline, self.kinds, self.tables)

    def trigger_class(self) -> type[CdcSchemaChangeTrigger]:
        """Return the trigger that waits for the condition."""
        from airflow_provider_cdc.triggers.schema_change import CdcSchemaChangeTrigger

        return CdcSchemaChangeTrigger
