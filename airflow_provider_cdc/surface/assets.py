# SPDX-License-Identifier: Apache-2.0
"""Name pipelines and tables as Airflow assets: ``cdc://<pipeline>`` and ``cdc://<pipeline>/<database>/<table>``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from urllib.parse import SplitResult

    from airflow.providers.common.compat.openlineage.facet import Dataset
    from airflow.providers.common.compat.sdk import Asset

    from airflow_provider_cdc.core.config import CdcPipeline

SCHEME = "cdc"


def cdc_asset(pipeline: CdcPipeline | str, table: str | None = None) -> Asset:
    """Return the asset of a pipeline's consistent cut, or of one of its tables.

    :param pipeline: the pipeline, or its name.
    :param table: ``database.table``.
    """
    from airflow.providers.common.compat.sdk import Asset

    name = pipeline if isinstance(pipeline, str) else pipeline.name
    parts = [name] if table is None else [name, *table.split(".", 1)]
    uri = f"{SCHEME}://{'/'.join(quote(part, safe='') for part in parts)}"
    return Asset(name=uri, uri=uri, group=SCHEME)  # names are unique: that of a pipeline alone may be taken


def table_extra(extra: dict[str, Any]) -> dict[str, Any]:
    """Return the extra of a table's event, as the release of Airflow takes it.

    Airflow 3.0 makes a key of the extra of an alias's event (``register_asset_changes_in_db``), so it takes no dicts.
    """
    from airflow import __version__

    if not __version__.startswith("3.0."):
        return extra
    return {name: json.dumps(value) if isinstance(value, dict) else value for name, value in extra.items()}


def create_asset(*, pipeline: str, table: str | None = None, extra: dict[str, Any] | None = None) -> Asset:
    """Return the asset that Airflow's asset factory asks for."""
    asset = cdc_asset(pipeline, table)
    asset.extra = dict(extra or {})
    return asset


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Return a URI of the scheme as it is.

    :raises ValueError: it names neither a pipeline nor a pipeline, a database and a table.
    """
    parts = [unquote(part) for part in uri.path.split("/")[1:]] if uri.path.strip("/") else []
    if not uri.netloc or len(parts) not in (0, 2) or not all(parts) or uri.query or uri.fragment:
        raise ValueError("expected cdc://<pipeline> or cdc://<pipeline>/<database>/<table>")
    return uri if parts else uri._replace(path="")


def convert_asset_to_openlineage(asset: Asset, lineage_context: object) -> Dataset:
    """Return an asset as OpenLineage names it; a table has the name that is a symlink in its batches' outputs."""
    from airflow.providers.common.compat.openlineage.facet import Dataset

    pipeline, *table = asset.uri.removeprefix(f"{SCHEME}://").strip("/").split("/")
    return Dataset(namespace=f"{SCHEME}://{unquote(pipeline)}", name=".".join(map(unquote, table)) or unquote(pipeline))
