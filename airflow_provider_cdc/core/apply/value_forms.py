# SPDX-License-Identifier: Apache-2.0
"""Compare values that a tool writes in one way in a snapshot and in another one in the stream.

Of tables without key a removal names a whole row, which then has to be found by its values. Recorded with Debezium
(docs/wire/debezium-dtle.md B9): a snapshot has JSON and FLOAT as the server prints them, FLOAT with six significant
digits, and NULL for the zero date of a TIMESTAMP, which the stream has as the first moment of 1970.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.shapes.columns import TargetColumn

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ValueForms:
    """The columns of a table whose values have several forms, and what gives one form to them.

    :param columns: by name what turns a value into one that is equal for all its forms.
    """

    columns: dict[str, Callable[[Any], Any]]

    @staticmethod
    def of(schema: TableSchema, columns: Iterable[TargetColumn]) -> ValueForms:
        """Return the forms of the columns that a stored table has as the source has them.

        :param schema: of the source.
        """
        types = {column.id: column.type.name for column in schema.columns}
        forms = {one.name: _FORMS.get(types.get(one.id, "")) for one in columns if not one.mark}
        return ValueForms({name: form for name, form in forms.items() if form is not None})

    def __bool__(self) -> bool:
        return bool(self.columns)

    def without(self, rows: pa.Table) -> list[str]:
        """Return the names of the columns whose values have one form."""
        return [name for name in rows.column_names if name not in self.columns]

    def in_one_form(self, rows: pa.Table) -> pa.Table:
        """Return rows that are equal where they differ in the forms of their values alone."""
        for name, form in self.columns.items():
            if name not in rows.column_names:
                continue
            values = [form(value) for value in rows.column(name).to_pylist()]
            index = rows.column_names.index(name)
            rows = rows.set_column(index, name, pa.chunked_array([pa.array(values, pa.string())]))
        return rows


def _json_value(value: Any) -> str | None:
    """Return one text for all texts of a JSON value."""
    if value is None:
        return None
    try:
        parsed = json.loads(value, parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse)
        return repr(_plain(parsed))
    except (ValueError, ArithmeticError, RecursionError, TypeError):
        return str(value)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return "object", sorted((name, _plain(member)) for name, member in value.items())
        case list():
            return "array", [_plain(member) for member in value]
        case Decimal():
            return "number", str(value.normalize())
        case _:
            return type(value).__name__, str(value)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _float_value(value: Any) -> str | None:
    return None if value is None else format(value, ".6g")


def _timestamp_value(value: Any) -> str | None:
    return None if value is None or value == _EPOCH else str(value)


_FORMS: dict[str, Callable[[Any], Any]] = {"json": _json_value, "float": _float_value, "timestamp": _timestamp_value}
