# SPDX-License-Identifier: Apache-2.0
"""Collect notices about records of Tencent DTS, next to their changes: ignored records, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa


class _Error(NamedTuple):
    record: int
    number: int
    code: str
    text: str
    raw: bytes | None
    database: str | None
    table: str | None


class Notices:
    """Collect notices about some records, each with its index among the changes of its record."""

    def __init__(self) -> None:
        self._ignored: list[Any] = [np.array([], np.int64)]
        self._errors: list[_Error] = []

    def ignore(self, records: Sequence[int]) -> None:
        """Note records that carry nothing by themselves."""
        if len(records):
            self._ignored.append(np.asarray(records, np.int64))

    def error(
        self,
        record: int,
        number: int,
        code: str,
        text: str,
        raw: bytes | None,
        table: tuple[str | None, str | None] = (None, None),
    ) -> None:
        """Note what is wrong.

        :param number: of the change that it stands for in its record.
        :param raw: the bytes that it is about, where they are to be kept.
        :param table: database and table that it is about, where they are known.
        """
        self._errors.append(_Error(record, number, code, text, raw, *table))

    def locations(self) -> tuple[Any, Any, Any]:
        """Return record and number of each notice, and whether it is an error: errors come last."""
        ignored = np.concatenate(self._ignored)
        records = np.r_[ignored, np.array([error.record for error in self._errors], np.int64)]
        numbers: Any = np.zeros(len(records), np.int64)
        numbers[len(ignored) :] = [error.number for error in self._errors]
        return records, numbers, np.arange(len(records)) >= len(ignored)

    def columns(self, numbers: Any) -> dict[str, pa.Array]:
        """Return the columns of errors, null for others.

        :param numbers: for each row of them the number of a notice, negative for none.
        """
        if not self._errors:
            return {}
        first = sum(map(len, self._ignored))
        errors = pa.array(numbers - first, mask=numbers < first)
        fields = {"error_code": "code", "error": "text", "database": "database", "table": "table"}
        columns = {name: [getattr(error, field) for error in self._errors] for name, field in fields.items()}
        arrays = {name: pa.array(values, pa.string()) for name, values in columns.items()}
        arrays["raw"] = pa.array([error.raw for error in self._errors], pa.binary())
        return {name: array.take(errors) for name, array in arrays.items()}
