# SPDX-License-Identifier: Apache-2.0
"""Read the options of the section ``[cdc]`` of Airflow's configuration."""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.common.compat.sdk import conf

SECTION = "cdc"


def default_lease_wait() -> timedelta:
    """Return the longest wait for other runs of a pipeline."""
    return timedelta(seconds=conf.getfloat(SECTION, "lease_wait", fallback=900.0))


def max_xcom_tables() -> int:
    """Return the number of tables that a result in XCom names."""
    value: int = conf.getint(SECTION, "max_xcom_tables", fallback=50)
    return value


def look_timeout() -> float:
    """Return the seconds within which a cluster has to answer a sensor's or trigger's new client."""
    value: float = conf.getfloat(SECTION, "kafka_look_timeout", fallback=3.0)
    return value


def look_threads() -> int:
    """Return the number of looks at one address that a triggerer makes at a time."""
    value: int = conf.getint(SECTION, "kafka_look_threads", fallback=4)
    return value


def metrics_table_tags() -> bool:
    """Return whether the metrics of applied rows are sent for each table."""
    value: bool = conf.getboolean(SECTION, "metrics_table_tags", fallback=False)
    return value


def openlineage_columns() -> bool:
    """Return whether lineage has the columns of tables."""
    value: bool = conf.getboolean(SECTION, "openlineage_columns", fallback=True)
    return value
