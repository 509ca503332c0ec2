# SPDX-License-Identifier: Apache-2.0
"""Schema changes that a sensor waits for: by kind, by table, and only where a topic shows them."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_cdc.batch.coming_ddl import DdlKind
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.watch.schema_change import KINDS, SchemaChangeCondition


def pipeline(**source: Any) -> CdcPipeline:
    base = {"topics": ["t"], "format": "debezium-json", "schema_topic": "ddl"}
    return CdcPipeline.from_dict(
        {"name": "shop", "source": {**base, **source}, "sink": {"type": "delta", "root": "/lake"}}
    )


CHANGES = [
    {"table": "shop.a", "kind": "mapping", "text": "ALTER TABLE a ADD x INT"},
    {"table": "shop.a", "kind": "destructive", "text": "ALTER TABLE a DROP x"},
    {"table": None, "kind": "unknown", "text": "CREATE SOMETHING"},
]


def counted(**arguments: Any) -> tuple[bool, list[str]]:
    answer = SchemaChangeCondition(pipeline(), **arguments).judge(None, CHANGES)
    return answer.reached, [change["kind"] for change in answer.document["changes"]]


def test_kinds_and_tables_decide() -> None:
    assert counted() == (True, ["destructive", "unknown"])
    assert counted(kinds=["mapping"]) == (True, ["mapping"])
    assert counted(kinds=["barrier"]) == (False, [])
    assert counted(kinds=["destructive"], tables=["shop.b"]) == (False, [])
    assert counted(tables=["shop.b"]) == (True, ["unknown"]), "it may be of that table"


def test_kinds_are_those_of_the_plan() -> None:
    assert set(KINDS) == {str(kind) for kind in DdlKind}


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="destructive, unknown, barrier, mapping"):
        SchemaChangeCondition(pipeline(), ["dangerous"])
    with pytest.raises(ConfigurationError, match=r"source\.schema_topic"):
        SchemaChangeCondition(pipeline(schema_topic=None))
