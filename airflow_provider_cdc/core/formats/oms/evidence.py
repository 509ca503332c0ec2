# SPDX-License-Identifier: Apache-2.0
"""Distinguish OMS's methods from each other, and its method Canal from Canal (docs/wire/oceanbase-oms.md 4, 11)."""

from __future__ import annotations

import msgspec

from airflow_provider_cdc.core.formats.common.canal_shape import read_canal_shape
from airflow_provider_cdc.core.formats.contract import Headers
from airflow_provider_cdc.core.formats.evidence import Evidence, contradicts, fits

_Image = dict[str, msgspec.Raw] | None


class _Message(msgspec.Struct):
    recordType: str | None = None
    prevStruct: _Image = None
    postStruct: _Image = None


_decode = msgspec.json.Decoder(_Message).decode


def _is_typed(value: bytes) -> bool | None:
    """Return whether a row's images name their types; None where there is no row."""
    try:
        message = _decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    images = [image for image in (message.prevStruct, message.postStruct) if image]
    if not images or message.recordType in (None, "DDL", "HEARTBEAT"):
        return None
    return any("__light_type" in image for image in images)


def of_default(key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
    """Return what speaks for or against the method Default."""
    match _is_typed(value):
        case True:
            return contradicts("images have __light_type, which only DefaultExtendColumnType writes")
        case False:
            return fits("images without __light_type")
    return None


def of_default_extended(key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
    """Return what speaks for or against the method DefaultExtendColumnType."""
    match _is_typed(value):
        case True:
            return fits("images have __light_type")
        case False:
            return contradicts("images lack __light_type")
    return None


def of_canal_method(key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
    """Return what speaks for or against OMS's method Canal."""
    message = read_canal_shape(value)
    if message is None:
        return None
    if message.id is not None or message.gtid is not None:
        return contradicts("an id or a gtid, and OMS writes neither")
    if message.has_lengths:
        return contradicts("mysqlType has lengths, and OMS writes bare names")
    return fits("no id, and numbers are JSON numbers" if message.has_numbers else "no id")
