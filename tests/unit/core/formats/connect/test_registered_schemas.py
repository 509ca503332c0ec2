# SPDX-License-Identifier: Apache-2.0
"""Many schemas of a registry: only those that records name are asked for, and only those of rows are compiled."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply
from airflow_provider_cdc.core.formats.connect import registered_schemas
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.schema_registry.client import ask
from tests.cross_format.connect_avro import AvroConverter
from tests.services.registered_schemas import ServedSchemas

MANY = 10_000


def records(converter: AvroConverter, tables: int) -> Records:
    """Return one row of each of some tables."""
    keys, values = [], []
    for number in range(tables):
        columns = [{"field": "id", "type": "int64"}, {"field": f"v{number}", "type": "string"}]
        row = {"id": number, f"v{number}": "x"}
        source = {"connector": "mysql", "db": "shop", "table": f"t{number}", "file": "b.000001", "pos": 4, "row": 0}
        fields = [{"field": name, "type": "struct", "fields": columns} for name in ("before", "after")]
        payload = {"before": None, "after": row, "source": source, "op": "c"}
        keys.append(framed(converter, f"Key{number}", columns[:1], {"id": number}))
        values.append(framed(converter, f"t{number}", fields, payload))
    return Records("s.shop.t", 0, list(range(tables)), [1000] * tables, keys, values)


def framed(converter: AvroConverter, name: str, fields: list[dict[str, Any]], payload: dict[str, Any]) -> bytes | None:
    return converter.framed(json.dumps({"schema": {"fields": fields}, "payload": payload}).encode(), name)


def test_of_many_schemas_only_those_that_records_name_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    compile_ = registered_schemas.compiled
    monkeypatch.setattr(registered_schemas, "compiled", lambda *some: compiled.append(some) or compile_(*some))
    converter, fmt = AvroConverter(), open_format("debezium-avro")
    sent = records(converter, 30)
    others = {identity: {"schema": '"string"'} for identity in range(20_000, 20_000 + MANY)}
    server = ServedSchemas({**others, **converter.schemas})
    try:
        supply = SchemaSupply(lambda ids: ask({"url": server.url}, ids))
        for known in supply.ahead_of([sent, sent], fmt):
            kinds = [change["kind"] for change in fmt.decode(known).to_pylist()]
            assert kinds == ["row"] * 30
    finally:
        server.stop()
    assert server.asked == dict.fromkeys(converter.schemas, 1)
    assert len(converter.schemas) == 60
    assert len(compiled) == 30, "a key's schema says its columns, and none of its values is read"


def test_a_schema_that_cannot_be_compiled_is_refused_by_name() -> None:
    tree: Any = "long"
    for number in range(200):
        tree = {"type": "record", "name": f"r{number}", "fields": [{"name": "op", "type": ["null", tree]}]}
    fmt: Any = open_format("debezium-avro")
    fmt.learn({7: {"schema": json.dumps(tree)}})
    (change,) = fmt.decode(Records("t", 0, [0], [1], [None], [b"\0\0\0\0\7" + b"\2" * 300])).to_pylist()
    assert change["error_code"] == "record.schema_unreadable"
    assert "the registered schema 7 cannot be read" in change["error"]
