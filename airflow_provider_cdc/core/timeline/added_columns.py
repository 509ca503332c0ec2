# SPDX-License-Identifier: Apache-2.0
"""Say what an added column is in the rows that its table has already."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from airflow_provider_cdc.core.ddl.defaults import default_of
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.model.schema import Column, ColumnType, Default
from airflow_provider_cdc.core.values.shared.zone_names import zone_named

_NULL = Default("constant", None)
_FIRST_YEAR, _LAST_YEAR = "1969", "2038"  # of a TIMESTAMP, in any zone
_LOCAL = frozenset({"datetime", "date", "time"})
_UNKNOWN = (
    "the default of {name!r} is an expression, or a literal whose stored value depends on the server or the session: "
    "its values cannot be known"
)
_SESSION = "; if it is a date and time, source.options.session_time_zone says what it means"


class Fill(NamedTuple):
    """Hold the value of a column in stored rows.

    :param unknown: why the value cannot be known, None if it is.
    :param note: what the table's notes say of it, None for nothing.
    """

    default: Default
    unknown: str | None = None
    note: str | None = None


def fill_of(column: Column, time: int | None, server: Server, kind: str | None) -> Fill:
    """Return the value that stored rows get in an added column.

    :param time: of the statement, in microseconds since the epoch.
    :param kind: ``mysql`` or ``mariadb``, None if unknown.
    """
    default = column.default
    if column.auto_increment:
        return Fill(default or _NULL, f"AUTO_INCREMENT numbered the stored rows in {column.name!r}")
    if column.generated:
        return Fill(_NULL)
    if default is None:
        if column.nullable:
            return Fill(_NULL)
        if column.type.name == "vector":
            return Fill(_NULL, f"{column.name!r} is NOT NULL: the server decides which vector stored rows have")
        return Fill(Default("constant", column.type.implicit_default(kind)))
    if default.kind == "now":
        return _present_time(column, time, server)
    if default.kind == "expression":
        instant = _instant(column, default, server)
        unknown = _UNKNOWN.format(name=column.name) + (_SESSION if column.type.name == "timestamp" else "")
        return Fill(default, unknown) if instant is None else Fill(instant)
    return Fill(default)


def _present_time(column: Column, time: int | None, server: Server) -> Fill:
    note = f"{column.name}: rows older than the column got the time of the DDL as its default"
    if time is None:
        return Fill(_NULL, note=note)
    moment = datetime.fromtimestamp(time / 1_000_000, UTC)
    if column.type.name in _LOCAL:
        zone = None if server.time_zone is None else zone_named(server.time_zone)
        moment = moment if zone is None else moment.astimezone(zone)
        note += ", in UTC: source.options.session_time_zone states another zone" if zone is None else ""
    return Fill(Default("constant", moment.replace(tzinfo=None).isoformat(" ", "microseconds")), note=note)


def _instant(column: Column, default: Default, server: Server) -> Default | None:
    """Return a TIMESTAMP literal as UTC by the zone of the sessions; None if it is another thing, or not certain.

    A local time that the zone's clocks never showed, or showed twice, is not certain.
    """
    zone = None if server.time_zone is None else zone_named(server.time_zone)
    if column.type.name != "timestamp" or zone is None:
        return None
    stored = default_of(default.text or "", ColumnType("datetime", column.type.length))
    text = stored.text if stored.kind == "constant" else None
    if text is None or not _FIRST_YEAR <= text[:4] <= _LAST_YEAR or "-00" in text:
        return None
    local = datetime.fromisoformat(text[:19]).replace(microsecond=int(text[20:].ljust(6, "0")))
    instants = {local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    if len(instants) > 1:
        return None
    return Default("constant", instants.pop().replace(tzinfo=None).isoformat(" ", "microseconds"))
