# SPDX-License-Identifier: Apache-2.0
"""List the platforms that run batches. A new platform is a module and a line here."""

from __future__ import annotations

PLATFORMS: dict[str, str] = {
    "databricks": "airflow_provider_cdc.platforms.databricks",
    "kubernetes": "airflow_provider_cdc.platforms.kubernetes",
}
"""Modules with ``open_platform`` (``airflow_provider_cdc.platforms.contract``) by ``spark.submit``."""
