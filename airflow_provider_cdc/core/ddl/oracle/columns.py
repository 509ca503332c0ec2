# SPDX-License-Identifier: Apache-2.0
"""Read Oracle's column definitions and constraints."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from airflow_provider_cdc.core.ddl.alter_actions import AddForeignKey, AddPrimaryKey, AddUnique
from airflow_provider_cdc.core.ddl.options import skip_item
from airflow_provider_cdc.core.ddl.oracle.column_types import Declared, read_type
from airflow_provider_cdc.core.ddl.oracle.defaults import read_default
from airflow_provider_cdc.core.ddl.reader import TokenReader, words
from airflow_provider_cdc.core.ddl.table_parts import ColumnDefinition, ForeignKey
from airflow_provider_cdc.core.model.schema import ColumnType

Key = AddPrimaryKey | AddUnique | AddForeignKey

_STATES = words("ENABLE VALIDATE NOVALIDATE RELY NORELY DEFERRABLE PRECHECK NOPRECHECK")
_CLAUSES = words("ADD MODIFY DROP RENAME")
_BEHIND_INDEX = _STATES | _CLAUSES | words(", ) DISABLE NOT INITIALLY EXCEPTIONS CONSTRAINT")
_CONSTRAINTS = words("CONSTRAINT NOT NULL UNIQUE PRIMARY REFERENCES CHECK")
_BEHIND_SEQUENCE = _BEHIND_INDEX | _CONSTRAINTS | words("VISIBLE INVISIBLE ENCRYPT SUPPLEMENTAL ANNOTATIONS")
_UNSTATED = ColumnType("")


@dataclass(slots=True)
class OracleColumn:
    """Collect a column's definition, or in MODIFY the stated part of it.

    :ivar declared: its type, None if it is not stated.
    :ivar keys: keys from constraints in the definition.
    """

    definition: ColumnDefinition
    declared: Declared | None
    keys: list[Key] = field(default_factory=list)


def read_column(reader: TokenReader) -> OracleColumn:
    """Read a column's name, type and attributes."""
    name = reader.name("a column name")
    if reader.at("AS") or reader.at("GENERATED"):
        raise reader.error(f"the type of the virtual column {name[:20]!r}, which its expression alone gives,")
    declared = read_type(reader)
    definition = ColumnDefinition(name, declared.type, any_scale=declared.any_scale)
    return _attributes(reader, OracleColumn(definition, declared))


def read_modified_column(reader: TokenReader) -> OracleColumn:
    """Read what MODIFY states of a column, with or without a type."""
    name = reader.name("a column name")
    untyped = reader.at_end or reader.at_any(
        _CONSTRAINTS | words("DEFAULT GENERATED VISIBLE INVISIBLE ANNOTATIONS , )")
    )
    declared = None if untyped else read_type(reader)
    return _attributes(reader, OracleColumn(ColumnDefinition(name, declared.type if declared else _UNSTATED), declared))


def at_constraint(reader: TokenReader) -> bool:
    """Return whether a constraint of the table comes next, not a column."""
    return (
        reader.at_any(("CONSTRAINT", "UNIQUE", "CHECK"))
        or reader.at("PRIMARY", "KEY")
        or reader.at("FOREIGN", "KEY")
        or reader.at("SUPPLEMENTAL", "LOG")
    )


def read_constraint(reader: TokenReader) -> Key | None:
    """Read a constraint of the table; return its key, None if it has none.

    Rows that ON DELETE CASCADE or SET NULL changes are in Oracle's log like every other row.
    """
    if reader.accept("SUPPLEMENTAL", "LOG"):
        skip_supplemental_log(reader)
        return None
    name = reader.name("a constraint name") if reader.accept("CONSTRAINT") else None
    key: Key | None = None
    if reader.accept("PRIMARY", "KEY"):
        key = AddPrimaryKey(_columns(reader), name)
    elif reader.accept("UNIQUE"):
        columns = _columns(reader)
        key = AddUnique(name or unnamed(columns), columns)
    elif reader.accept("FOREIGN", "KEY"):
        columns = _columns(reader)
        reader.expect("REFERENCES")
        key = AddForeignKey(_read_references(reader, () if name is None else (name,), columns))
    else:
        reader.expect("CHECK")
        reader.group()
    return key if _skip_state(reader) else None


def unnamed(columns: tuple[str, ...]) -> str:
    """Return a substitute for the name that the server makes for a UNIQUE constraint over these columns."""
    return f"({', '.join(columns)})"


