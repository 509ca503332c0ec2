# SPDX-License-Identifier: Apache-2.0
"""Write what the connector says of a table's structure after a DDL: an entry of ``tableChanges``."""

from __future__ import annotations

from typing import Any

from tests.histories.source import Column, TableChange

_JDBC = {
    "tinyint": 5,
    "smallint": 5,
    "mediumint": 4,
    "int": 4,
    "bigint": -5,
    "decimal": 3,
    "varchar": 12,
    "double": 8,
    "float": 6,
}


_IN_TWO_WORDS = {"VARCHAR": "CHARACTER VARYING", "DOUBLE": "DOUBLE PRECISION"}


def table_change(change: TableChange, *, two_words: bool = False) -> dict[str, Any]:
    """Return what the connector says of one table.

    :param two_words: whether statements have types of two words, whose length stands next to the name.
    """
    table = None
    if change.structure is not None:
        columns = enumerate(change.structure.columns, 1)
        table = {
            "defaultCharsetName": "utf8mb4",
            "primaryKeyColumnNames": list(change.structure.key),
            "columns": [_column(number, column, two_words=two_words) for number, column in columns],
            "comment": None,
        }
    quoted_parts = [part.replace('"', '""') for part in change.name]
    return {"type": change.type, "id": '"{}"."{}"'.format(*quoted_parts), "table": table}


def _column(number: int, column: Column, *, two_words: bool) -> dict[str, Any]:
    kind = column.kind
    spelled = kind.name.upper() + (" UNSIGNED" if kind.unsigned else "")
    if two_words:
        spelled = _IN_TWO_WORDS.get(spelled, spelled)
    length = 1 if kind.labels else kind.length
    default = None
    if column.has_default and column.default is not None:
        default = kind.literal(column.default).strip("b") if kind.name == "bit" else kind.literal(column.default)
        default = default[1:-1].replace("''", "'") if default[0] == "'" else default
    return {
        "name": column.name,
        "jdbcType": _JDBC.get(kind.name, 1111),
        "nativeType": None,
        "typeName": spelled,
        "typeExpression": spelled,
        "charsetName": "utf8mb4" if kind.name in ("varchar", "enum") else None,
        "length": None if kind.name in ("datetime", "timestamp", "time") and not length else length,
        "scale": kind.scale,
        "position": number,
        "optional": column.nullable,
        "autoIncremented": False,
        "generated": False,
        "comment": None,
        "defaultValueExpression": default,
        "enumValues": [f"'{label.replace(chr(39), chr(39) * 2)}'" for label in kind.labels] or None,
    }
