# SPDX-License-Identifier: Apache-2.0
"""Read the names of Debezium's topics: the connector's prefix, and whose rows a topic has."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.formats.connect.debezium_json import WireFormat

MYSQL = WireFormat({})
POSTGRES = WireFormat({"connector": "postgresql"})
AUDIT = WireFormat({"connector": "postgresql", "ddl_table": "audit log.ddl-é"})


@pytest.mark.parametrize(
    ("wire", "schema_topic", "prefix"),
    [
        (MYSQL, "shopdb", "shopdb"),
        (MYSQL, "eu.shop", "eu.shop"),
        (MYSQL, None, None),
        (POSTGRES, "shop.ctl.ddl_log", "shop"),
        (POSTGRES, "eu.shop.ctl.ddl_log", "eu.shop"),
        (POSTGRES, None, None),
        # no topic of the DDL table: a router gave it another name, or somebody stated the prefix
        (POSTGRES, "shop", None),
        (POSTGRES, "shop_ctl.ddl_log", None),
        (POSTGRES, ".ctl.ddl_log", None),
        # the connector writes an underscore for what no topic may have in its name
        (AUDIT, "shop.audit_log.ddl-_", "shop"),
        (AUDIT, "shop.ctl.ddl_log", None),
    ],
)
def test_the_schema_topic_says_the_prefix(wire: WireFormat, schema_topic: str | None, prefix: str | None) -> None:
    assert wire.topic_prefix(schema_topic) == prefix


@pytest.mark.parametrize(
    ("wire", "topic", "schema_topic", "table"),
    [
        (MYSQL, "shopdb.shop.orders", "shopdb", ("shop", "orders")),
        (MYSQL, "shopdb.shop.orders", None, None),
        (MYSQL, "shopdb.shop", "shopdb", None),
        (MYSQL, "other.shop.orders", "shopdb", None),
        (POSTGRES, "shop.app.orders", "shop.ctl.ddl_log", ("app", "orders")),
        (POSTGRES, "shop.ctl.ddl_log.orders", "shop.ctl.ddl_log", None),
        (POSTGRES, "shop.app.orders", "shop", None),
        (POSTGRES, "shop.app.orders", None, None),
        # the table `Mixed Case`, or one of this name
        (POSTGRES, "shop.app.Mixed_Case", "shop.ctl.ddl_log", None),
    ],
)
def test_a_topic_says_whose_rows_it_has(
    wire: WireFormat, topic: str, schema_topic: str | None, table: tuple[str, str] | None
) -> None:
    assert wire.table_of_topic(topic, schema_topic) == table
