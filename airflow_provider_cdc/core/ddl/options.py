# SPDX-License-Identifier: Apache-2.0
"""Read table options and partition clauses."""

from __future__ import annotations

from typing import NamedTuple

from airflow_provider_cdc.core.ddl.column_types import accept_charset, read_charset, read_collation
from airflow_provider_cdc.core.ddl.reader import TokenReader, words
from airflow_provider_cdc.core.ddl.tokens import Kind

# Options that do not need "=". With "=" every name is an option, as storage engines define their own.
_WITH_VALUE = words(
    """ENGINE TYPE AUTO_INCREMENT AUTOEXTEND_SIZE AVG_ROW_LENGTH CHECKSUM TABLE_CHECKSUM PAGE_CHECKSUM COMMENT
    COMPRESSION CONNECTION DELAY_KEY_WRITE ENCRYPTION ENGINE_ATTRIBUTE SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE
    INSERT_METHOD KEY_BLOCK_SIZE MAX_ROWS MIN_ROWS PACK_KEYS PASSWORD ROW_FORMAT STATS_AUTO_RECALC STATS_PERSISTENT
    STATS_SAMPLE_PAGES TABLESPACE TRANSACTIONAL STORAGE NODEGROUP SEQUENCE ATTRIBUTES AUTO_ID_CACHE AUTO_RANDOM_BASE
    PRE_SPLIT_REGIONS SHARD_ROW_ID_BITS TTL_ENABLE TTL_JOB_INTERVAL
    TABLEGROUP REPLICA_NUM BLOCK_SIZE USE_BLOOM_FILTER TABLET_SIZE PCTFREE LOCALITY PRIMARY_ZONE DUPLICATE_SCOPE
    PROGRESSIVE_MERGE_NUM"""
)
# where a distributed database of the MySQL family keeps the rows: PolarDB-X, TDSQL
_DISTRIBUTION = words("DBPARTITION TBPARTITION TDSQL_DISTRIBUTED DISTRIBUTED")
_SELECT = frozenset({"SELECT", "AS", "IGNORE", "REPLACE", "WITH", "VALUES", "TABLE"})


class TableOptions(NamedTuple):
    """Hold what options state of a table.

    :param any_read: whether there were any.
    :param charset: default character set, None where they state none.
    :param comment: None where they state none.
    """

    any_read: bool
    charset: str | None
    comment: str | None


def accept_table_options(reader: TokenReader, *, commas: bool = False) -> TableOptions:
    """Read table options.

    :param commas: whether commas may separate them; in ALTER TABLE a comma begins another clause.
    """
    any_read, charset, collation, comment = False, None, None, None
    while True:
        if commas and any_read:
            reader.accept(",")
        default = reader.at("DEFAULT") and reader.peek(1).word in ("CHARACTER", "CHAR", "CHARSET", "COLLATE")
        if default:
            reader.take()
        if accept_charset(reader):
            charset = read_charset(reader)
        elif reader.accept("COLLATE"):
            collation = read_collation(reader)
        elif reader.at("COMMENT") and reader.at_string(2 if reader.peek(1).word == "=" else 1):
            reader.take()
            reader.accept("=")
            comment = reader.string()
        elif not _accept_option(reader):
            return TableOptions(any_read, charset or collation, comment)
        any_read = True


def accept_setting(reader: TokenReader) -> bool:
    """Read ``name = value`` as storage engines define it, if it comes next."""
    if not reader.at_name() or reader.peek(1).word != "=":
        return False
    reader.name()
    reader.take()
    _value(reader)
    return True


def accept_partitioning(reader: TokenReader) -> bool:
    """Skip PARTITION BY with everything that belongs to it, if it comes next."""
    if not reader.accept("PARTITION", "BY"):
        return False
    if not reader.at_name() and not reader.at("KEY"):
        raise reader.error("a partitioning method")
    while not reader.at_end and not reader.at_any(_SELECT) and not reader.at_any((",", ")")):
        skip_item(reader)
    return True


def accept_distribution(reader: TokenReader) -> bool:
    """Skip how PolarDB-X or TDSQL distributes the rows of a table over its nodes, if that comes next."""
    if reader.peek(1).word not in ("=", "BY") and reader.accept_any(("BROADCAST", "SINGLE")):
        return True
    any_read = False
    while reader.at_any(_DISTRIBUTION) and reader.peek(1).word == "BY":
        any_read = True
        reader.take()
        reader.expect("BY")
        reader.name("a function that distributes rows")
        reader.group()
        if reader.at("("):  # TDSQL: the ranges of each node
            reader.group()
        while reader.accept_any(("TBPARTITIONS", "DBPARTITIONS", "STARTWITH", "ENDWITH")):
            reader.integer()
    return any_read


def accept_column_groups(reader: TokenReader) -> bool:
    """Skip WITH COLUMN GROUP (all columns, each column), in which order OceanBase stores columns, if it comes next."""
    if not reader.accept("WITH", "COLUMN", "GROUP"):
        return False
    reader.group()
    return True


def skip_item(reader: TokenReader) -> None:
    """Skip one token or one parenthesised group."""
    if reader.at("("):
        reader.group()
    else:
        reader.take()


def _accept_option(reader: TokenReader) -> bool:
    if reader.accept("UNION"):
        reader.accept("=")
        reader.group()
    elif reader.accept("START", "TRANSACTION"):
        pass
    elif reader.accept("ORGANIZATION"):  # OceanBase: INDEX or HEAP
        reader.accept("=")
        reader.take()
    elif reader.accept("DATA", "DIRECTORY") or reader.accept("INDEX", "DIRECTORY"):
        reader.accept("=")
        reader.string()
    elif reader.accept("PLACEMENT", "POLICY"):  # this and TTL: TiDB
        reader.accept("=")
        _value(reader)
    elif reader.accept("TTL"):
        reader.accept("=")
        _expiry(reader)
    elif reader.accept_any(_WITH_VALUE):
        reader.accept("=")
        _value(reader)
    else:
        return accept_setting(reader)
    return True


def _expiry(reader: TokenReader) -> None:
    """Skip ``column + INTERVAL 3 MONTH``."""
    reader.column_name()
    reader.expect("+")
    reader.expect("INTERVAL")
    if not reader.at_string():
        reader.integer()
    else:
        reader.string()
    reader.name("a unit of time")


def _value(reader: TokenReader) -> None:
    if reader.at("("):
        reader.group()
    elif reader.at_string():
        reader.string()
    elif reader.peek().kind is Kind.NUMBER:
        reader.take()
    elif not reader.accept_any(("DEFAULT", "NULL", "TRUE", "FALSE")):
        reader.name("a value")
