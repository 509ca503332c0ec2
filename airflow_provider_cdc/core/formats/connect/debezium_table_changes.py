# SPDX-License-Identifier: Apache-2.0
"""Read Debezium's ``tableChanges``: the structure of tables after a schema change (docs/wire/debezium-dtle.md B4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from airflow_provider_cdc.core.ddl.column_types import WITH_CHARSET, takes_arguments
from airflow_provider_cdc.core.ddl.type_text import parse_type
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import Column, ColumnType, Default, TableSchema

_decoder = msgspec.json.Decoder()


def structures(table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
    """Read ``tableChanges``: (database, table, structure, or None when dropped) in order; column ids count from 1."""
    result = []
    for change in _decoder.decode(table_changes):
        names = re.findall(r'"((?:[^"]|"")*)"', change["id"])
        if len(names) < 2:
            raise ValueError("a table change whose id names no table")
        # of a rename the id holds old and new name one after the other: the new one stands last
        database, table = (part.replace('""', '"') for part in names[-2:])
        result.append((database, table, _table_schema(change["table"]) if change.get("table") else None))
    return result


def _table_schema(table: Mapping[str, Any]) -> TableSchema:
    columns = tuple(_column(i, item) for i, item in enumerate(sorted(table["columns"], key=lambda c: c["position"]), 1))
    by_name = {column.name: column.id for column in columns}
    return TableSchema(columns, tuple(by_name[name] for name in table.get("primaryKeyColumnNames") or ()))


def _column(number: int, item: Mapping[str, Any]) -> Column:
    text = item.get("defaultValueExpression")
    return Column(
        number,
        item["name"],
        _column_type(item),
        nullable=bool(item.get("optional", True)),
        default=None if text is None else Default("constant", text),
        generated=bool(item.get("generated")),
        auto_increment=bool(item.get("autoIncremented")),
    )


def _column_type(item: Mapping[str, Any]) -> ColumnType:
    """Return the type of a ``tableChanges`` column by writing it as SQL and reading that.

    ``typeName`` is the type without its arguments, which stand behind the type and before its attributes: ``NATIONAL
    CHAR`` of length 8 is NATIONAL CHAR(8), ``CHAR BINARY`` is CHAR(8) BINARY (recorded).

    :raises DataError: the type cannot be read with its arguments, without which it would be another one.
    """
    words, charset = item["typeName"].split(), item.get("charsetName")
    arguments = [str(item[part]) for part in ("length", "scale") if item.get(part) is not None]
    labels = item.get("enumValues")
    if labels:
        arguments = ["'" + _label(text).replace("\\", "\\\\").replace("'", "''") + "'" for text in labels]
    written = f"({','.join(arguments)})" if arguments else ""
    texts = [" ".join([*words[:end], written, *words[end:]]) for end in range(len(words), 0, -1)]
    kind = next(filter(None, (_readable(text, charset) for text in texts)), None)
    if kind is None:  # a length with a type that takes none
        kind = parse_type(" ".join(words), charset)
        if takes_arguments(kind):
            raise DataError("ddl.not_understood", "a column type cannot be read with its length")
    return replace(kind, charset=charset or (kind.charset if kind.name in WITH_CHARSET else None))


def _readable(text: str, charset: str | None) -> ColumnType | None:
    try:
        return parse_type(text, charset)
    except DataError:
        return None


def _label(text: str) -> str:
    return text[1:-1].replace("''", "'") if len(text) > 1 and text[0] == text[-1] == "'" else text
