"""Who wrote a message in the shape of Canal's flat JSON: Canal, TiCDC, OMS, or DRS in one of its two forms.

Sources: docs/wire/canal.md 5.2, 9.1, docs/wire/oceanbase-oms.md 4, docs/wire/huawei-drs.md 3.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from airflow_provider_cdc.core.formats.contract import Headers
from airflow_provider_cdc.core.formats.evidence import Evidence, contradicts, fits

_Rows = list[dict[str, Any]] | None

_OF_DRS = frozenset({"INIT_DDL", "DDL"})
_OF_CANAL = frozenset({"CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"})
_NEVER_BARE = frozenset({"varchar", "varbinary"})  # their length must be declared, and Canal gives types as declared
_DRS_DATETIME = 94  # no constant of JDBC
_SECONDS = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


class _Message(msgspec.Struct):
    id: int | None = None
    type: str | None = None
    sqlType: dict[str, int] | None = None
    mysqlType: dict[str, str] | None = None
    data: _Rows = None
    old: _Rows = None
    gtid: str | None = None
    tidb: msgspec.Raw = msgspec.field(name="_tidb", default=msgspec.Raw())

    @property
    def is_canal_shaped(self) -> bool:
        return self.type is not None

    @property
    def types(self) -> list[str]:
        return list((self.mysqlType or {}).values())

    @property
    def has_lengths(self) -> bool:
        return any("(" in kind for kind in self.types)

    @property
    def lacks_lengths(self) -> bool:
        return any(kind.lower() in _NEVER_BARE for kind in self.types)

    @property
    def old_is_partial(self) -> bool:
        pairs = zip(self.old or (), self.data or (), strict=False)
        return self.type == "UPDATE" and any(set(after) - set(before) for before, after in pairs)

    @property
    def has_numbers(self) -> bool:
        return any(isinstance(value, (int, float)) for row in self.data or () for value in row.values())

    @property
    def deleted_in(self) -> str | None:
        """The one member in which a DELETE's row stands."""
        if self.type != "DELETE" or bool(self.data) == bool(self.old):
            return None
        return "data" if self.data else "old"

    @property
    def timestamps(self) -> str | None:
        """How the values of TIMESTAMP columns look: ``seconds`` or ``civil``."""
        names = [name for name, kind in (self.mysqlType or {}).items() if kind.lower().startswith("timestamp")]
        for row in [*(self.data or ()), *(self.old or ())]:
            for value in (row.get(name) for name in names):
                if isinstance(value, str):
                    return "seconds" if _SECONDS.fullmatch(value) else "civil"
        return None


_decode = msgspec.json.Decoder(_Message).decode


def _read(value: bytes) -> _Message | None:
    try:
        message = _decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return message if message.is_canal_shaped else None


def of_canal(key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
    """Return what speaks for or against Canal, or TiCDC."""
    message = _read(value)
    if message is None:
        return None
    if message.id is None:
        return contradicts("no id, and Canal always writes its batch's")
    if message.type in _OF_DRS:
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
    if message.type in _OF_CANAL:
        return fits(f"the type {message.type} is one of Canal's")
    return fits("old has changed columns only") if message.old_is_partial else None


def of_oms(key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
    """Return what speaks for or against OMS's method Canal."""
    message = _read(value)
    if message is None:
        return None
    if message.id is not None or message.gtid is not None:
        return contradicts("an id or a gtid, and OMS writes neither")
    if message.has_lengths:
        return contradicts("mysqlType has lengths, and OMS writes bare names")
    return fits("no id, and numbers are JSON numbers" if message.has_numbers else "no id")


def of_drs_json(key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
    """Return what speaks for or against DRS's format JSON."""
    return _of_drs(value, "old", "seconds")


def of_drs_json_c(key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
    """Return what speaks for or against DRS's format JSON-C."""
    return _of_drs(value, "data", "civil")


def _of_drs(value: bytes, deleted_in: str, timestamps: str) -> Evidence | None:
    message = _read(value)
    if message is None:
        return None
    if message.id is None:
        return contradicts("no id, and DRS always writes one")
    if message.has_lengths:
        return contradicts("mysqlType has lengths, and DRS writes bare names")
    if message.old_is_partial:
        return contradicts("old lacks columns, and DRS writes whole rows")
    if message.tidb or message.gtid is not None or message.type in _OF_CANAL:
        return contradicts("_tidb, gtid or a type of DDL that DRS does not write")
    if message.deleted_in is not None:
        sentence = f"the row of a DELETE stands in {message.deleted_in}"
        return fits(sentence) if message.deleted_in == deleted_in else contradicts(sentence)
    if message.timestamps is not None:
        sentence = "TIMESTAMP is a number of seconds" if message.timestamps == "seconds" else "TIMESTAMP is civil time"
        return fits(sentence) if message.timestamps == timestamps else contradicts(sentence)
    if message.type in _OF_DRS:
        return fits(f"the type {message.type} is one of DRS")
    return None
