# SPDX-License-Identifier: Apache-2.0
"""An option that decides names of tables empties none when it changes, and may be taken back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import DataError
from tests.histories.debezium_records import row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.histories.stories import Put, Said, messages, script_of

COLUMNS = {"id": "int", "v": "int"}
KEY = ("id",)


def insert(number: int, pos: int) -> Record:
    return row("c", "Orders", pos, {"id": number, "v": number}, key=KEY)


@pytest.mark.parametrize(("before", "after"), [({}, "1"), ({"lower_case_table_names": "0"}, "1")])
def test_a_mistyped_option_is_refused_and_taken_back(before: dict[str, str], after: str, log: Log, lake: Path) -> None:
    script = Script(log, lake, options=before)
    script.send(*snapshot_ddl(100, {"Orders": (COLUMNS, KEY)}), insert(1, 110))
    script.sync()
    script.options = {"lower_case_table_names": after}
    script.send(insert(2, 120))
    with pytest.raises(DataError) as caught:
        script.sync()
    assert caught.value.code == "source.names_changed"
    assert "There are 1: shop.Orders" in caught.value.message
    assert script.rows("shop", "Orders") == Counter({(1, 1): 1})
    script.options = before
    script.sync()
    assert script.rows("shop", "Orders") == Counter({(1, 1): 1, (2, 2): 1})


def test_an_option_may_be_stated_where_no_table_with_rows_changes_its_name(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"orders": (COLUMNS, KEY)}))
    script.send(row("c", "orders", 110, {"id": 1, "v": 1}, key=KEY))
    script.sync()
    script.options = {"lower_case_table_names": "1"}
    script.send(row("c", "orders", 120, {"id": 2, "v": 2}, key=KEY))
    script.sync()
    assert script.rows("shop", "orders") == Counter({(1, 1): 1, (2, 2): 1})


def test_rows_with_names_in_upper_case_refuse_that_the_server_has_none(log: Log, lake: Path) -> None:
    script = Script(log, lake, options={"lower_case_table_names": "1"})
    script.send(*snapshot_ddl(100, {"Orders": (COLUMNS, KEY)}), insert(1, 110))
    with pytest.raises(DataError, match=r"shop\.Orders.* lower_case_table_names: 1 never stores") as caught:
        script.sync()
    assert caught.value.code == "source.option_contradicted"
    script.options = {"lower_case_table_names": "0"}
    script.sync()
    assert script.rows("shop", "Orders") == Counter({(1, 1): 1})


CREATE = "CREATE TABLE t (id INT PRIMARY KEY, v INT)"


def test_another_tenant_is_refused_where_a_table_holds_rows(log: Log, lake: Path) -> None:
    rows = (Put("t", CREATE, {"id": number, "v": number}) for number in (1, 2))
    sent = messages("oms-default", [Said(CREATE, "t", CREATE), *rows])
    script = script_of("oms-default", log, lake)
    records = [Record(f"src.{one.topic}", 0, time, one.key, one.value, one.headers) for time, one in sent]
    script.send(*records[:2])
    script.sync()
    before, script.options = script.options, {**script.options, "tenant": "sale"}
    script.send(*records[2:])
    with pytest.raises(DataError) as caught:
        script.sync()
    assert caught.value.code == "source.names_changed"
    assert "tenant: not stated before, sale now" in caught.value.message
    script.options = before
    script.sync()
    assert script.rows("shop", "t") == Counter({(1, 1): 1, (2, 2): 1})
