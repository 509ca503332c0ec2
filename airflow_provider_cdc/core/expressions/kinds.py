# SPDX-License-Identifier: Apache-2.0
"""Group the Arrow types of columns into kinds of values, and find the type that holds the values of several."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from airflow_provider_cdc.core.values.types import MAX_DIGITS

TIMESTAMP = pa.timestamp("us")
INSTANT = pa.timestamp("us", "UTC")

CASTS = {
    "SMALLINT": "SMALLINT",
    "INT": "INT",
    "BIGINT": "BIGINT",
    "DECIMAL": "DECIMAL(p, s)",
    "DOUBLE": "DOUBLE",
    "TEXT": "STRING",
    "VARCHAR": "STRING",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP",
    "BOOLEAN": "BOOLEAN",
}
"""Types of CAST: sqlglot's name, which also stands for synonyms, and ours."""

CAST_TYPES = {
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "BOOLEAN": pa.bool_(),
}

_NAMES = {
    pa.null(): "NULL",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.date32(): "DATE",
    TIMESTAMP: "TIMESTAMP",
    INSTANT: "TIMESTAMP in UTC",
}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}


def name_of(kind: pa.DataType) -> str:
    """Return the SQL name of a type."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _NAMES.get(kind, str(kind))


def is_whole(kind: pa.DataType) -> bool:
    """Return whether values are whole numbers."""
    return kind in _DIGITS


def is_decimal(kind: pa.DataType) -> bool:
    """Return whether values are DECIMALs."""
    return bool(pa.types.is_decimal(kind))


def is_float(kind: pa.DataType) -> bool:
    """Return whether values are FLOAT or DOUBLE."""
    return kind in (pa.float32(), pa.float64())


def is_number(kind: pa.DataType) -> bool:
    """Return whether arithmetic is possible."""
    return is_whole(kind) or is_decimal(kind) or is_float(kind)


def is_text(kind: pa.DataType) -> bool:
    """Return whether values are texts."""
    return bool(kind == pa.string())


def is_time(kind: pa.DataType) -> bool:
    """Return whether values are timestamps, of a wall clock or instants."""
    return kind in (TIMESTAMP, INSTANT)


def is_moment(kind: pa.DataType) -> bool:
    """Return whether values are dates or timestamps."""
    return kind == pa.date32() or is_time(kind)


def is_castable(kind: pa.DataType) -> bool:
    """Return whether values have a text."""
    return is_number(kind) or is_text(kind) or is_moment(kind) or kind == pa.bool_()


def is_ordered(kind: pa.DataType) -> bool:
    """Return whether values can be compared."""
    return is_castable(kind) or kind == pa.binary()


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """Return the DECIMAL that holds all values of a whole or DECIMAL type."""
    return kind if is_decimal(kind) else pa.decimal128(_DIGITS[kind], 0)


def common(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return the type to which values of all types are converted, None if they have nothing in common.

    A DECIMAL may have fewer digits before the point than the widest value needs; such a value does not fit then.
    """
    known = list(dict.fromkeys(kind for kind in kinds if kind != pa.null()))
    if len(known) <= 1:
        return known[0] if known else pa.null()
    if all(map(is_whole, known)):
        return max(known, key=_DIGITS.__getitem__)
    if all(map(is_number, known)):
        if any(map(is_float, known)):
            return pa.float64()
        wide = wide_decimal(known)
        return pa.decimal128(min(MAX_DIGITS, wide.precision), wide.scale)
    if all(map(is_moment, known)):
        return INSTANT if INSTANT in known else TIMESTAMP
    return None


def wide_decimal(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Return the decimal that holds all values of whole and DECIMAL types; NULL has none."""
    decimals = [as_decimal(kind) for kind in kinds if kind != pa.null()]
    scale = max(kind.scale for kind in decimals)
    digits = max(kind.precision - kind.scale for kind in decimals) + scale
    return pa.decimal128(digits, scale) if digits <= MAX_DIGITS else pa.decimal256(digits, scale)
