# SPDX-License-Identifier: Apache-2.0
"""Return addresses of the page *CDC pipelines*, relative to the host of Airflow's UI."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from airflow.providers.common.compat.sdk import conf


def ui_folder() -> str:
    """Return the path of the UI on its host, without a slash at its end; empty where it is the root."""
    return urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")


def page_address(pipeline: str, seq: int | None = None) -> str:
    """Return the address of a pipeline's page; empty where there is no page: switched off, or Airflow before 3.1.

    :param seq: number of the batch to begin with.
    """
    from airflow.providers.common.compat.sdk import AirflowPlugin

    if not conf.getboolean("cdc", "page_enabled", fallback=True) or not hasattr(AirflowPlugin, "react_apps"):
        return ""
    parameters = {"pipeline": pipeline} | ({} if seq is None else {"seq": str(seq)})
    return f"{ui_folder()}/plugin/cdc?{urlencode(parameters)}"
