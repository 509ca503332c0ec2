# SPDX-License-Identifier: Apache-2.0
"""Decode records one at a time; a record that cannot be decoded becomes an ``error`` change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.near_misses import near_miss
from airflow_provider_cdc.core.model.position import WIDTHS


class UnsupportedRecord(ValueError):
    """Raise for a record that is understood and cannot be applied.

    :param code: stable error code.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def decode_each(
    records: Records,
    texts: Sequence[str],
    take: Callable[[ChangeBuilder, int, bytes], None],
    noun: str,
    table_of: Callable[[bytes], tuple[str | None, str | None]],
    widths: tuple[int, int, int] = WIDTHS,
    without_value: Callable[[ChangeBuilder, int], None] = ChangeBuilder.ignore,
    nearly: Callable[[bytes | None, bytes], str | None] = near_miss,
) -> pa.RecordBatch:
    """Return the changes of records, in their order; one that cannot be decoded becomes an ``error`` change.

    :param texts: distinct ``columns`` texts, which ``take`` may add to.
    :param take: adds all changes of one record, from its index and value; or none, if it raises
        UnsupportedRecord or ValueError.
    :param noun: what a record should be, for people, with its article.
    :param table_of: database and table of a row change that could not be decoded; raises ValueError where a record does
        not state them, or may be a statement, which can be about other tables than the one it names.
    :param widths: digits of the numbers of positions.
    :param without_value: adds the change of a record without a value, from its index: mostly a tombstone, which needs
        nothing to be done.
    :param nearly: says what the key and the value of a record are that cannot be read, None where it is nothing known.
    """
    out = ChangeBuilder(records, texts, widths)
    for index, value in enumerate(records.values):
        if value is None:
            without_value(out, index)
            continue
        try:
            take(out, index, value)
        except UnsupportedRecord as refusal:
            out.error(index, refusal.code, str(refusal), _named(table_of, value))
        except (ValueError, RecursionError) as error:  # what msgspec raises is a ValueError
            said = nearly(records.keys[index], value) or _reason(error)
            out.error(index, "record.malformed", f"not {noun}: {said}", _named(table_of, value))
    return out.batch()


def _named(table_of: Callable[[bytes], tuple[str | None, str | None]], value: bytes) -> tuple[str, str] | None:
    """Return the table that a record is about, None where that is unknown."""
    try:
        database, table = table_of(value)
    except (ValueError, RecursionError):
        return None
    return (database, table) if database and table else None


def _reason(error: Exception) -> str:
    """Return the text of an error that reading raised, without what it may quote of the data."""
    return str(error).split(" - at `$", 1)[0][:200]
