# SPDX-License-Identifier: Apache-2.0
"""Take the values out of changes that rules keep out of the change log (``columns.unlogged``)."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.config import TableRules
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.formats.contract import AdjustsNames, Format
from airflow_provider_cdc.core.values.image_structs import RAW, BadImage

_IMAGES = ("before", "after")
_NO_MEMBERS = b"{}"


class Unlogged:
    """The columns whose values stay out of the change log.

    :param folds: whether tables have their names in lower case.
    """

    def __init__(self, rules: TableRules, wire: Format, *, folds: bool) -> None:
        self._rules, self._wire, self._folds = rules, wire, folds
        self._named: dict[tuple[str, str], bool] = {}  # by pattern and name

    @staticmethod
    def of(job: JobDocument, wire: Format) -> Unlogged:
        """Return those of a job."""
        return Unlogged(job.tables, wire, folds=Server.of(job.format_options).lower_case_names is True)

    def without_values(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows whose images lack these columns, as if the tool left them out."""
        if not self._rules.keep_values_out:
            return rows
        for database, table, mine in _by_table(rows):
            if patterns := self._spelt(database, table):
                for name in _IMAGES:
                    rows = _with(rows, name, self._without(rows.column(name), mine, patterns))
        return rows

    def of_table(self, rows: pa.Table, database: str, table: str) -> pa.Table:
        """Return rows of one name, landed under whatever rules, as they would be landed now."""
        for name in _IMAGES if (patterns := self._spelt(database, table)) else ():
            if name in rows.column_names:
                chunks = [self._without(chunk, range(len(chunk)), patterns) for chunk in rows.column(name).chunks]
                images = pa.chunked_array(chunks, rows.schema.field(name).type)
                rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), images)
        return rows

    def without_bytes(self, errors: pa.RecordBatch) -> pa.RecordBatch:
        """Return errors without the bytes of records that may have such values: of these tables, or of no known one."""
        if not self._rules.keep_values_out:
            return errors
        raw = errors.column("raw").to_pylist()
        for database, table, mine in _by_table(errors):
            if not table or self.patterns(database, table):
                for index in mine:
                    raw[index] = None
        return _with(errors, "raw", pa.array(raw, pa.binary()))

    def patterns(self, database: str, table: str) -> list[str]:
        """Return the patterns of these columns of a table."""
        name = f"{database}.{table}"
        return self._rules.rule(name.lower() if self._folds else name).unlogged_patterns

    def _spelt(self, database: str, table: str) -> list[str]:
        """Return the patterns of their names in images, in lower case."""
        stated = self.patterns(database, table)
        if isinstance(self._wire, AdjustsNames):
            stated = [*stated, *(spelling for pattern in stated for spelling in self._wire.spellings(pattern))]
        return [pattern.lower() for pattern in stated]

    def _without(self, images: pa.Array, some: Iterable[int], patterns: list[str]) -> pa.Array:
        texts = images.to_pylist()
        for index in some:
            if texts[index] is not None:
                texts[index] = self._stripped(texts[index].encode(), patterns).decode()
        return pa.array(texts, images.type)

    def _stripped(self, image: bytes, patterns: list[str]) -> bytes:
        """Return an image without some columns; the tokens of the others stay as they are."""
        try:
            members = RAW.decode(image)
        except BadImage:
            return _NO_MEMBERS  # typing it says what is wrong with it
        left = {name: token for name, token in members.items() if not any(self._is(name, one) for one in patterns)}
        return image if len(left) == len(members) else msgspec.json.encode(left)

    def _is(self, name: str, pattern: str) -> bool:
        if (pattern, name) not in self._named:
            self._named[pattern, name] = fnmatchcase(name.lower(), pattern)
        return self._named[pattern, name]


def _by_table(rows: pa.RecordBatch) -> list[tuple[str, str, list[int]]]:
    """Return database and table of rows, each with the indexes of its rows."""
    databases, tables = (rows.column(name).cast(pa.string()).fill_null("") for name in ("database", "table"))
    members: dict[tuple[str, str], list[int]] = {}
    for index, name in enumerate(zip(databases.to_pylist(), tables.to_pylist(), strict=True)):
        members.setdefault(name, []).append(index)
    return [(*name, some) for name, some in members.items()]


def _with(rows: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Return rows with other values in a column."""
    index = rows.schema.get_field_index(name)
    return rows.set_column(index, rows.schema.field(index), values)
