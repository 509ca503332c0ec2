# SPDX-License-Identifier: Apache-2.0
"""Read messages in the shape of Canal's flat JSON as evidence of their tool: Canal, TiCDC, OMS or DRS.

Sources: docs/wire/canal.md 5.2, 9.1, docs/wire/oceanbase-oms.md 4, docs/wire/huawei-drs.md 3.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

_Rows = list[dict[str, Any]] | None

# ``type`` of schema changes, by the tools that write them
DRS_SCHEMA_CHANGES = frozenset({"INIT_DDL", "DDL"})
CANAL_SCHEMA_CHANGES = frozenset({"CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"})
_NEVER_BARE = frozenset({"varchar", "varbinary"})  # their length must be declared, and Canal gives types as declared
_SECONDS = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


class CanalShape(msgspec.Struct):
    """A message with what distinguishes the tools that write this shape."""

    id: int | None = None
    type: str | None = None
    sqlType: dict[str, int] | None = None
    mysqlType: dict[str, str] | None = None
    data: _Rows = None
    old: _Rows = None
    gtid: str | None = None
    tidb: msgspec.Raw = msgspec.field(name="_tidb", default=msgspec.Raw())

    @property
    def types(self) -> list[str]:
        """Return the values of ``mysqlType``."""
        return list((self.mysqlType or {}).values())

    @property
    def has_lengths(self) -> bool:
        """Return whether a type states its length."""
        return any("(" in kind for kind in self.types)

    @property
    def lacks_lengths(self) -> bool:
        """Return whether a type lacks the length that its declaration must have."""
        return any(kind.lower() in _NEVER_BARE for kind in self.types)

    @property
    def old_is_partial(self) -> bool:
        """Return whether ``old`` of an UPDATE lacks columns that ``data`` has."""
        pairs = zip(self.old or (), self.data or (), strict=False)
        return self.type == "UPDATE" and any(set(after) - set(before) for before, after in pairs)

    @property
    def has_numbers(self) -> bool:
        """Return whether a value is a JSON number."""
        return any(isinstance(value, (int, float)) for row in self.data or () for value in row.values())

    @property
    def deleted_in(self) -> str | None:
        """Return the one member, ``data`` or ``old``, that has the row of a DELETE; None if both or none have one."""
        if self.type != "DELETE" or bool(self.data) == bool(self.old):
            return None
        return "data" if self.data else "old"

    @property
    def timestamps(self) -> str | None:
        """Return the form of TIMESTAMP values: ``seconds`` or ``local time``; None without such values."""
        names = [name for name, kind in (self.mysqlType or {}).items() if kind.lower().startswith("timestamp")]
        for row in [*(self.data or ()), *(self.old or ())]:
            for value in (row.get(name) for name in names):
                if isinstance(value, str):
                    return "seconds" if _SECONDS.fullmatch(value) else "local time"
        return None


_decode = msgspec.json.Decoder(CanalShape).decode


def read_canal_shape(value: bytes) -> CanalShape | None:
    """Return a message, None if it does not have this shape."""
    try:
        message = _decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return None if message.type is None else message
