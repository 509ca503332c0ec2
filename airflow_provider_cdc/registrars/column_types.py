# SPDX-License-Identifier: Apache-2.0
"""Write the types of columns as Spark and Hive write them in SQL."""

from __future__ import annotations

from typing import Any

_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def type_text(stored: Any) -> str:
    """Return a type in Spark's SQL; tables of ours have scalar types and arrays.

    :param stored: as ``StoredColumn.type`` has it.
    """
    if isinstance(stored, str):
        return _NAMES.get(stored, stored)
    return f"array<{type_text(stored['elementType'])}>"


def hive_type(stored: Any) -> str:
    """Return a type in Hive's SQL, which has one kind of timestamp."""
    return type_text(stored).replace("timestamp_ntz", "timestamp")
