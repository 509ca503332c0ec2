# SPDX-License-Identifier: Apache-2.0
"""Names of helper tables, as the tools' own pages state them."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.helper_tables import not_captured, tool_of


@pytest.mark.parametrize(
    ("table", "tool"),
    [
        ("_orders_gho", "gh-ost"),
        ("_orders_ghc", "gh-ost"),
        ("_orders_new", "pt-online-schema-change or Spirit"),
        ("___orders_new", "pt-online-schema-change or Spirit"),
        ("lhmn_orders", "Large Hadron Migrator"),
        ("__osc_new_orders", "OnlineSchemaChange"),
        ("tp_4711_ogt_orders", "Alibaba's DMS"),
        ("orders_new", None),
        ("_gho", None),
        ("orders", None),
        ("_new", None),
    ],
)
def test_helpers_are_known_by_their_names(table: str, tool: str | None) -> None:
    assert tool_of(TableName("shop", table), "RENAME TABLE a TO b") == tool


def test_gh_ost_marks_its_statements() -> None:
    statement = "rename /* gh-ost */ table `s`.`copy` to `s`.`orders`"
    reason = not_captured(TableName("s", "copy"), statement)
    assert reason == "the helper table of gh-ost is not captured: capture `copy`, then rebuild"
