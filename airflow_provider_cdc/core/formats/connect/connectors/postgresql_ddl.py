# SPDX-License-Identifier: Apache-2.0
"""Read the rows of the table that event triggers write the DDL of a PostgreSQL database into."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from airflow_provider_cdc.core.formats.connect.connectors.contract import LoggedChange, schema_and_name
from airflow_provider_cdc.core.formats.connect.connectors.postgresql_types import (
    column_type,
    constant,
    element,
    is_built_in,
    is_unread,
    prints_numbers,
)
from airflow_provider_cdc.core.model.relation import RelationChange, RelationEvent, RelationKind
from airflow_provider_cdc.core.model.schema import Column, Default, TableSchema

DDL_TABLE = "ddl_table"
DDL_TABLE_MEANING = "SCHEMA.NAME of the table that event triggers write each DDL into (default ctl.ddl_log)"

_DEFAULT = "ctl.ddl_log"
_PART = r'(?:"((?:[^"]|"")+)"|([^".]+))'
_IDENTITY = re.compile(rf"{_PART}\.{_PART}(?:\.{_PART})?")
_FILLS = frozenset({"CREATE TABLE AS", "SELECT INTO"})  # with rows, before the triggers run
_CREATES = _FILLS | {"CREATE TABLE"}
_PLAIN_ALTER = re.compile(r"\s*ALTER\s+TABLE\b(?!.*\busing\b)[^;]*;?\s*", re.IGNORECASE | re.DOTALL)
_PARTITIONS = re.compile(r"\bPARTITION\s+(?:BY|OF)\b", re.IGNORECASE)
_MOVES = re.compile(r"\b(?:ATTACH|DETACH)\s+PARTITION\b", re.IGNORECASE)
# changes of a type after which stored values are what they were
_KEEPS_LABELS = re.compile(
    r'\s*ALTER\s+(?:DOMAIN\b.*|TYPE\s+(?:"(?:[^"]|"")+"|[^\s".]|\.)+\s+'
    r"(?:ADD\s+VALUE|OWNER|SET|RENAME\s+TO)\b[^;]*;?\s*)",
    re.IGNORECASE | re.DOTALL,
)
_ROW_DIGITS = 10_000_000_000


class _Column(msgspec.Struct, gc=False):
    """One column as the catalogue has it; ``kind`` and ``base`` only where our own triggers wrote it."""

    attnum: int
    name: str
    type: str
    notnull: bool = False
    default: str | None = None
    missing: str | None = None
    generated: str = ""
    identity: str = ""
    kind: str | None = None
    base: str | None = None


class _Row(msgspec.Struct, gc=False):
    """One row; of JSON columns the connector writes the text, another converter may write what it holds."""

    id: int
    event: str
    tag: str | None = None
    kind: str | None = None
    object: str | None = None
    relid: int | None = None
    columns: Any = None
    key: Any = None
    rewrite: int | None = None
    query: str | None = None
    schema_name: str | None = None
    table_name: str | None = None
    relkind: str | None = None
    partition: bool | None = None
    children: Any = None
    via_root: bool | None = None
    persistence: str | None = None
    replica_identity: str | None = None
    system_identifier: str | None = None
    error: str | None = None


_read = msgspec.json.Decoder(_Row).decode
_parse = msgspec.json.decode


class DdlLog:
    """The table with the DDL of a database.

    :param table: its name as a pipeline states it, None for the default.
    :raises ConfigurationError: it is not a schema and a name.
    """

    has_rows = False

    def __init__(self, table: str | None = None) -> None:
        self.name = schema_and_name(DDL_TABLE, table or _DEFAULT)

    def change(self, op: str, position: tuple[int, int, int], after: bytes | None) -> LoggedChange | None:
        """Return the schema change that a row stands for, None where no table is another one by it.

        Rows that a snapshot reads say what happened before it: they stand before its position, in their own order.

        :raises ValueError: it is not a row that the triggers write.
        """
        if op not in ("insert", "snapshot", "incremental") or after is None:
            return None
        row = _read(after)
        relation = _relation(row)
        if relation is None:
            return None
        read = op != "insert"
        if read:
            position = position[0], max(0, position[1] - 1), row.id % _ROW_DIGITS
        statement = row.query or f"{row.tag or row.event} {row.object or ''}".rstrip()
        return LoggedChange(position, statement, relation.database, relation.table or None, after.decode(), read)

    def relation(self, text: str) -> RelationChange:
        """Read what :meth:`change` gave.

        :raises ValueError: it is not such a text.
        """
        relation = _relation(_read(text.encode()))
        if relation is None:
            raise ValueError("a row of the log that changes no table")
        return relation


def _relation(row: _Row) -> RelationChange | None:
    """Return what a row says of a table, None where it says nothing."""
    if row.error is not None:
        return _change(row, RelationEvent.FAILED, *_names(row, needed=False), text=row.error)
    if row.event == "sql_drop":
        return None if row.kind != "table" else _change(row, RelationEvent.DROPPED, *_names(row))
    if row.event == "table_rewrite":
        return _change(row, RelationEvent.REWRITTEN, *_names(row), rewrite=row.rewrite or 0)
    if row.kind in ("type", "domain"):
        return _relabelled(row)
    if row.event not in ("ddl_command_end", "install") or row.kind not in ("table", "table column"):
        return None
    return None if row.columns is None or row.persistence == "t" else _described(row)


def _relabelled(row: _Row) -> RelationChange | None:
    """Return the change of a type after which labels in stored rows may be others."""
    if not (row.tag or "").startswith("ALTER") or _KEEPS_LABELS.fullmatch(row.query or ""):
        return None
    if row.table_name is None:  # then the row is about the type, with its number
        row.relid = None
    names = ("", "") if row.table_name is None else _names(row)
    return _change(row, RelationEvent.RELABELLED, *names, types=(row.object or "",))


def _described(row: _Row) -> RelationChange:
    columns = [msgspec.convert(item, _Column) for item in _plain(row.columns)]
    left_out = {column.attnum for column in columns if column.generated or _is_unread(column)}
    shown = [column for column in columns if column.attnum not in left_out]
    numbers = {column.name: column.attnum for column in columns}
    key = [numbers[part] if isinstance(part, str) else part for part in _plain(row.key) or ()]
    query, children = row.query or "", _plain(row.children)
    return _change(
        row,
        RelationEvent.DESCRIBED,
        *_names(row),
        kind=_kind(row),
        structure=TableSchema(tuple(map(_column, shown)), tuple(key)),
        created=row.event != "install" and row.tag in _CREATES,
        rows_before=row.tag in _FILLS,
        plain=_PLAIN_ALTER.fullmatch(query) is not None,
        filled=tuple(column.attnum for column in shown if _is_filled(column)),
        printed=tuple(column.attnum for column in shown if prints_numbers(column.base or column.type)),
        left_out=tuple(column.name for column in columns if column.attnum in left_out),
        generated=tuple(column.attnum for column in columns if column.generated),
        types=tuple(sorted({column.type for column in columns if not is_built_in(column.type)})),
        children=None if row.relkind != "p" else tuple(children or ()),
        via_root=row.via_root,
        moves=_MOVES.search(query) is not None,
        by_index=row.replica_identity == "i" and bool(key) and row.relkind != "p",
    )


def _column(column: _Column) -> Column:
    source = column.base or column.type
    kind = column_type(source)
    default = Default("constant", None)
    if column.missing is not None:
        text = element(column.missing)
        value = None if text is None else constant(text, kind, source)
        default = Default("expression", column.missing) if text is not None and value is None else default
        default = Default("constant", value) if value is not None else default
    return Column(column.attnum, column.name, kind, nullable=not column.notnull, default=default)


def _is_filled(column: _Column) -> bool:
    """Return whether stored rows got another value than NULL, if the table was rewritten as the column was added."""
    may_have_default = column.kind == "d" or (column.kind is None and not is_built_in(column.type))
    return column.default is not None or bool(column.identity) or may_have_default


def _is_unread(column: _Column) -> bool:
    return column.kind == "c" or is_unread(column.base or column.type)


def _kind(row: _Row) -> RelationKind:
    """Return how rows are named; other triggers than ours do not say it, their statement does."""
    if row.relkind == "p":
        return RelationKind.ROOT
    if row.partition:
        return RelationKind.PARTITION
    unsaid = row.relkind is None and row.tag == "CREATE TABLE" and _PARTITIONS.search(row.query or "")
    return RelationKind.ROOT if unsaid else RelationKind.TABLE


def _names(row: _Row, *, needed: bool = True) -> tuple[str, str]:
    """Return schema and table."""
    if row.schema_name is not None and row.table_name is not None:
        return row.schema_name, row.table_name
    match = _IDENTITY.fullmatch(row.object or "")
    if match is not None:
        schema, table = (match[number] or match[number + 1] for number in (1, 3))
        return schema.replace('""', '"'), table.replace('""', '"')
    if needed:
        raise ValueError("a schema change whose object is not a schema and a table")
    return "", ""


def _plain(value: Any) -> Any:
    return _parse(value) if isinstance(value, str) else value


def _change(row: _Row, event: RelationEvent, database: str, table: str, **more: Any) -> RelationChange:
    return RelationChange(event, row.id, row.system_identifier or "", row.relid, database, table, **more)
