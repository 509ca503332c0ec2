# SPDX-License-Identifier: Apache-2.0
"""A row of the DDL log, as the triggers write it on versions of PostgreSQL that the tests do not run."""

from __future__ import annotations

import json

from airflow_provider_cdc.core.formats.connect.connectors.postgresql_ddl import DdlLog


def test_a_generated_column_is_left_out_whether_stored_or_virtual() -> None:
    columns = [
        {"attnum": number, "name": name, "type": "integer", "notnull": False, "generated": generated, "identity": ""}
        for number, (name, generated) in enumerate([("id", ""), ("stored", "s"), ("virtual", "v")], 1)
    ]
    row = {"id": 1, "event": "install", "tag": "INSTALL", "kind": "table", "object": "app.t", "relid": 16400,
           "columns": json.dumps(columns), "key": "[1]", "schema_name": "app", "table_name": "t"}  # fmt: skip
    log = DdlLog()
    change = log.change("insert", (1, 1, 1), json.dumps(row).encode())
    assert change is not None
    relation = log.relation(change.text)
    assert relation.structure is not None
    assert [column.name for column in relation.structure.columns] == ["id"]
    assert (relation.left_out, relation.generated) == (("stored", "virtual"), (2, 3))
