"""Images of Canal's flat JSON: nearly all have just the columns that their message names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from airflow_provider_cdc.core.formats.canal import columns as canal_columns
from airflow_provider_cdc.core.formats.exact_members import exact_members
from airflow_provider_cdc.core.formats.record_by_record import Refused

Sides = tuple[bytes | None, bytes | None]
"""A row's image before a change, and that after it."""
Former = Mapping[str, msgspec.Raw]
"""Of an update the members that had other values before (docs/wire/canal.md 5.2)."""

_members: Any = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode: Any = msgspec.json.Encoder().encode
_PARTIAL_JSON = b'"JSON_'  # how the change to a JSON value begins that MySQL writes instead of the value


class Table:
    """What records of one table with the same description say.

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
        self._full: Any = None
        self._fields: Mapping[str, str] = {}  # of the struct of a full image, by member
        self._others: dict[tuple[int | None, ...], Table] = {}

    def with_sql_types(self, sql_types: Mapping[str, int]) -> Table:
        """Return the same table with these types of its JSON columns."""
        mark = tuple(map(sql_types.get, self.json))
        return self._others.get(mark) or self._others.setdefault(mark, Table(self.types, self.key, sql_types))

    def full_images(self, image: msgspec.Raw, former: Former | None, op: str) -> Sides | None:
        """Return what :func:`read_images` does of an image with just the columns of :attr:`types`, else None."""
        if self._full is None:
            self._full, self._fields = (exact_members(self.names) if self.names else None) or (_refuse, {})
        try:
            row, text = self._full(image), bytes(image)
            if former is None:
                return (text, None) if op == "delete" else (None, text)
            if (not former and self.key is None) or (self.json and _PARTIAL_JSON in text):
                return None
            for name, value in former.items():
                setattr(row, self._fields[name], value)
            return _encode(row), text
        except (ValueError, RecursionError, KeyError):
            return None


def _refuse(image: msgspec.Raw) -> None:
    raise ValueError("no image is known to be full")


def read_images(image: msgspec.Raw, former: Former | None, op: str, table: Table) -> tuple[Sides, tuple[str, ...]]:
    """Return any row's image before its change and that after it, and the names of their members.

    :raises Refused: the row that was updated, or its former values, cannot be told.
    """
    members, text = _members(image), bytes(image)
    names = tuple(members)
    if former is not None:
        return (_before(members, former, table), text), names
    return (text, None) if op == "delete" else (None, text), names


def _before(members: Mapping[str, msgspec.Raw], former: Former, table: Table) -> bytes:
    if not former and table.key is None:
        text = "neither a key nor a former value: the row cannot be found; set binlog_row_image=FULL in the source"
        raise Refused("record.partial_image", text)
    if not former.keys() <= members.keys():
        raise ValueError("old has a column that data lacks")
    if any(bytes(members[name]).startswith(_PARTIAL_JSON) for name in table.json if name in members):
        text = "a JSON column comes as a change to its former value; set binlog_row_value_options='' in the source"
        raise Refused("record.partial_json", text)
    before: bytes = _encode({**members, **former})
    return before
