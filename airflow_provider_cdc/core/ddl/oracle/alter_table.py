# SPDX-License-Identifier: Apache-2.0
"""Read Oracle's ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable

from airflow_provider_cdc.core.ddl.alter_actions import (
    AddColumn,
    AlterAction,
    DropColumn,
    DropConstraint,
    DropPrimaryKey,
    ModifyColumn,
    NoEffect,
    PartitionRows,
    RenameColumn,
    RenameTo,
)
from airflow_provider_cdc.core.ddl.options import skip_item
from airflow_provider_cdc.core.ddl.oracle.columns import (
    OracleColumn,
    at_constraint,
    read_column,
    read_constraint,
    read_modified_column,
    skip_supplemental_log,
    unnamed,
)
from airflow_provider_cdc.core.ddl.reader import TokenReader, words
from airflow_provider_cdc.core.ddl.statement import AlterTable
from airflow_provider_cdc.core.ddl.table_parts import Name

_PARTITION = words("PARTITION PARTITIONS SUBPARTITION SUBPARTITIONS")
# clauses about storage and replication: nothing of rows, columns or keys; each is the rest of its statement
_WITHOUT_EFFECT = words(
    """MOVE SHRINK STORAGE PCTFREE PCTUSED INITRANS MAXTRANS TABLESPACE LOGGING NOLOGGING CACHE NOCACHE PARALLEL
    NOPARALLEL COMPRESS NOCOMPRESS MONITORING NOMONITORING INMEMORY ALLOCATE DEALLOCATE SPLIT MERGE COALESCE ANNOTATIONS
    RESULT_CACHE ILM READ NOMAPPING UPGRADE ROW NO FLASHBACK MAPPING"""
)
_SWITCHES = words("ROW TABLE ALL LOGICAL")  # ENABLE ROW MOVEMENT, DISABLE TABLE LOCK, ENABLE ALL TRIGGERS, ...
_CONSTRAINTS = words("CONSTRAINT PRIMARY UNIQUE VALIDATE NOVALIDATE")


def read_alter_table(reader: TokenReader) -> AlterTable:
    """Read what follows ALTER TABLE."""
    reader.accept("IF", "EXISTS")
    name = reader.table_name()
    actions: list[AlterAction] = []
    while not reader.at_end:
        actions.extend(_clause(reader, name))
        if reader.accept(",") and reader.at_end:  # OceanBase separates clauses by commas, Oracle does not
            raise reader.error("a clause")
    return AlterTable(name, tuple(actions))


def _clause(reader: TokenReader, name: Name) -> list[AlterAction]:
    if reader.accept("RENAME", "TO"):
        return [RenameTo(Name(name.database, reader.name("a table name")))]  # stays in its schema
    if reader.at_any(_WITHOUT_EFFECT) or (reader.at_any(("ENABLE", "DISABLE")) and reader.peek(1).word in _SWITCHES):
        return _no_effect(reader)
    read = _CLAUSES.get(reader.peek().word)
    if read is None:
        raise reader.error("a clause of ALTER TABLE")
    reader.take()
    return read(reader)


def _no_effect(reader: TokenReader) -> list[AlterAction]:
    """Skip a clause up to the next one that may have an effect."""
    clause = reader.peek().word
    while not reader.at_end:
        if reader.at(",") and reader.peek(1).word in _CLAUSES:
            break
        if reader.at_any(("ENABLE", "DISABLE")) and reader.peek(1).word in _CONSTRAINTS:
            break
        skip_item(reader)
    return [NoEffect(clause)]


def _add(reader: TokenReader) -> list[AlterAction]:
    if reader.at_any(_PARTITION):
        return _no_effect(reader)
    reader.accept("COLUMN")
    if not reader.accept("("):
        return _added(reader)
    actions = _added(reader)
    while reader.accept(","):
        actions += _added(reader)
    reader.expect(")")
    while reader.at_any(("LOB", "STORE", "VARRAY", "PARTITION")):  # where the columns are stored
        while not reader.at_end and not reader.at_any(_CLAUSES):
            skip_item(reader)
    return actions


def _added(reader: TokenReader) -> list[AlterAction]:
    if at_constraint(reader):
        key = read_constraint(reader)
        return [NoEffect("ADD CONSTRAINT") if key is None else key]
    column = read_column(reader)
    return [AddColumn(column.definition), *column.keys]


def _modify(reader: TokenReader) -> list[AlterAction]:
    if reader.at_any(_PARTITION) or reader.at("DEFAULT", "ATTRIBUTES") or reader.at("LOB", "("):
        return _no_effect(reader)
    if not reader.accept("("):
        return _modified(reader)
    actions = _modified(reader)
    while reader.accept(","):
        actions += _modified(reader)
    reader.expect(")")
    return actions


def _modified(reader: TokenReader) -> list[AlterAction]:
    start = reader.peek()
    column = read_modified_column(reader)
    if start.word == "CONSTRAINT" or column.definition.generated:
        raise reader.error("a plain column in MODIFY")
    if column.declared is not None and column.declared.family == "char":
        raise reader.error("another type than CHAR, whose length changes the blanks in stored rows,")
    return [_modification(column), *column.keys]


def _modification(column: OracleColumn) -> ModifyColumn:
    definition = column.definition
    kind = None if column.declared is None else column.declared.type
    any_scale = column.declared is not None and column.declared.any_scale
    return ModifyColumn(definition.name, kind, definition.nullable, definition.default, any_scale)


def _drop(reader: TokenReader) -> list[AlterAction]:
    if reader.at_any(_PARTITION):
        reader.rest()
        return [PartitionRows("drop")]
    if reader.accept("SUPPLEMENTAL", "LOG"):
        skip_supplemental_log(reader)
        return [NoEffect("DROP SUPPLEMENTAL LOG")]
    if reader.accept("UNUSED", "COLUMNS") or reader.accept("COLUMNS", "CONTINUE"):
        return _no_effect(reader)
    if reader.accept("PRIMARY", "KEY"):
        _skip_cascade(reader)
        return [DropPrimaryKey()]
    if reader.accept("CONSTRAINT"):
        name = reader.name("a constraint name")
        _skip_cascade(reader)
        return [DropConstraint(name)]
    return _drop_columns(reader)


def _drop_columns(reader: TokenReader) -> list[AlterAction]:
    if reader.accept("COLUMN") or not reader.at("("):
        names = [reader.name("a column name")]
    else:
        reader.expect("(")
        names = [reader.name("a column name")]
        while reader.accept(","):
            names.append(reader.name("a column name"))
        reader.expect(")")
    whole = False
    while True:
        if reader.accept("CASCADE"):
            reader.accept_any(("CONSTRAINTS", "CONSTRAINT"))
            whole = True
        elif reader.accept("CHECKPOINT"):
            reader.integer()
        elif not reader.accept_any(("INVALIDATE", "ONLINE")):
            return [DropColumn(name, with_keys=whole) for name in names]


def _skip_cascade(reader: TokenReader) -> None:
    reader.accept("CASCADE")
    if reader.accept_any(("KEEP", "DROP")):
        reader.expect("INDEX")
    reader.accept("ONLINE")


def _set(reader: TokenReader) -> list[AlterAction]:
    """Read SET UNUSED; for readers of the table it is the same as DROP COLUMN."""
    reader.expect("UNUSED")
    return _drop_columns(reader)


def _rename(reader: TokenReader) -> list[AlterAction]:
    if reader.at_any(_PARTITION):
        return _no_effect(reader)
    reader.expect("COLUMN")
    old_name = reader.name("a column name")
    reader.expect("TO")
    return [RenameColumn(old_name, reader.name("a column name"))]


def _enable(reader: TokenReader) -> list[AlterAction]:
    """Read ENABLE of a constraint: a table that did without its key stays so, which is right for every table."""
    _constraint(reader)
    return [NoEffect("ENABLE CONSTRAINT")]


def _disable(reader: TokenReader) -> list[AlterAction]:
    """Read DISABLE of a constraint: a key that is not enforced tells no rows apart."""
    return [_constraint(reader)]


def _constraint(reader: TokenReader) -> AlterAction:
    """Read a constraint with its state; return the clause that drops it."""
    reader.accept_any(("VALIDATE", "NOVALIDATE"))
    action: AlterAction
    if reader.accept("PRIMARY", "KEY"):
        action = DropPrimaryKey()
    elif reader.accept("UNIQUE"):
        reader.expect("(")
        names = [reader.name("a column name")]
        while reader.accept(","):
            names.append(reader.name("a column name"))
        reader.expect(")")
        action = DropConstraint(unnamed(tuple(names)))
    else:
        reader.expect("CONSTRAINT")
        action = DropConstraint(reader.name("a constraint name"))
    if reader.accept("USING", "INDEX"):
        while not reader.at_end and not reader.at_any(_CLAUSES) and not reader.at("EXCEPTIONS"):
            skip_item(reader)
    if reader.accept("EXCEPTIONS", "INTO"):
        reader.table_name()
    _skip_cascade(reader)
    return action


def _truncate(reader: TokenReader) -> list[AlterAction]:
    if not reader.at_any(_PARTITION):
        raise reader.error("PARTITION")
    reader.rest()
    return [PartitionRows("truncate")]


def _exchange(reader: TokenReader) -> list[AlterAction]:
    if not reader.accept_any(_PARTITION):
        raise reader.error("PARTITION")
    while not reader.at("WITH", "TABLE"):
        skip_item(reader)
    reader.expect("WITH", "TABLE")
    other = reader.table_name()
    reader.rest()
    return [PartitionRows("exchange", other)]


_CLAUSES: dict[str, Callable[[TokenReader], list[AlterAction]]] = {
    "ADD": _add,
    "MODIFY": _modify,
    "DROP": _drop,
    "SET": _set,
    "RENAME": _rename,
    "TRUNCATE": _truncate,
    "EXCHANGE": _exchange,
    "ENABLE": _enable,
    "DISABLE": _disable,
}
