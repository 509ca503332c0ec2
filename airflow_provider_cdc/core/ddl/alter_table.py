# SPDX-License-Identifier: Apache-2.0
"""Read ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable

from airflow_provider_cdc.core.ddl.alter_actions import (
    AddColumn,
    AlterAction,
    ChangeColumn,
    ConvertCharset,
    DropColumn,
    DropForeignKey,
    DropIndex,
    DropPrimaryKey,
    NoEffect,
    RenameColumn,
    RenameIndex,
    RenameTo,
    SetCharset,
    SetComment,
    SetDefault,
    Versioning,
)
from airflow_provider_cdc.core.ddl.column_types import accept_charset, read_charset, read_collation
from airflow_provider_cdc.core.ddl.columns import read_column, read_position
from airflow_provider_cdc.core.ddl.defaults import read_default_text
from airflow_provider_cdc.core.ddl.keys import Constraint, Unbinding, at_constraint, read_constraint
from airflow_provider_cdc.core.ddl.options import accept_distribution, accept_partitioning, accept_table_options
from airflow_provider_cdc.core.ddl.partitions import at_partition_clause, read_partition_clause
from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.statement import AlterTable

_INDEX = ("INDEX", "KEY")
_CONSTRAINT = ("CONSTRAINT", "CHECK")
_PLAIN = (
    ("ENABLE", "KEYS"),
    ("DISABLE", "KEYS"),
    ("FORCE",),
    ("WITH", "VALIDATION"),
    ("WITHOUT", "VALIDATION"),
    ("REMOVE", "PARTITIONING"),
    ("UPGRADE", "PARTITIONING"),
    ("REMOVE", "TTL"),  # this and the following: TiDB
    ("CACHE",),
    ("NOCACHE",),
    ("COMPACT", "TIFLASH", "REPLICA"),
    ("READ", "ONLY"),  # this and the following: OceanBase
    ("READ", "WRITE"),
    ("ENABLE", "ALL", "TRIGGERS"),
    ("DISABLE", "ALL", "TRIGGERS"),
    ("ENABLE", "ROW", "MOVEMENT"),
    ("DISABLE", "ROW", "MOVEMENT"),
)
_STATISTICS = ("CORRELATION", "DEPENDENCY", "CARDINALITY")
# clauses that may follow another one without a comma
_WITHOUT_COMMA = (("PARTITION", "BY"), ("REMOVE", "PARTITIONING"), ("RENAME",), ("AUTO_INCREMENT",))


def read_alter_table(reader: TokenReader) -> AlterTable:
    """Read what follows ALTER TABLE."""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.table_name()
    skip_wait(reader)
    actions: list[AlterAction] = []
    while not reader.at_end:
        actions.extend(_clause(reader))
        if reader.accept(","):
            if reader.at_end:
                raise reader.error("a clause")
        elif not reader.at_end and not any(reader.at(*words) for words in _WITHOUT_COMMA):
            raise reader.error("a comma or the end of the statement")
    return AlterTable(name, tuple(actions), if_exists=if_exists)


def skip_wait(reader: TokenReader) -> None:
    """Skip WAIT n or NOWAIT."""
    if reader.accept("WAIT"):
        reader.integer()
    else:
        reader.accept("NOWAIT")


def skip_algorithm_or_lock(reader: TokenReader) -> bool:
    """Skip ALGORITHM or LOCK with its value, if it comes next."""
    if not reader.accept_any(("ALGORITHM", "LOCK")):
        return False
    reader.accept("=")
    if not reader.accept("DEFAULT"):
        reader.name("an algorithm or a lock")
    return True


def _clause(reader: TokenReader) -> list[AlterAction]:
    if at_partition_clause(reader):
        return [read_partition_clause(reader)]
    read = _CLAUSES.get(reader.peek().word)
    if read is not None:
        reader.take()
        return read(reader)
    action = _without_effect(reader)
    return _table_options(reader) if action is None else [action]


def _add(reader: TokenReader) -> list[AlterAction]:
    column = reader.accept("COLUMN")
    if column and reader.accept("GROUP"):  # OceanBase
        reader.group()
        return [NoEffect("ADD COLUMN GROUP")]
    if not column and reader.accept("SYSTEM", "VERSIONING"):
        return [Versioning(added=True)]
    if not column and _accept_statistics(reader):
        return [NoEffect("ADD STATS_EXTENDED")]
    if not column and at_constraint(reader):
        return [_action(read_constraint(reader))]
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    if reader.accept("("):
        return _add_list(reader, if_not_exists)
    definition = read_column(reader)
    position = read_position(reader)
    return [AddColumn(definition, position.first, position.after, if_not_exists)]


def _add_list(reader: TokenReader, if_not_exists: bool) -> list[AlterAction]:
    actions: list[AlterAction] = []
    while True:
        if at_constraint(reader):
            actions.append(_action(read_constraint(reader)))
        else:
            actions.append(AddColumn(read_column(reader), if_not_exists=if_not_exists))
        if not reader.accept(","):
            reader.expect(")")
            return actions


def _action(constraint: Constraint) -> AlterAction:
    return NoEffect(constraint.clause) if isinstance(constraint, Unbinding) else constraint


def _drop(reader: TokenReader) -> list[AlterAction]:
    if reader.accept("PRIMARY", "KEY"):
        return [DropPrimaryKey()]
    if reader.accept_any((*_INDEX, "CONSTRAINT")):
        reader.accept("IF", "EXISTS")
        return [read_drop_index(reader)]
    if reader.accept("FOREIGN", "KEY"):
        reader.accept("IF", "EXISTS")
        return [DropForeignKey(reader.column_name())]  # old servers allow the table name before it
    if reader.accept("CHECK"):
        reader.accept("IF", "EXISTS")
        reader.name("a constraint name")
        return [NoEffect("DROP CHECK")]
    if reader.accept("SYSTEM", "VERSIONING"):
        return [Versioning(added=False)]
    if reader.accept("PERIOD", "FOR"):
        reader.name("a period name")
        return [NoEffect("DROP PERIOD")]
    if reader.at("STATS_EXTENDED") and (reader.peek(1).word == "IF" or reader.at_name(1)):  # TiDB
        reader.take()
        reader.accept("IF", "EXISTS")
        reader.name("a name of statistics")
        return [NoEffect("DROP STATS_EXTENDED")]
    if reader.accept("COLUMN", "GROUP"):  # OceanBase
        reader.group()
        return [NoEffect("DROP COLUMN GROUP")]
    tablegroup = reader.at("TABLEGROUP")  # in OceanBase no column, unless the table has one of that name
    reader.accept("COLUMN")
    if_exists = reader.accept("IF", "EXISTS") or tablegroup
    name = reader.column_name()
    reader.accept_any(("RESTRICT", "CASCADE"))
    return [DropColumn(name, if_exists)]


def read_drop_index(reader: TokenReader) -> DropIndex | DropPrimaryKey:
    """Read the name of an index to drop; the primary key is the index of that name."""
    if reader.accept("PRIMARY"):
        return DropPrimaryKey()
    name = reader.column_name()  # old servers allow the table name before it
    return DropPrimaryKey() if name.upper() == "PRIMARY" else DropIndex(name)


def _modify(reader: TokenReader) -> list[AlterAction]:
    reader.accept("COLUMN")
    if_exists = reader.accept("IF", "EXISTS")
    definition = read_column(reader)
    position = read_position(reader)
    return [ChangeColumn(definition.name, definition, position.first, position.after, if_exists)]


def _change(reader: TokenReader) -> list[AlterAction]:
    reader.accept("COLUMN")
    if_exists = reader.accept("IF", "EXISTS")
    old_name = reader.column_name()
    definition = read_column(reader)
    position = read_position(reader)
    return [ChangeColumn(old_name, definition, position.first, position.after, if_exists)]


def _alter(reader: TokenReader) -> list[AlterAction]:
    part = reader.accept_any((*_INDEX, *_CONSTRAINT, "COLUMN"))
    reader.accept("IF", "EXISTS")
    name = reader.column_name()
    if part in _INDEX:
        reader.accept("NOT")
        if not reader.accept_any(("VISIBLE", "INVISIBLE", "IGNORED")):
            raise reader.error("VISIBLE, INVISIBLE or IGNORED")
        return [NoEffect("ALTER INDEX")]
    if part in _CONSTRAINT:
        reader.accept("NOT")
        reader.expect("ENFORCED")
        return [NoEffect("ALTER CONSTRAINT")]
    if reader.accept("DROP", "DEFAULT"):
        return [SetDefault(name, None)]
    reader.expect("SET")
    if reader.accept_any(("VISIBLE", "INVISIBLE")):
        return [NoEffect("ALTER COLUMN SET VISIBLE or INVISIBLE")]
    reader.expect("DEFAULT")
    return [SetDefault(name, read_default_text(reader))]


def _rename(reader: TokenReader) -> list[AlterAction]:
    if reader.accept("COLUMN"):
        reader.accept("IF", "EXISTS")
        old_name = reader.column_name()
        reader.expect("TO")
        return [RenameColumn(old_name, reader.column_name())]
    if reader.accept_any(_INDEX):
        return _rename_index(reader)
    if reader.accept_any(("PARTITION", "SUBPARTITION")):  # OceanBase
        reader.name("a partition name")
        reader.expect("TO")
        reader.name("a partition name")
        return [NoEffect("RENAME PARTITION")]
    reader.accept_any(("TO", "AS", "="))
    return [RenameTo(reader.table_name())]


def _rename_index(reader: TokenReader) -> list[AlterAction]:
    reader.accept("IF", "EXISTS")
    old_name = reader.name("an index name")
    reader.expect("TO")
    return [RenameIndex(old_name, reader.name("an index name"))]


def _convert(reader: TokenReader) -> list[AlterAction]:
    reader.expect("TO")
    if not accept_charset(reader):
        raise reader.error("CHARACTER SET")
    charset = read_charset(reader)
    collation = read_collation(reader) if reader.accept("COLLATE") else None
    charset = charset or collation
    if charset is None:
        raise reader.error("the name of a character set")
    return [ConvertCharset(charset)]


def _without_effect(reader: TokenReader) -> AlterAction | None:
    """Read a clause without effect on columns, key, name and rows; return None where none comes next."""
    for words in _PLAIN:
        if reader.accept(*words):
            return NoEffect(" ".join(words))
    if accept_tiflash(reader) or _accept_partition_option(reader) or accept_distribution(reader):
        return NoEffect("where a distributed database stores the table")
    if _accept_secondary_load(reader):
        return NoEffect("SECONDARY_LOAD or SECONDARY_UNLOAD")
    if reader.accept("ORDER", "BY"):
        _read_order(reader)
        return NoEffect("ORDER BY")
    if skip_algorithm_or_lock(reader):
        return NoEffect("ALGORITHM or LOCK")
    if accept_partitioning(reader):
        return NoEffect("PARTITION BY")
    return None


def _table_options(reader: TokenReader) -> list[AlterAction]:
    reader.accept("SET")  # OceanBase
    options = accept_table_options(reader)
    if not options.any_read:
        raise reader.error("a clause of ALTER TABLE")
    actions: list[AlterAction] = [] if options.charset is None else [SetCharset(options.charset)]
    actions += [] if options.comment is None else [SetComment(options.comment)]
    return actions or [NoEffect("table options")]


def _accept_statistics(reader: TokenReader) -> bool:
    """Skip TiDB's STATS_EXTENDED [IF NOT EXISTS] name correlation(a, b); a column has no such type."""
    ahead = 4 if reader.at("STATS_EXTENDED", "IF", "NOT", "EXISTS") else 1
    if not reader.at("STATS_EXTENDED") or reader.peek(ahead + 1).word not in _STATISTICS:
        return False
    for _ in range(ahead):
        reader.take()
    reader.name("a name of statistics")
    reader.take()
    reader.group()
    return True


