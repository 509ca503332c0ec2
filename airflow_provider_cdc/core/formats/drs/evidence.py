# SPDX-License-Identifier: Apache-2.0
"""Distinguish DRS's two forms of JSON from each other and from Canal (docs/wire/huawei-drs.md 3)."""

from __future__ import annotations

from airflow_provider_cdc.core.formats.common.canal_shape import (
    CANAL_SCHEMA_CHANGES,
    DRS_SCHEMA_CHANGES,
    read_canal_shape,
)
from airflow_provider_cdc.core.formats.contract import Headers
from airflow_provider_cdc.core.formats.evidence import Evidence, contradicts, fits


def of_json(key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
    """Return what speaks for or against DRS's format JSON."""
    return _of_drs(value, "old", "seconds")


def of_json_c(key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
    """Return what speaks for or against DRS's format JSON-C."""
    return _of_drs(value, "data", "local time")


def _of_drs(value: bytes, deleted_in: str, timestamps: str) -> Evidence | None:
    message = read_canal_shape(value)
    if message is None:
        return None
    if message.id is None:
        return contradicts("no id, and DRS always writes one")
    if message.has_lengths:
        return contradicts("mysqlType has lengths, and DRS writes bare names")
    if message.old_is_partial:
        return contradicts("old lacks columns, and DRS writes whole rows")
    if message.tidb or message.gtid is not None or message.type in CANAL_SCHEMA_CHANGES:
        return contradicts("_tidb, gtid or a type of DDL that DRS does not write")
    if message.deleted_in is not None:
        sentence = f"the row of a DELETE stands in {message.deleted_in}"
        return fits(sentence) if message.deleted_in == deleted_in else contradicts(sentence)
    if message.timestamps is not None:
        sentence = "TIMESTAMP is a number of seconds" if message.timestamps == "seconds" else "TIMESTAMP is local time"
        return fits(sentence) if message.timestamps == timestamps else contradicts(sentence)
    if message.type in DRS_SCHEMA_CHANGES:
        return fits(f"the type {message.type} is one of DRS")
    return None