def skip_supplemental_log(reader: TokenReader) -> None:
    """Skip what follows SUPPLEMENTAL LOG."""
    if reader.accept("GROUP"):
        reader.name("the name of a log group")
        if reader.at("("):
            reader.group()
        reader.accept("ALWAYS")
    else:
        reader.expect("DATA")
        reader.group()
        reader.expect("COLUMNS")


def _columns(reader: TokenReader) -> tuple[str, ...]:
    reader.expect("(")
    columns = [reader.name("a column name")]
    while reader.accept(","):
        columns.append(reader.name("a column name"))
    reader.expect(")")
    return tuple(columns)


def _attributes(reader: TokenReader, column: OracleColumn) -> OracleColumn:
    while not reader.at_end and not reader.at_any((",", ")")) and not reader.at_any(_CLAUSES):
        if reader.accept("DEFAULT"):
            if reader.accept("ON", "NULL"):
                _skip_insert_or_update(reader)
                column.definition = replace(column.definition, nullable=False)
            column.definition = replace(column.definition, default=read_default(reader, column.declared))
        elif reader.accept("GENERATED"):
            _generated(reader, column)
        elif reader.accept("AS"):
            column.definition = replace(column.definition, generated=True, expression=reader.group())
            _skip_virtual(reader)
        elif reader.at_any(_CONSTRAINTS):
            _inline_constraint(reader, column)
        elif reader.accept("COLLATE") or reader.accept("ENCRYPT", "USING"):
            skip_item(reader)
        elif reader.accept("ANNOTATIONS"):
            reader.group()
        elif not reader.accept_any(("SORT", "VISIBLE", "INVISIBLE", "ENCRYPT", "DECRYPT")):
            raise reader.error("an attribute of a column")
    return column


def _skip_insert_or_update(reader: TokenReader) -> None:
    if reader.accept("FOR", "INSERT") and not reader.accept("ONLY"):
        reader.expect("AND", "UPDATE")


def _generated(reader: TokenReader, column: OracleColumn) -> None:
    """Read the clause after GENERATED: an expression, or an identity column, which the server numbers."""
    if reader.accept("BY", "DEFAULT"):
        reader.accept("ON", "NULL")
    else:
        reader.expect("ALWAYS")
    reader.expect("AS")
    if not reader.accept("IDENTITY"):
        column.definition = replace(column.definition, generated=True, expression=reader.group())
        _skip_virtual(reader)
        return
    column.definition = replace(column.definition, auto_increment=True, nullable=False)
    while not reader.at_end and not reader.at_any(_BEHIND_SEQUENCE):
        skip_item(reader)


def _skip_virtual(reader: TokenReader) -> None:
    reader.accept("VIRTUAL")
    reader.accept("BY", "USER", "FOR", "STATISTICS")


def _inline_constraint(reader: TokenReader, column: OracleColumn) -> None:
    constraint = reader.name("a constraint name") if reader.accept("CONSTRAINT") else None
    columns = (column.definition.name,)
    key: Key | None = None
    nullable: bool | None = None
    if reader.accept("NOT", "NULL"):
        nullable = False
    elif reader.accept("NULL"):
        nullable = True
    elif reader.accept("PRIMARY", "KEY"):
        key = AddPrimaryKey(columns, constraint)
    elif reader.accept("UNIQUE"):
        key = AddUnique(constraint or unnamed(columns), columns)
    elif reader.accept("REFERENCES"):
        key = AddForeignKey(_read_references(reader, () if constraint is None else (constraint,), columns))
    else:
        reader.expect("CHECK")
        reader.group()
    if not _skip_state(reader):
        return
    if nullable is not None:
        column.definition = replace(column.definition, nullable=nullable)
    if key is not None:
        column.keys.append(key)


def _read_references(reader: TokenReader, names: tuple[str, ...], columns: tuple[str, ...]) -> ForeignKey:
    parent = reader.table_name()
    parent_columns = _columns(reader) if reader.at("(") else ()
    empties = False
    if reader.accept("ON", "DELETE"):
        empties = reader.accept("CASCADE")
        if not empties:
            reader.expect("SET", "NULL")
    return ForeignKey(names, columns, parent, parent_columns, empties=empties)


def _skip_state(reader: TokenReader) -> bool:
    """Skip a constraint's state and index; return whether it is enforced."""
    enforced = True
    while True:
        if reader.accept("USING", "INDEX"):
            while not reader.at_end and not reader.at_any(_BEHIND_INDEX):
                skip_item(reader)
        elif reader.accept("EXCEPTIONS", "INTO"):
            reader.table_name()
        elif reader.accept("INITIALLY"):
            reader.take()
        elif reader.accept("DISABLE"):
            enforced = False
        elif not reader.accept_any(_STATES) and not reader.accept("NOT", "DEFERRABLE"):
            return enforced
