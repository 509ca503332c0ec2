# SPDX-License-Identifier: Apache-2.0
"""Read the partition and tablespace clauses of ALTER TABLE."""

from __future__ import annotations

from airflow_provider_cdc.core.ddl.alter_actions import AlterAction, NoEffect, PartitionRows
from airflow_provider_cdc.core.ddl.options import skip_item
from airflow_provider_cdc.core.ddl.reader import TokenReader, words
from airflow_provider_cdc.core.ddl.tokens import Kind

_VERBS = words(
    """ADD DROP TRUNCATE EXCHANGE DISCARD IMPORT REORGANIZE COALESCE REBUILD ANALYZE CHECK OPTIMIZE REPAIR
    CONVERT"""
)
_MAINTENANCE = frozenset({"QUICK", "EXTENDED", "FAST", "MEDIUM", "CHANGED", "USE_FRM"})


# clauses of TiDB's partitions by interval, and whether they remove rows
_INTERVALS = {
    ("FIRST", "PARTITION"): True,
    ("LAST", "PARTITION"): False,
    ("MERGE", "FIRST", "PARTITION"): False,
    ("SPLIT", "MAXVALUE", "PARTITION"): False,
}


def at_partition_clause(reader: TokenReader) -> bool:
    """Return whether a clause about partitions or the tablespace comes next."""
    if any(reader.at(*words, "LESS", "THAN") for words in _INTERVALS):
        return True
    return reader.at_any(_VERBS) and reader.peek(1).word in ("PARTITION", "SUBPARTITION", "TABLE", "TABLESPACE")


def read_partition_clause(reader: TokenReader) -> AlterAction:
    """Read a clause about partitions; clauses that remove or add rows write no row events."""
    for parts, removes in _INTERVALS.items():
        if reader.accept(*parts, "LESS", "THAN"):
            reader.group()
            return PartitionRows("drop") if removes else NoEffect(" ".join(parts))
    verb = reader.take().word
    if verb == "CONVERT":
        return _convert(reader)
    if verb in ("DISCARD", "IMPORT"):
        if not reader.accept("TABLESPACE"):
            reader.expect("PARTITION")
            _names(reader)
            reader.expect("TABLESPACE")
        return PartitionRows(verb.lower())
    if not (verb in ("DROP", "TRUNCATE") and reader.accept("SUBPARTITION")):  # OceanBase
        reader.expect("PARTITION")
    reader.accept_any(("NO_WRITE_TO_BINLOG", "LOCAL"))
    if verb == "EXCHANGE":
        reader.name("a partition name")
        reader.expect("WITH", "TABLE")
        other = reader.table_name()
        if not reader.accept("WITH", "VALIDATION"):
            reader.accept("WITHOUT", "VALIDATION")
        return PartitionRows("exchange", other)
    if verb in ("DROP", "TRUNCATE"):
        reader.accept("IF", "EXISTS")
        _names(reader)
        reader.accept("UPDATE", "GLOBAL", "INDEXES")
        return PartitionRows(verb.lower())
    _without_effect(reader, verb)
    return NoEffect(f"{verb} PARTITION")


def _convert(reader: TokenReader) -> AlterAction:
    """Read CONVERT of MariaDB: a table becomes a partition, or a partition becomes a table."""
    if reader.accept("TABLE"):
        other = reader.table_name()
        reader.expect("TO", "PARTITION")
        reader.name("a partition name")
        if reader.accept("VALUES"):
            while not reader.at_end:
                skip_item(reader)
        return PartitionRows("attach", other)
    reader.expect("PARTITION")
    reader.name("a partition name")
    reader.expect("TO", "TABLE")
    return PartitionRows("detach", reader.table_name())


def _without_effect(reader: TokenReader, verb: str) -> None:
    if verb == "COALESCE":
        reader.integer()
    elif verb == "ADD":
        reader.accept("IF", "NOT", "EXISTS")
        if reader.accept("PARTITIONS"):
            reader.integer()
        else:
            reader.group()
    elif verb == "REORGANIZE":
        if reader.at_name():
            _names(reader)
            reader.expect("INTO")
            reader.group()
    else:
        _names(reader)
        while reader.accept_any(_MAINTENANCE) or reader.accept("FOR", "UPGRADE"):
            continue


def _names(reader: TokenReader) -> None:
    if reader.accept("ALL"):
        return
    reader.name("a partition name")
    while reader.at(",") and reader.peek(1).kind in (Kind.NAME, Kind.QUOTED, Kind.DOUBLE_QUOTED):
        reader.take()
        reader.name("a partition name")
