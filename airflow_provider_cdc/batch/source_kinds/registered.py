# SPDX-License-Identifier: Apache-2.0
"""Fetch the schemas that records name from the lake or from a registry, and check the registry."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from airflow_provider_cdc.batch.findings import Finding, checked
from airflow_provider_cdc.core.config import CdcPipeline

if TYPE_CHECKING:
    from airflow_provider_cdc.core.formats.common.schema_supply import Answers


def schemas(
    pipeline: CdcPipeline,
    registry: Callable[[], dict[str, str]],
    stored: Callable[[], dict[str, str]],
    ids: Collection[int],
) -> Answers:
    """Return the schemas that records name: of the lake first, which outlives the registry.

    :param registry: returns the settings of the registry's client.
    :param stored: returns the options of the lake's store, secrets included.
    """
    from airflow_provider_cdc.core.schema_registry.kept_schemas import kept_or_asked

    lake = pipeline.lake
    return kept_or_asked(pipeline.name, lake.root, lambda: {**stored(), **lake.storage_options}, registry(), ids)


def registry_finding(pipeline: CdcPipeline) -> Finding:
    """Ask the registry for one schema: whether it is there does not matter."""

    def ask_it() -> str:
        from airflow_provider_cdc.connections.schema_registry import registry_settings
        from airflow_provider_cdc.core.schema_registry.client import ask

        settings = registry_settings(pipeline.source.schema_registry)
        ask(settings, [1])
        return f"{settings['url']} answers"

    return checked("schema registry", ask_it)
