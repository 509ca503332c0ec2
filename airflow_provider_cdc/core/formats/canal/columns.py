# SPDX-License-Identifier: Apache-2.0
"""Read Canal's descriptions of columns and the encodings of their values (docs/wire/canal.md 4.4, 5.2, 10.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from airflow_provider_cdc.core.ddl.type_text import parse_type
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.contract import Description
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from airflow_provider_cdc.core.values.types import BINARIES, GEOMETRIES

# MariaDB's JSON, which Canal takes for a BLOB; -4: a NULL of servers before 1.1.7 (docs/wire/canal.md 4.4, 10.4)
BYTES = frozenset({2004, -4})
# columns that services add to tables without a key; no statement ever names them (docs/wire/canal.md 4.4)
_HIDDEN = frozenset({"__#alibaba_rds_row_id#__", "#alibaba_rds_row_id#", "_drds_implicit_id_"})
# TiCDC leaves out lengths (docs/wire/canal.md 9.1): the widest type of the family holds every value
_WITHOUT_LENGTH = {"varchar": ColumnType("longtext"), "varbinary": ColumnType("longblob")}


class ColumnDetail(msgspec.Struct, array_like=True, frozen=True):
    """One column of a record.

    :param member: its name as images spell it.
    :param type: ``mysqlType``, None where the record does not say.
    :param as_bytes: whether a JSON column's text comes as one character for each UTF-8 byte.
    """

    member: str
    type: str | None = None
    as_bytes: bool = False


class _Columns(msgspec.Struct, omit_defaults=True):
    columns: list[ColumnDetail]
    key: list[str] | None = None
    complete: bool = True
    open: bool = False


class OpenDescription(Description):
    """Describe a row that may lack columns at the table's end: nearly always, but not certainly, complete."""


_columns = msgspec.json.Decoder(_Columns)


def details_of(
    names: Sequence[str], types: Mapping[str, str | None], sql_types: Mapping[str, int]
) -> list[ColumnDetail]:
    """Return what a record says of the columns that one of its images has."""
    return [ColumnDetail(name, types.get(name), _json_as_bytes(types.get(name), sql_types.get(name))) for name in names]


def _json_as_bytes(kind: str | None, sql_type: int | None) -> bool:
    return sql_type in BYTES and is_json(kind)


def is_json(kind: str | None) -> bool:
    """Say whether a ``mysqlType`` is JSON."""
    return kind is not None and kind.lower() == "json"


def columns_text(
    columns: list[ColumnDetail], key: Sequence[str] | None, *, complete: bool = True, open_end: bool = False
) -> str:
    """Return the ``columns`` text.

    :param key: names of the key's columns, None where the record does not say.
    :param complete: whether these are all columns of the table.
    :param open_end: whether columns at the table's end may be missing all the same.
    """
    return msgspec.json.encode(_Columns(columns, None if key is None else list(key), complete, open_end)).decode()


def describe(columns: str) -> Description:
    """Read what :func:`columns_text` wrote, with names as the database has them."""
    data = _columns.decode(columns)
    if all(item.type is None for item in data.columns):
        return Description(tuple(item.member for item in data.columns), _key(data.key), None, data.complete)
    details = {_unquoted(item.member): item for item in data.columns if item.member not in _HIDDEN}
    key = None if data.key is None else [_unquoted(name) for name in data.key]
    kind = OpenDescription if data.open else Description
    return kind(tuple(details), _key(key), details, data.complete and not data.open)


def _key(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None or _HIDDEN.intersection(names) else tuple(names)


def _unquoted(name: str) -> str:
    """Return a name whose backticks Canal left doubled, as they stood in the DDL (docs/wire/canal.md 10.4)."""
    halved = name.replace("``", "`")
    return halved if name == halved.replace("`", "``") else name


def encoding_of(name: str, column: ColumnType, description: Description | None, zone: str | None) -> Encoded:
    """Return the encoding of a column in the images.

    The record's own ``mysqlType`` decides where there is one: it holds for its row wherever that stands among the DDL.

    :param zone: time zone of TIMESTAMP texts, None is UTC.
    """
    known = None if description is None or description.details is None else description.details.get(name)
    detail = ColumnDetail(name) if known is None else known
    stated = None if detail.type is None else column_type(detail.type)
    kind = stated or column
    if kind.name in BINARIES or kind.name in GEOMETRIES or detail.as_bytes:
        return Encoded(detail.member, Encoding.LATIN1_BYTES)
    if kind.name in ("enum", "set"):
        number = Encoding.ENUM_INDEX if kind.name == "enum" else Encoding.SET_BITMASK
        return Encoded(detail.member, number, labels=_labels(stated))
    return Encoded(detail.member, Encoding.TEXT, zone=zone if kind.name == "timestamp" else None)


def _labels(stated: ColumnType | None) -> tuple[str, ...]:
    """Return the labels that a record's numbers count, if it states them for certain."""
    # how Canal spells a backslash in a label is not known: those of the DDL count then
    return () if stated is None or any("\\" in label for label in stated.labels) else stated.labels


@lru_cache(maxsize=4096)
def column_type(text: str) -> ColumnType | None:
    """Return the type that a ``mysqlType`` spells, None where it cannot be known."""
    try:
        return parse_type(text)
    except DataError:
        return _WITHOUT_LENGTH.get(text.lower())


def inferred_schema(description: Description) -> TableSchema | None:
    """Return a schema made from what a record says; None where it lacks columns, the key or a type."""
    whole = description.complete or isinstance(description, OpenDescription)
    if description.details is None or description.key is None or not whole:
        return None
    columns = []
    for number, name in enumerate(description.names, 1):
        text = description.details[name].type
        kind = None if text is None else column_type(text)
        if kind is None:
            return None
        columns.append(Column(number, name, kind, nullable=name not in description.key))
    by_name = {column.name: column.id for column in columns}
    if not by_name.keys() >= set(description.key):
        return None
    return TableSchema(tuple(columns), tuple(by_name[name] for name in description.key))


class CanalFormat:
    """Share what both of Canal's forms have in common: descriptions of columns and encodings of values."""

    _zone: str | None

    def describe(self, columns: str) -> Description:
        """Read the ``columns`` text of a change."""
        return describe(columns)

    def encoding_of(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return the encoding of a column in the images."""
        return encoding_of(name, column, description, self._zone)

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Return nothing: schema changes come as statements only."""
        return []

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from ``mysqlType`` and the names of the key."""
        return inferred_schema(description)
