# SPDX-License-Identifier: Apache-2.0
"""Distinguish Canal and TiCDC from the tools that imitate them (docs/wire/canal.md 5.2, 9.1)."""

from __future__ import annotations

from airflow_provider_cdc.core.formats.common.canal_shape import (
    CANAL_SCHEMA_CHANGES,
    DRS_SCHEMA_CHANGES,
    read_canal_shape,
)
from airflow_provider_cdc.core.formats.contract import Headers
from airflow_provider_cdc.core.formats.evidence import Evidence, contradicts, fits

_DRS_DATETIME = 94  # not a constant of JDBC


def of_canal(key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
    """Return what speaks for or against Canal, or TiCDC."""
    message = read_canal_shape(value)
    if message is None:
        return None
    if message.id is None:
        return contradicts("no id, and Canal always writes its batch's")
    if message.type in DRS_SCHEMA_CHANGES:
        return contradicts(f"the type {message.type} is one of DRS")
    if _DRS_DATETIME in (message.sqlType or {}).values():
        return contradicts("the sqlType 94 is DRS's own")
    if message.deleted_in == "old":
        return contradicts("the row of a DELETE stands in old")
    if message.timestamps == "seconds":
        return contradicts("TIMESTAMP is a number of seconds")
    if message.tidb:
        return fits("_tidb: written by TiCDC")
    if message.has_lengths:
        return fits("mysqlType has lengths")
    if message.lacks_lengths and message.id:
        return contradicts("mysqlType lacks the lengths that Canal writes")
    if message.type in CANAL_SCHEMA_CHANGES:
        return fits(f"the type {message.type} is one of Canal's")
    return fits("old has changed columns only") if message.old_is_partial else None
