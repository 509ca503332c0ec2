# SPDX-License-Identifier: Apache-2.0
"""Mask the values of columns: by a salted hash, by a constant, or by what is left of them when they are cut."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.config.column_rules import MaskRule, read_mask
from airflow_provider_cdc.core.model.laid_columns import HASH, MASK
from airflow_provider_cdc.core.model.schema import Column
from airflow_provider_cdc.core.shapes.columns import RowInputs, SourceColumns, TargetColumn
from airflow_provider_cdc.core.shapes.texts import has_text, keeps_text, texts
from airflow_provider_cdc.core.values.alter.type_families import family

_REDACTED = "***"
_DATE_PARTS = ("year", "month", "day", "hour")


def mask(stated: Mapping[str, str], columns: list[TargetColumn], source: SourceColumns) -> list[TargetColumn]:
    """Return the columns with those masked that have, or had, a name that a pattern matches.

    Of several patterns that match a column the first that is stated counts.
    """
    rules: dict[int, MaskRule] = {}
    for pattern, text in stated.items():
        rule = read_mask(text)
        assert isinstance(rule, MaskRule)  # looked at when the pipeline was made
        for column in source.matching(pattern):
            rules.setdefault(column.id, rule)
    return [_masked(column, rules[column.id], source) if column.id in rules else column for column in columns]


def _masked(target: TargetColumn, rule: MaskRule, source: SourceColumns) -> TargetColumn:
    column = source.schema.column(target.id)
    assert column is not None  # the caller found it there
    if column.id in source.schema.key and rule.kind != "hash":
        raise source.rule_error(
            "shape.key",
            f"columns.mask: {rule} of {column.name}, which is of the key, would give several rows one key",
            "mask it by `hash`",
        )
    kind, make = _KINDS[rule.kind](column, target.type, rule, source)
    mark = f"{MASK}{rule}" if rule.kind != "hash" else f"{HASH}{fingerprint(source.salt)}"
    made = replace(target, type=kind, mark=mark, reads=(column.id,), make=make)
    return replace(made, lasts=keeps_text) if rule.kind == "hash" else made


def fingerprint(salt: bytes) -> str:
    """Return what tells salts apart and says nothing of them."""
    return hashlib.sha256(b"fingerprint of a salt\0" + salt).hexdigest()[:8]


Masked = tuple[pa.DataType, Callable[[RowInputs], pa.Array]]


def _hash(column: Column, kind: pa.DataType, rule: MaskRule, source: SourceColumns) -> Masked:
    if not has_text(kind):
        raise _refused(column, rule, source)
    return pa.string(), partial(_hashed, column.id, source.salt)


def _hashed(column_id: int, salt: bytes, rows: RowInputs) -> pa.Array:
    coded = _whole(rows.column(column_id)).dictionary_encode()
    digests = [None if text is None else hashlib.sha256(salt + text).hexdigest() for text in texts(coded.dictionary)]
    return pa.array(digests, pa.string()).take(coded.indices)


def _redact(column: Column, kind: pa.DataType, rule: MaskRule, source: SourceColumns) -> Masked:
    return kind, partial(_constant, kind, column.id)


def _constant(kind: pa.DataType, column_id: int, rows: RowInputs) -> pa.Array:
    """Return the constant of a type, also for NULL: whether there was a value says something of it."""
    if pa.types.is_string(kind):
        return pa.repeat(pa.scalar(_REDACTED, kind), rows.count)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return pa.repeat(pa.scalar(Decimal(0) if pa.types.is_decimal(kind) else 0, kind), rows.count)
    return pa.nulls(rows.count, kind)


def _truncate(column: Column, kind: pa.DataType, rule: MaskRule, source: SourceColumns) -> Masked:
    of_date = rule.argument in _DATE_PARTS
    if of_date and (pa.types.is_timestamp(kind) or (pa.types.is_date(kind) and rule.argument != "hour")):
        return kind, partial(_part_of_date, column.id, rule.argument)
    if not of_date and pa.types.is_string(kind) and family(column.type) == "text":
        return kind, partial(_characters, column.id, int(rule.argument))
    if not of_date and (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return kind, partial(_multiples, column.id, int(rule.argument))
    raise _refused(column, rule, source)


def _part_of_date(column_id: int, part: str, rows: RowInputs) -> pa.Array:
    values = _whole(rows.column(column_id))
    return pc.floor_temporal(values, unit=part).cast(values.type)


def _characters(column_id: int, count: int, rows: RowInputs) -> pa.Array:
    return pc.utf8_slice_codeunits(_whole(rows.column(column_id)), 0, count)


def _multiples(column_id: int, digits: int, rows: RowInputs) -> pa.Array:
    values = _whole(rows.column(column_id))
    if pa.types.is_integer(values.type):
        step = 10**digits
        if step > 1 << 62:
            return pc.if_else(pc.is_valid(values), pa.scalar(0, values.type), values)
        wide = values.cast(pa.int64())
        return pc.multiply(pc.divide(wide, step), step).cast(values.type)
    # Arrow's rounding of decimals is wrong near the limits of its words where it drops ten digits or more
    step = Decimal(10) ** digits
    cut = [None if value is None else int(value / step) * step for value in values.to_pylist()]
    return pa.array([None if value is None else value.quantize(Decimal(1)) for value in cut], values.type)


def _refused(column: Column, rule: MaskRule, source: SourceColumns) -> Exception:
    return source.rule_error(
        "shape.type",
        f"columns.mask: {rule} is not for {column.name}, which is {column.type}",
        "`redact` is for every column, `truncate(3)` for text and numbers without a power, `truncate(month)` for dates",
    )


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


_KINDS: Mapping[str, Callable[[Column, pa.DataType, MaskRule, SourceColumns], Masked]] = {
    "hash": _hash,
    "redact": _redact,
    "truncate": _truncate,
}
