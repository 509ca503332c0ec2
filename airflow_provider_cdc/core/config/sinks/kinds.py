# SPDX-License-Identifier: Apache-2.0
"""List the kinds of tables that a batch can write. A new kind is a module on each side and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class SinkKind(NamedTuple):
    """A kind of table.

    :param reader: module that reads it on the Airflow side, with ``reader`` (``airflow_provider_cdc.sinks.contract``).
    :param writer: module that writes it in a batch, with ``open_sink`` (``spark_jobs.sinks.contract``).
    :param library: package that has to be installed on both sides.
    :param section: class of ``core.config.sinks`` that describes it.
    :param root_key: key of the section that says below which folder or address the tables lie.
    :param session: Spark writes large tables of it through a library of its own, which takes a session.
    """

    reader: str
    writer: str
    library: str
    section: str = "DeltaSink"
    root_key: str = "root"
    session: bool = True


SINKS: Mapping[str, SinkKind] = {
    "delta": SinkKind("airflow_provider_cdc.sinks.delta", "spark_jobs.sinks.delta.sink", "deltalake"),
    "iceberg": SinkKind(
        "airflow_provider_cdc.sinks.iceberg",
        "spark_jobs.sinks.iceberg.sink",
        "pyiceberg",
        "IcebergSink",
        "warehouse",
        session=False,
    ),
}
"""Kinds of tables by ``sink.type``."""
