# SPDX-License-Identifier: Apache-2.0
"""Open conditions by name. A new condition is a module and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.watch.condition import Condition

CONDITIONS: Mapping[str, str] = {
    "applied": "applied:AppliedCondition",
    "health": "health:HealthCondition",
    "lag": "lag:LagCondition",
    "lease": "lease:LeaseCondition",
    "received": "received:ReceivedCondition",
    "schema_change": "schema_change:SchemaChangeCondition",
}
"""Module and class of each condition, imported on first use."""


def open_condition(name: str, pipeline: CdcPipeline, **arguments: Any) -> Condition[Any, Any]:
    """Return a condition of a pipeline.

    :param arguments: of the condition's class.
    :raises ConfigurationError: an argument is wrong.
    """
    module, _, kind = CONDITIONS[name].partition(":")
    condition: Condition[Any, Any] = getattr(import_module(f"airflow_provider_cdc.watch.{module}"), kind)(
        pipeline, **arguments
    )
    return condition
