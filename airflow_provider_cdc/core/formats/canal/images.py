# SPDX-License-Identifier: Apache-2.0
"""Read images of Canal's flat JSON; fast path: an image has exactly the columns that its message names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from airflow_provider_cdc.core.formats.canal import columns as canal_columns
from airflow_provider_cdc.core.formats.common.exact_structs import NO_STRUCT, ExactStruct, exact_struct
from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord
from airflow_provider_cdc.core.formats.common.row_images import Images, members_of

Former = msgspec.Raw
"""An object with the members of an update that had other values before (docs/wire/canal.md 5.2)."""

_encode: Any = msgspec.json.Encoder().encode
_types = msgspec.json.Decoder(dict[str, str | None] | None)
_names = msgspec.json.Decoder(list[str] | None)
_sql_types = msgspec.json.Decoder(dict[str, int] | None)
_PARTIAL_JSON = b'"JSON_'  # how the change to a JSON value begins that MySQL writes instead of the value


class Table:
    """Hold what records of one table with the same description have in common.

    :param types: type text by column.
    :param key: names of the key's columns, None where the record does not say.
    :param sql_types: ``sqlType`` by column; only those of JSON columns count.
    """

    def __init__(
        self, types: Mapping[str, str | None], key: tuple[str, ...] | None, sql_types: Mapping[str, int]
    ) -> None:
        self.types, self.key, self.sql_types = types, key, sql_types
        self.names = tuple(types)
        self.json = tuple(name for name, kind in types.items() if canal_columns.is_json(kind))
        self.numbers: dict[Any, int] = {}  # of the columns texts, by names of an image and whether it is the key alone
        self.full_columns: dict[str, int] = {}  # of those of images with all of them, by op
        self._full: ExactStruct | None = None  # made when first needed: with TiCDC's random order it seldom is
        self._some = NO_STRUCT
        self._others: dict[tuple[int | None, ...], Table] = {}
        self._latest: tuple[msgspec.Raw, Table] | None = None  # the latest of them, by the text of its types

    @classmethod
    def described(cls, types: bytes, key: bytes) -> Table:
        """Return the table that the texts of ``mysqlType`` and ``pkNames`` describe."""
        names = _names.decode(key or b"null")
        return cls(_types.decode(types or b"null") or {}, tuple(names) if names else None, {})

    def with_sql_types(self, text: msgspec.Raw) -> Table:
        """Return the same table with the types of its JSON columns that the text of ``sqlType`` states."""
        if self._latest is not None and self._latest[0] == text:
            return self._latest[1]
        sql_types = (_sql_types.decode(text) if text else None) or {}
        mark = tuple(map(sql_types.get, self.json))
        table = self._others.get(mark) or self._others.setdefault(mark, Table(self.types, self.key, sql_types))
        self._latest = text, table
        return table

    def full_images(self, image: msgspec.Raw, former: Former | None, op: str) -> Images | None:
        """Return what :func:`read_images` does of an image with just the columns of :attr:`types`, else None."""
        if self._full is None:
            self._full = exact_struct(self.names)
            self._some = exact_struct(self.names, partial=True)
        try:
            self._full.decode(image)  # demands just these members
            changed = None if former is None else self._some.decode(former)
        except (ValueError, RecursionError):
            return None
        text = bytes(image)
        if changed is None:
            return (text, None) if op == "delete" else (None, text)
        before: bytes = _encode(changed)
        if (self.key is None and before == b"{}") or (self.json and _PARTIAL_JSON in text):
            return None
        return before, text


def read_images(image: msgspec.Raw, former: Former | None, op: str, table: Table) -> tuple[Images, tuple[str, ...]]:
    """Return any row's image before its change and that after it, and the names of the columns that it has.

    Before an update it has only the columns that changed.

    :raises UnsupportedRecord: the row that was updated, or its former values, are unknown.
    """
    members, text = members_of(image), bytes(image)
    names = tuple(members)
    if former is not None:
        return (_before(members, former, table), text), names
    return (text, None) if op == "delete" else (None, text), names


def _before(members: Mapping[str, msgspec.Raw], former: Former, table: Table) -> bytes:
    changed = members_of(former)
    if not changed and table.key is None:
        text = "neither a key nor a former value: the row cannot be found; set binlog_row_image=FULL in the source"
        raise UnsupportedRecord("record.partial_image", text)
    if not changed.keys() <= members.keys():
        raise ValueError("old has a column that data lacks")
    if any(bytes(members[name]).startswith(_PARTIAL_JSON) for name in table.json if name in members):
        text = "a JSON column comes as a change to its former value; set binlog_row_value_options='' in the source"
        raise UnsupportedRecord("record.partial_json", text)
    before: bytes = _encode(changed)
    return before
