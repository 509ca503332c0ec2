# SPDX-License-Identifier: Apache-2.0
"""Single records as Debezium 3.5 writes them, stated by hand; the forms are those of recorded traffic."""

from __future__ import annotations

import json
from typing import Any

from tests.histories.records import Record

TOPIC = "src"
_TYPES = {"int": ("INT", 4, None), "bigint": ("BIGINT", -5, None), "varchar": ("VARCHAR", 12, 20)}


def _source(table: str | None, pos: int, mark: str | None, time: int, **more: Any) -> dict[str, Any]:
    initial = mark not in (None, "incremental")
    return {
        "version": "3.5.0.Final",
        "connector": "mysql",
        "name": TOPIC,
        "ts_ms": time,
        "snapshot": mark,
        "db": "shop",
        "table": table,
        "server_id": 0 if initial else 7,
        "gtid": None,
        "file": "mysql-bin.000001",
        "pos": pos,
        "row": 0,
        **more,
    }


def _record(topic: str, partition: int, time: int, key: Any, value: Any) -> Record:
    return Record(topic, partition, time, None if key is None else json.dumps(key).encode(), json.dumps(value).encode())


def ddl(
    text: str,
    pos: int,
    *,
    time: int = 0,
    mark: str | None = None,
    table: str | None = None,
    columns: dict[str, str] | None = None,
    key: tuple[str, ...] = (),
    **source: Any,
) -> Record:
    """Return a record of the schema topic.

    :param mark: ``source.snapshot``, None for a statement of the stream.
    :param columns: the structure of ``table`` afterwards, types by name.
    :param source: further members of ``source``.
    """
    changes = []
    if columns is not None:
        listed = [_column(number, name, kind, name in key) for number, (name, kind) in enumerate(columns.items(), 1)]
        stated = {"defaultCharsetName": "utf8mb4", "primaryKeyColumnNames": list(key), "columns": listed}
        changes = [{"type": "CREATE" if mark else "ALTER", "id": f'"shop"."{table}"', "table": stated}]
    value = {
        "source": _source(table, pos, mark, time, **source),
        "ts_ms": time,
        "databaseName": "shop",
        "ddl": text,
        "tableChanges": changes,
    }
    return _record(TOPIC, 0, time, {"databaseName": "shop"}, value)


def _column(number: int, name: str, kind: str, in_key: bool) -> dict[str, Any]:
    spelled, jdbc, length = _TYPES[kind]
    return {
        "name": name,
        "jdbcType": jdbc,
        "typeName": spelled,
        "typeExpression": spelled,
        "charsetName": "utf8mb4" if kind == "varchar" else None,
        "length": length,
        "position": number,
        "optional": not in_key,
        "autoIncremented": False,
        "generated": False,
    }


def snapshot_ddl(
    pos: int,
    tables: dict[str, tuple[dict[str, str], tuple[str, ...]]],
    *,
    time: int = 0,
    rows: bool = True,
    **source: Any,
) -> list[Record]:
    """Return what a snapshot writes into the schema topic: tables by name, each with its columns and key.

    :param rows: whether the snapshot has rows; the last record says so when it has none.
    :param source: further members of ``source``.
    """
    texts: list[tuple[str, str | None]] = [("SET character_set_server=utf8mb4", None)]
    texts += [(f"DROP TABLE IF EXISTS `shop`.`{table}`", table) for table in tables]
    texts += [("DROP DATABASE IF EXISTS `shop`", None), ("CREATE DATABASE `shop`", None), ("USE `shop`", None)]
    records = [ddl(text, pos, time=time, mark="true", table=table, **source) for text, table in texts]
    for number, (table, (columns, key)) in enumerate(tables.items()):
        parts = [f"`{name}` {'varchar(20)' if kind == 'varchar' else kind}" for name, kind in columns.items()]
        parts += [f"PRIMARY KEY ({', '.join(key)})"] if key else []
        mark = "last" if not rows and number == len(tables) - 1 else "true"
        text = f"CREATE TABLE `{table}` ({', '.join(parts)})"
        records.append(ddl(text, pos, time=time, mark=mark, table=table, columns=columns, key=key, **source))
    return records


def row(
    op: str,
    table: str,
    pos: int,
    after: dict[str, Any] | None,
    *,
    before: dict[str, Any] | None = None,
    key: tuple[str, ...] = (),
    mark: str | None = None,
    partition: int = 0,
    time: int = 0,
    total_order: int | None = None,
    order: int = 1,
    built: int | None = None,
    **source: Any,
) -> Record:
    """Return a row record; ``mark`` is ``source.snapshot``, further arguments are members of ``source``.

    :param total_order: number of the change in its transaction, as ``provide.transaction.metadata`` adds it; ``order``
        is that among the changes of its table.
    :param built: when the tool built the record, in microseconds since the epoch.
    """
    image = after if after is not None else before
    named = {name: image[name] for name in key} if key and image is not None else None
    value = {"before": before, "after": after, "source": _source(table, pos, mark, time, **source), "op": op}
    if built is not None:
        value["ts_us"] = built
    if total_order is not None:
        value["transaction"] = {"id": "0-1-7", "total_order": total_order, "data_collection_order": order}
    return _record(f"{TOPIC}.shop.{table}", partition, time, named, value)
