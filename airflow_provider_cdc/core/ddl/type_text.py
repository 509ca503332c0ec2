# SPDX-License-Identifier: Apache-2.0
"""Parse a column type alone, as structured messages spell it."""

from __future__ import annotations

from functools import lru_cache

from airflow_provider_cdc.core.ddl.column_types import read_type, settle
from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.tokens import tokenize
from airflow_provider_cdc.core.model.schema import ColumnType

_SHORT = 100  # characters: texts with long lists of labels do not stay in memory


def parse_type(text: str, charset: str | None = None) -> ColumnType:
    """Return the column type that a text spells.

    :param charset: the column's character set, if known.
    :raises DdlError: the text spells no type.
    """
    return _read_short(text, charset) if len(text) <= _SHORT else _read(text, charset)


def _read(text: str, charset: str | None) -> ColumnType:
    reader = TokenReader(text, list(tokenize(text)))
    column_type = settle(read_type(reader), charset)
    reader.expect_end()
    return column_type


# thousands of tables have few types
_read_short = lru_cache(maxsize=2_000)(_read)