def _accept_secondary_load(reader: TokenReader) -> bool:
    """Skip HeatWave's SECONDARY_LOAD and SECONDARY_UNLOAD: the rows are copied, and stay as they are."""
    if not reader.accept_any(("SECONDARY_LOAD", "SECONDARY_UNLOAD")):
        return False
    if reader.accept("PARTITION"):
        reader.group()
    if reader.accept("GUIDED") and not reader.accept("ON"):
        reader.expect("OFF")
    return True


def accept_tiflash(reader: TokenReader) -> bool:
    """Skip TiDB's SET TIFLASH REPLICA 2 LOCATION LABELS "rack", or SET TIFLASH MODE FAST."""
    if reader.accept("SET", "TIFLASH", "MODE"):
        reader.name("a mode")
        return True
    if not (reader.accept("SET", "TIFLASH", "REPLICA") or reader.accept("SET", "HYPO", "TIFLASH", "REPLICA")):
        return False
    reader.integer()
    if reader.accept("LOCATION", "LABELS"):
        reader.string()
        while reader.at(",") and reader.at_string(1):
            reader.take()
            reader.string()
    return True


def _accept_partition_option(reader: TokenReader) -> bool:
    """Skip PARTITION p ATTRIBUTES 'x' and PARTITION p PLACEMENT POLICY = q."""
    if not reader.at("PARTITION") or reader.peek(2).word not in ("ATTRIBUTES", "PLACEMENT"):
        return False
    reader.take()
    reader.name("a partition name")
    return accept_table_options(reader).any_read


def _read_order(reader: TokenReader) -> None:
    while True:
        reader.column_name()
        reader.accept_any(("ASC", "DESC"))
        if not (reader.at(",") and reader.at_name(1) and reader.peek(2).word in ("", ",", "ASC", "DESC", ".")):
            return
        reader.take()


_CLAUSES: dict[str, Callable[[TokenReader], list[AlterAction]]] = {
    "ADD": _add,
    "DROP": _drop,
    "MODIFY": _modify,
    "CHANGE": _change,
    "ALTER": _alter,
    "RENAME": _rename,
    "CONVERT": _convert,
}
