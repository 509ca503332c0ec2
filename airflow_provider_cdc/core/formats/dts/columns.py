# SPDX-License-Identifier: Apache-2.0
"""Read the columns that a record of Tencent DTS describes: names, types as in DDL, the key's members.

Types and values: docs/wire/tencent-dts.md 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.ddl.type_text import parse_type
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.common.interning import Interner
from airflow_provider_cdc.core.formats.contract import Description
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from airflow_provider_cdc.core.values.types import BINARIES, GEOMETRIES, INTEGERS


class Carrier(IntEnum):
    """Form of a column's values in images."""

    TEXT = 0
    NUMBER = 1
    UNSIGNED = 2  # a number that is never negative
    BYTES = 3
    JSON = 4
    TIMESTAMP = 5
    OTHER = 6  # a type that MySQL does not have: text or a number


_NUMBERS = frozenset({*INTEGERS, "float", "double", "decimal", "bit", "year"})


def _column_type(text: str) -> ColumnType | None:
    try:
        return parse_type(text)
    except DataError:
        return None


@lru_cache(maxsize=4096)
def carrier_of(original_type: str) -> Carrier:
    """Return what values of a type, as DDL spells it, look like in images."""
    kind = _column_type(original_type)
    return Carrier.OTHER if kind is None else _carrier(kind)


def _carrier(kind: ColumnType) -> Carrier:
    if kind.name in _NUMBERS:
        return Carrier.UNSIGNED if kind.unsigned else Carrier.NUMBER
    if kind.name in BINARIES or kind.name in GEOMETRIES:
        return Carrier.BYTES
    return {"json": Carrier.JSON, "timestamp": Carrier.TIMESTAMP}.get(kind.name, Carrier.TEXT)


class ColumnTables(NamedTuple):
    """The columns of all lists, one list after the other.

    :param first: number of each list's first column.
    :param count: columns of each list.
    :param keyed: whether a list has a key.
    :param carriers: :class:`Carrier` of each column.
    :param in_key: whether a column is part of the key.
    :param heads: JSON text before a value, :data:`HEADS` of each column.
    :param names: name of each column.
    """

    first: Any
    count: Any
    keyed: Any
    carriers: Any
    in_key: Any
    heads: pa.Array
    names: Sequence[str]


# before a value: first in its image, after a value in quotes, after a null; each for a value in quotes and for a null
HEADS = ('{{{}:"', "{{{}:null", '",{}:"', '",{}:null', ',{}:"', ",{}:null")


class ColumnLists:
    """Number the distinct lists of columns; a list's number is that of its ``columns`` text."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.problems: list[str | None] = []
        self._lists = Interner[tuple[tuple[str, str, bool], ...]]()
        self._tables: ColumnTables | None = None

    def number(self, columns: tuple[tuple[str, str, bool], ...]) -> int:
        """Return the number of a list of columns, each by name, type and whether it is part of the key."""
        number = self._lists.id_of(columns)
        if number == len(self.texts):
            self.texts.append(columns_text(columns))
            self.problems.append(_problem(columns))
            self._tables = None
        return number

    @property
    def tables(self) -> ColumnTables:
        """All lists in columns of their own."""
        if self._tables is None:
            lists = self._lists.values
            columns = [column for each in lists for column in each]
            counts: Any = np.array([len(each) for each in lists], np.int32)
            names = [msgspec.json.encode(name).decode() for name, _, _ in columns]
            self._tables = ColumnTables(
                np.cumsum(counts, dtype=np.int32) - counts,
                counts,
                np.array([any(in_key for _, _, in_key in each) for each in lists], bool),
                np.array([carrier_of(kind) for _, kind, _ in columns], np.int8),
                np.array([in_key for _, _, in_key in columns], bool),
                pa.array([head.format(name).encode() for name in names for head in HEADS], pa.binary()),
                [name for name, _, _ in columns],
            )
        return self._tables


def _problem(columns: Sequence[tuple[str, str, bool]]) -> str | None:
    if not columns:
        return "it names no columns"
    if len({name for name, _, _ in columns}) < len(columns):
        return "it names two columns alike"
    return None if all(kind for _, kind, _ in columns) else "it does not state the type of a column"


def columns_text(columns: Sequence[tuple[str, str, bool]]) -> str:
    """Return the ``columns`` text."""
    pairs = [(name, kind) for name, kind, _ in columns]
    return msgspec.json.encode({"columns": pairs, "key": [name for name, _, in_key in columns if in_key]}).decode()


def describe(columns: str) -> Description:
    """Read what :func:`columns_text` wrote; the details are the types' texts."""
    data = msgspec.json.decode(columns)
    details = {name: kind for name, kind in data["columns"]}
    return Description(tuple(details), tuple(data["key"]), details)


def encoding_of(name: str, column: ColumnType, description: Description | None, zone: str | None) -> Encoded:
    """Return the encoding of a column in the images: by the type that the record states, else by the timeline's.

    :param zone: time zone of TIMESTAMP texts, None is UTC.
    """
    stated = None if description is None or description.details is None else description.details.get(name)
    carrier = _carrier(column) if stated is None else carrier_of(stated)
    if carrier is Carrier.BYTES:
        return Encoded(name, Encoding.BASE64)
    return Encoded(name, Encoding.TEXT, zone=zone if column.name == "timestamp" else None)


def infer(description: Description) -> TableSchema | None:
    """Return a schema made from the types that a record states, None if one of them is unknown."""
    columns = []
    for number, (name, text) in enumerate((description.details or {}).items(), 1):
        kind = _column_type(text)
        if kind is None:
            return None
        in_key = name in (description.key or ())
        columns.append(Column(number, name, kind, nullable=not in_key))
    by_name = {column.name: column.id for column in columns}
    return TableSchema(tuple(columns), tuple(by_name[name] for name in description.key or ())) if columns else None
