# SPDX-License-Identifier: Apache-2.0
"""Build the tasks of pipelines: a task group for one, a DAG for a folder of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import DAG, TaskGroup

from airflow_provider_cdc.batch.arguments import PipelineLike, as_pipeline
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow_provider_cdc.surface.checks import Check


def cdc_task_group(
    pipeline: PipelineLike,
    *,
    group_id: str | None = None,
    received: bool = True,
    checks: Sequence[Check] = (),
    source_conn_id: str | None = None,
    outlets: Sequence[Any] = (),
    operator_args: Mapping[str, Any] | None = None,
) -> TaskGroup:
    """Return the tasks of a pipeline: ``received``, ``sync`` and ``check``, one after the other.

    With checks, parked and waiting tables do not fail the sync, so that its assets' events are sent; a check fails for
    them.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file.
    :param group_id: the pipeline's name without it.
    :param received: wait, before the sync, until the log is complete up to the time of the sync.
    :param checks: run after the sync.
    :param source_conn_id: connection of the source database, for checks that compare with it.
    :param outlets: assets of the sync.
    :param operator_args: further arguments of ``CdcSyncOperator``.
    """
    from airflow_provider_cdc.operators.sync import CdcSyncOperator

    named = as_pipeline(pipeline)
    arguments: dict[str, Any] = {"deferrable": True, "outlets": list(outlets)}
    if checks:
        arguments |= {"on_parked": "warn", "on_waiting": "warn"}
    arguments |= dict(operator_args or {})
    with TaskGroup(group_id or named.name.replace(".", "_")) as group:
        sync = CdcSyncOperator(task_id="sync", pipeline=named, **arguments)
        if received:
            from airflow_provider_cdc.sensors.received import CdcReceivedSensor

            until = arguments.get("until")
            CdcReceivedSensor(task_id="received", pipeline=named, until=until, deferrable=True) >> sync
        if checks:
            from airflow_provider_cdc.operators.check import CdcCheckOperator

            sync >> CdcCheckOperator(task_id="check", pipeline=named, checks=checks, source_conn_id=source_conn_id)
    return group


class CdcDag(DAG):
    """A DAG with one task group for each pipeline of a folder; the groups are independent of each other.

    :param dag_id: the DAG's id.
    :param pipelines: folder with YAML files, or a list of pipelines.
    :param group_args: arguments of :func:`cdc_task_group` for all of them.
    :param arguments: of ``DAG``.
    """

    def __init__(
        self,
        dag_id: str,
        *,
        pipelines: str | Path | Sequence[PipelineLike],
        group_args: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(dag_id, **arguments)
        with self:
            for pipeline in _named(pipelines):
                cdc_task_group(pipeline, **dict(group_args or {}))


def _named(pipelines: str | Path | Sequence[PipelineLike]) -> list[CdcPipeline]:
    """Return the pipelines, those of a folder in the order of their files.

    :raises ConfigurationError: there is none, or two have the same name.
    """
    if isinstance(pipelines, (str, Path)):
        sources: Sequence[PipelineLike] = sorted(
            path for path in Path(pipelines).iterdir() if path.suffix in (".yaml", ".yml")
        )
        if not sources:
            raise ConfigurationError([f"pipelines: {pipelines} has no YAML file"])
    else:
        sources = pipelines
    named = [as_pipeline(source) for source in sources]
    names = [pipeline.name for pipeline in named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError([f"pipelines: several have the name {', '.join(twice)}"])
    return named
