# SPDX-License-Identifier: Apache-2.0
"""Read column definitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from airflow_provider_cdc.core.ddl.column_types import (
    BYTES,
    WITH_CHARSET,
    accept_charset,
    read_charset,
    read_collation,
    read_type,
    settle,
)
from airflow_provider_cdc.core.ddl.defaults import accept_now, read_default
from airflow_provider_cdc.core.ddl.options import accept_setting
from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.table_parts import ColumnDefinition, ForeignKey
from airflow_provider_cdc.core.model.schema import Default

# actions of a foreign key on the rows of its table, and whether they change them
_REFERENCE_ACTIONS = {
    ("RESTRICT",): False,
    ("NO", "ACTION"): False,
    ("CASCADE",): True,
    ("SET", "NULL"): True,
    ("SET", "DEFAULT"): True,
}
_NO_EFFECT = frozenset({"VISIBLE", "INVISIBLE", "VIRTUAL", "STORED", "PERSISTENT", "CLUSTERED", "NONCLUSTERED"})


@dataclass(frozen=True, slots=True)
class Position:
    """Hold FIRST or AFTER of an added or changed column."""

    first: bool = False
    after: str | None = None


def read_column(reader: TokenReader) -> ColumnDefinition:
    """Read a column's name and definition; complete its type without a table character set."""
    return settled(read_raw_column(reader), None)


def read_raw_column(reader: TokenReader) -> ColumnDefinition:
    """Read a column's name and definition; complete its type later with :func:`settled`."""
    name = reader.column_name()
    serial = reader.at("SERIAL")
    column = ColumnDefinition(name, read_type(reader))
    if serial:
        column = replace(column, nullable=False, auto_increment=True, unique=True)
    while True:
        attribute = _attribute(reader, column)
        if attribute is None:
            return column
        column = attribute


def settled(column: ColumnDefinition, table_charset: str | None) -> ColumnDefinition:
    """Complete the column's type with the table's character set."""
    settled_type = settle(column.type, table_charset)
    return column if settled_type is column.type else replace(column, type=settled_type)


def in_table_of_bytes(column: ColumnDefinition) -> ColumnDefinition:
    """Return a column as a table has it whose character set is binary: text without a character set is bytes."""
    column = settled(column, "binary")
    default = column.default
    if default is None or default.kind != "constant" or column.type.name not in BYTES or (default.text or "").isascii():
        return column
    return replace(column, default=Default("expression", default.text))  # its bytes are of the session's character set


def read_position(reader: TokenReader) -> Position:
    """Read FIRST or AFTER column, if one comes next."""
    if reader.accept("FIRST"):
        return Position(first=True)
    if reader.accept("AFTER"):
        return Position(after=reader.column_name())
    return Position()


def read_references(reader: TokenReader, names: tuple[str, ...], columns: tuple[str, ...]) -> ForeignKey:
    """Read the rest of a REFERENCES clause.

    :param names: of the foreign key.
    :param columns: its columns.
    """
    parent = reader.table_name()
    parent_columns: list[str] = []
    if reader.accept("("):
        parent_columns.append(reader.column_name())
        while reader.accept(","):
            parent_columns.append(reader.column_name())
        reader.expect(")")
    if reader.accept("MATCH"):
        reader.name("FULL, PARTIAL or SIMPLE")
    cascades = False
    while reader.accept("ON", "DELETE") or reader.accept("ON", "UPDATE"):
        action = next((words for words in _REFERENCE_ACTIONS if reader.accept(*words)), None)
        if action is None:
            raise reader.error("a reference option")
        cascades = cascades or _REFERENCE_ACTIONS[action]
    return ForeignKey(names, columns, parent, tuple(parent_columns), cascades)


def read_check(reader: TokenReader) -> None:
    """Skip the rest of a CHECK constraint."""
    reader.group()
    if not reader.accept("NOT", "ENFORCED"):
        reader.accept("ENFORCED")


