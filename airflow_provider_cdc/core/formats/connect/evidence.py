# SPDX-License-Identifier: Apache-2.0
"""Distinguish Debezium and dtle, which imitates it (docs/wire/debezium-dtle.md A2, A4, B1)."""

from __future__ import annotations

import msgspec

from airflow_provider_cdc.core.formats.connect.connectors.registry import (
    CONNECTOR,
    DEFAULT_CONNECTOR,
    connector_of,
    refusal,
)
from airflow_provider_cdc.core.formats.connect.envelope import Message
from airflow_provider_cdc.core.formats.contract import Headers
from airflow_provider_cdc.core.formats.evidence import Evidence, contradicts, fits

_DTLE_VERSION = "0.0.1"


class _Source(msgspec.Struct):
    version: str | None = None
    connector: str | None = None
    server: str | None = None


class _Origin(Message):
    source: _Source | None = None
    position: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Origin).decode


def _origin(value: bytes) -> tuple[_Source, bool] | None:
    """Return a record's source block and whether a position is next to it; None without a source block."""
    try:
        message = _decode(value)
        if message.payload:
            message = _decode(message.payload)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return None if message.source is None else (message.source, bool(message.position))


def of_debezium(key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
    """Return what speaks for or against Debezium."""
    match _origin(value):
        case _Source(connector=str(connector)), _ if refusal(connector) is not None:
            return contradicts(f"source.connector is {connector}, which no format reads")
        case _Source(connector=str(connector)), _:
            named = connector_of(connector)
            stated = [] if named in (None, DEFAULT_CONNECTOR) else [(CONNECTOR, str(named))]
            return fits(f"source.connector is {connector}", *stated)
        case _, True:
            return contradicts("a position next to source: Debezium's schema-change topic has it inside")
        case _Source(version=str(version)), _:
            if version == _DTLE_VERSION:
                return contradicts(f"source.version is {version} and there is no connector, as dtle writes it")
            return fits(f"source.version is {version}")
    return None


def of_dtle(key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
    """Return what speaks for or against dtle."""
    match _origin(value):
        case _Source(connector=str(connector)), _:
            return contradicts(f"source.connector is {connector}, and dtle names none")
        case _Source(server=""), True:
            return fits("DDL with a position and an empty source.server")
        case _Source(server=str()), True:
            return contradicts("DDL with a position and a source.server, which dtle leaves empty")
        case _Source(version=str(version)), _:
            if version == _DTLE_VERSION:
                return fits(f"source.version is {version} and there is no connector")
            return contradicts(f"source.version is {version}, dtle's is {_DTLE_VERSION}")
    return None
