# SPDX-License-Identifier: Apache-2.0
"""Read table-level keys, indexes and constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_cdc.core.ddl.alter_actions import AddForeignKey, AddPrimaryKey, AddUnique
from airflow_provider_cdc.core.ddl.columns import read_check, read_references
from airflow_provider_cdc.core.ddl.options import (
    accept_column_groups,
    accept_distribution,
    accept_partitioning,
    accept_setting,
    skip_item,
)
from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.tokens import Kind


@dataclass(frozen=True, slots=True)
class Unbinding:
    """Hold an index or constraint that does not make values unique; ``index`` is its name if it is an index."""

    clause: str
    index: str | None = None


Constraint = AddPrimaryKey | AddUnique | AddForeignKey | Unbinding

_STARTS = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"})
_SPECIAL = frozenset({"FULLTEXT", "SPATIAL"})
# before INDEX or KEY: MySQL, TokuDB, TiDB, PolarDB-X
_KINDS = frozenset({"VECTOR", "CLUSTERING", "CLUSTERED", "COLUMNAR", "GLOBAL", "LOCAL"})
_INDEX_WORDS = frozenset({"VISIBLE", "INVISIBLE", "IGNORED", "CLUSTERED", "NONCLUSTERED", "GLOBAL", "LOCAL"})
_INDEX_VALUES = frozenset(
    {"USING", "TYPE", "KEY_BLOCK_SIZE", "CLUSTERING", "COMMENT"} | {"M", "DISTANCE"} | {"BLOCK_SIZE"}
)


_INDEX_OPTIONS: tuple[Callable[[TokenReader], object], ...] = (
    lambda reader: reader.accept("NOT", "IGNORED"),
    lambda reader: reader.accept_any(_INDEX_WORDS),
    accept_setting,
    accept_partitioning,
    accept_distribution,
    accept_column_groups,
)


def at_constraint(reader: TokenReader) -> bool:
    """Return whether a key, an index or a constraint comes next, not a column."""
    return reader.at_any(_STARTS) or reader.at("PERIOD", "FOR") or _words_before_index(reader) > 0


def read_constraint(reader: TokenReader) -> Constraint:
    """Read a key, an index or a constraint."""
    symbol = None
    if reader.accept("CONSTRAINT"):
        reader.accept("IF", "NOT", "EXISTS")
        symbol = reader.name("a constraint name") if reader.at_name() else None
        if not reader.at_any(("PRIMARY", "UNIQUE", "FOREIGN", "CHECK")):
            raise reader.error("PRIMARY KEY, UNIQUE, FOREIGN KEY or CHECK")
    if reader.accept("PRIMARY"):
        return _primary_key(reader)
    if reader.accept("UNIQUE"):
        _skip_kinds(reader)
        reader.accept_any(("INDEX", "KEY"))
        return _unique(reader, symbol)
    if reader.accept("FOREIGN", "KEY"):
        return _foreign_key(reader, symbol)
    if reader.accept("CHECK"):
        read_check(reader)
        return Unbinding("ADD CHECK")
    if reader.accept("PERIOD", "FOR"):
        reader.name("a period name")
        reader.group()
        return Unbinding("ADD PERIOD")
    _skip_kinds(reader)
    if reader.accept_any(_SPECIAL):
        reader.accept_any(("INDEX", "KEY"))
    elif not reader.accept_any(("INDEX", "KEY")):
        raise reader.error("a key or an index")
    name, columns = _index(reader)
    accept_index_condition(reader)
    return Unbinding("ADD INDEX", name or (columns[0] if columns else None))


def _words_before_index(reader: TokenReader) -> int:
    """Return how many words of a kind of index stand before INDEX or KEY, 0 if there is no such index."""
    ahead = 0
    while reader.peek(ahead).word in _KINDS:
        ahead += 1
    return ahead if reader.peek(ahead).word in ("INDEX", "KEY") else 0


def _skip_kinds(reader: TokenReader) -> None:
    for _ in range(_words_before_index(reader)):
        reader.take()


def read_index_parts(reader: TokenReader) -> tuple[str, ...] | None:
    """Read the parts of an index: its columns, None if one of them is an expression or a period."""
    columns: list[str] = []
    expressions = False
    reader.expect("(")
    while True:
        if reader.at("("):
            reader.group()
            expressions = True
        else:
            columns.append(reader.column_name())
            if reader.accept("("):
                reader.integer()
                reader.expect(")")
        if reader.accept("WITHOUT", "OVERLAPS"):  # MariaDB: a period, no column
            expressions = True
        reader.accept_any(("ASC", "DESC"))
        if not reader.accept(","):
            reader.expect(")")
            return None if expressions else tuple(columns)


def read_index_options(reader: TokenReader) -> None:
    """Skip the options before or after the parts of an index."""
    while True:
        if reader.accept("WITH", "PARSER"):
            reader.name("a parser name")
        elif reader.at("WITH", "("):  # OceanBase: settings of a vector index
            reader.take()
            reader.group()
        elif reader.accept_any(_INDEX_VALUES):
            reader.accept("=")
            _value(reader)
        elif reader.accept_any(("COVERING", "STORING")):  # columns that the index has a copy of
            reader.group()
        elif not any(skip(reader) for skip in _INDEX_OPTIONS):
            return


def accept_index_condition(reader: TokenReader) -> bool:
    """Skip the WHERE of TiDB's partial indexes, if it comes next."""
    if not reader.accept("WHERE"):
        return False
    while not reader.at_end and not reader.at_any((",", ")")):
        skip_item(reader)
    return True


def _unique(reader: TokenReader, symbol: str | None) -> AddUnique | Unbinding:
    name, columns = _index(reader)
    if accept_index_condition(reader):
        return Unbinding("ADD UNIQUE over a part of the rows", name or symbol)
    if columns is None:
        return Unbinding("ADD UNIQUE over an expression", name or symbol)
    return AddUnique(name or symbol or columns[0], columns)


def _primary_key(reader: TokenReader) -> AddPrimaryKey:
    reader.expect("KEY")
    _, columns = _index(reader)
    if columns is None:
        raise reader.error("columns in the primary key")
    return AddPrimaryKey(columns)


def _foreign_key(reader: TokenReader, symbol: str | None) -> AddForeignKey:
    reader.accept("IF", "NOT", "EXISTS")
    index = reader.name() if reader.at_name() else None
    columns = read_index_parts(reader)
    if columns is None:
        raise reader.error("columns in the foreign key")
    reader.expect("REFERENCES")
    return AddForeignKey(read_references(reader, tuple(name for name in (symbol, index) if name), columns))


def _index(reader: TokenReader) -> tuple[str | None, tuple[str, ...] | None]:
    reader.accept("IF", "NOT", "EXISTS")
    named = reader.at_name() and (not reader.at_any(("USING", "TYPE")) or reader.peek(1).word in ("(", "USING", "TYPE"))
    name = reader.name() if named else None
    if reader.accept_any(("USING", "TYPE")):
        reader.name("an index type")
    columns = read_index_parts(reader)
    read_index_options(reader)
    return name, columns


def _value(reader: TokenReader) -> None:
    if reader.at_string():
        reader.string()
    elif reader.peek().kind is Kind.NUMBER:
        reader.take()
    else:
        reader.name("a value")