def _attribute(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition | None:
    """Return the column with the next attribute, None if no attribute comes next."""
    for words, read in _BY_FIRST_WORD.get(reader.peek().word, ()):
        if reader.accept(*words):
            return read(reader, column)
    if accept_charset(reader):
        return _with_charset(column, read_charset(reader), overrule=True)
    if reader.accept_any(_NO_EFFECT) or accept_setting(reader):
        return column
    return None


def _default(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    return replace(column, default=read_default(reader, column.type))


def _collate(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    return _with_charset(column, read_collation(reader), overrule=False)


def _with_charset(column: ColumnDefinition, charset: str | None, *, overrule: bool) -> ColumnDefinition:
    if column.type.name not in WITH_CHARSET or charset is None or (column.type.charset and not overrule):
        return column
    return replace(column, type=replace(column.type, charset=charset))


def _generated(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    if reader.accept("ROW"):
        if not reader.accept_any(("START", "END")):
            raise reader.error("START or END")
        return replace(column, generated=True)
    return replace(column, generated=True, expression=reader.group())


def _serial(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    return replace(column, nullable=False, auto_increment=True, unique=True)


def _unique(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    reader.accept("KEY")
    return replace(column, unique=True)


def _on_update(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    if not accept_now(reader):
        raise reader.error("CURRENT_TIMESTAMP")
    return replace(column, on_update=True)


def _constraint(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    if not reader.at("CHECK"):
        reader.name("a constraint name")
    reader.expect("CHECK")
    return _check(reader, column)


def _check(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    read_check(reader)
    return column


def _references(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    return replace(column, references=read_references(reader, (), (column.name,)))


def _word(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    if not reader.accept("DEFAULT"):
        reader.name("a storage word")
    return column


def _comment(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    reader.accept("=")
    return replace(column, comment=reader.string())


def _text(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    reader.accept("=")
    reader.string()
    return column


def _number(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    reader.integer()
    return column


def _auto_increment(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    if reader.accept("BY") and not reader.accept("GROUP"):  # PolarDB-X: by which kind of sequence
        reader.name("a kind of sequence")
    return replace(column, auto_increment=True)


def _auto_random(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    if reader.at("("):  # TiDB: the number of random bits
        reader.group()
    return replace(column, auto_increment=True)


def _compressed(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    if reader.accept("="):
        reader.name("a compression method")
    return column


def _group(reader: TokenReader, column: ColumnDefinition) -> ColumnDefinition:
    reader.group()
    return column


_ATTRIBUTES: dict[tuple[str, ...], Callable[[TokenReader, ColumnDefinition], ColumnDefinition]] = {
    ("NOT", "NULL"): lambda _, column: replace(column, nullable=False),
    ("NULL",): lambda _, column: replace(column, nullable=True),
    ("DEFAULT",): _default,
    ("ON", "UPDATE"): _on_update,
    ("AUTO_INCREMENT",): _auto_increment,
    ("SERIAL", "DEFAULT", "VALUE"): _serial,
    ("PRIMARY", "KEY"): lambda _, column: replace(column, primary_key=True),
    ("PRIMARY",): lambda _, column: replace(column, primary_key=True),
    ("KEY",): lambda _, column: replace(column, primary_key=True),
    ("UNIQUE",): _unique,
    ("COMMENT",): _comment,
    ("COLLATE",): _collate,
    ("GENERATED", "ALWAYS", "AS"): _generated,
    ("AS",): _generated,
    ("CONSTRAINT",): _constraint,
    ("CHECK",): _check,
    ("REFERENCES",): _references,
    ("COLUMN_FORMAT",): _word,
    ("WITH", "COMPRESSION_DICTIONARY"): _word,  # Percona Server
    ("STORAGE",): _word,
    ("SKIP_INDEX",): _group,  # OceanBase
    ("ENGINE_ATTRIBUTE",): _text,
    ("SECONDARY_ENGINE_ATTRIBUTE",): _text,
    ("NOT", "SECONDARY"): lambda _, column: column,
    ("SRID",): _number,
    ("COMPRESSED",): _compressed,
    ("AUTO_RANDOM",): _auto_random,
    ("WITH", "SYSTEM", "VERSIONING"): lambda _, column: replace(column, versioned=True),
    ("WITHOUT", "SYSTEM", "VERSIONING"): lambda _, column: column,
}
_BY_FIRST_WORD = {
    first: [(words, read) for words, read in _ATTRIBUTES.items() if words[0] == first]
    for first in {words[0] for words in _ATTRIBUTES}
}
