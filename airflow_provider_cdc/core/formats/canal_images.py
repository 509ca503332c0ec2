"""Images of Canal's flat JSON: most have the members of those before them, and are read without a dict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from airflow_provider_cdc.core.formats import canal_columns
from airflow_provider_cdc.core.formats.exact_members import exact_members

Sides = tuple[bytes | None, bytes | None]
"""A row's image before a change, and that after it."""

_Raw = msgspec.Raw
_members: Any = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode: Any = msgspec.json.Encoder().encode
_PARTIAL_JSON = b'"JSON_'  # how the change to a JSON value begins that MySQL writes instead of the value


class Refused(ValueError):
    """A record that is understood and cannot be applied.

    :param code: stable error code.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


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
        self.json = tuple(name for name, kind in types.items() if canal_columns.is_json(kind))
        self.numbers: dict[Any, int] = {}  # of the columns texts, by names of an image and whether it is the key alone
        self.alike = {op: AlikeImages(self, op) for op in ("insert", "update", "delete", "snapshot")}
        self._others: dict[tuple[int | None, ...], Table] = {}

    def with_sql_types(self, sql_types: Mapping[str, int]) -> Table:
        """Return the same table with these types of its JSON columns."""
        mark = tuple(map(sql_types.get, self.json))
        return self._others.get(mark) or self._others.setdefault(mark, Table(self.types, self.key, sql_types))


class AlikeImages:
    """Images of one table's changes of one op that have the same members in the same order.

    A struct is read for half of what a dict costs, but does not see the order: an image is like the others if the
    struct, written again, gives its very bytes.

    columns: number of the ``columns`` text that goes with them.
    """

    def __init__(self, table: Table, op: str) -> None:
        self.columns = -1
        self._table, self._deleted = table, op == "delete"
        self._names: tuple[str, ...] = ()
        self._fields: Mapping[str, str] = {}  # of the struct, by member
        self._decode: Any = None

    def learn(self, names: tuple[str, ...], columns: int) -> None:
        """Take the members of an image that was not like the others; the second time a struct is worth making.

        Where there is one already and it has these members, they have spaces between them: the next may have too.
        """
        exact = exact_members(names) if names == self._names and self._decode is None else None
        self._names, self.columns = names, columns
        self._decode, self._fields = exact or (None, {})

    def read(self, image: msgspec.Raw, old: msgspec.Raw | None) -> Sides | None:
        """Return what :func:`read_images` does, None where only that can tell.

        :raises msgspec.MsgspecError: ``old`` is no JSON object.
        """
        if self._decode is None:
            return None
        try:
            row = self._decode(image)
        except msgspec.MsgspecError:
            return None
        text = _encode(row)
        if _Raw(text) != image:
            return None
        if old is None:
            return (text, None) if self._deleted else (None, text)
        former, table = _members(old), self._table
        if (not former and table.key is None) or (table.json and _PARTIAL_JSON in text):
            return None
        try:
            for name, value in former.items():
                setattr(row, self._fields[name], value)
        except KeyError:
            return None
        return _encode(row), text


def read_images(image: msgspec.Raw, old: msgspec.Raw | None, op: str, table: Table) -> tuple[Sides, tuple[str, ...]]:
    """Return any row's image before its change and that after it, and the names of their members.

    :param old: of an update, the members that had other values before (5.2).
    :raises Refused: the row that was updated, or its former values, cannot be told.
    """
    members, text = _members(image), bytes(image)
    names = tuple(members)
    if old is not None:
        return (_before(members, _members(old), table), text), names
    return (text, None) if op == "delete" else (None, text), names


def _before(members: Mapping[str, msgspec.Raw], former: Mapping[str, msgspec.Raw], table: Table) -> bytes:
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
