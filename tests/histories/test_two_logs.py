# SPDX-License-Identifier: Apache-2.0
"""Two connectors whose topics one pipeline reads: places in their logs have nothing in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import DataError
from tests.histories.debezium_records import ddl, row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

CREATE = ddl(
    "CREATE TABLE shop.t (id int NOT NULL, v varchar(20), PRIMARY KEY (id))", 4, table="t",
    columns={"id": "int", "v": "varchar"}, key=("id",),
)  # fmt: skip


def at(pos: int, key: int, value: str, name: str = "src", **more: Any) -> Record:
    """Return an upsert that a connector wrote."""
    return row("c", "t", pos, {"id": key, "v": value}, key=("id",), name=name, time=pos, **more)


def refused(script: Script) -> DataError:
    with pytest.raises(DataError) as caught:
        script.sync()
    assert caught.value.code == "source.second_log"
    return caught.value


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    script = Script(log, lake)
    script.send(CREATE, at(20, 1, "a"))
    return script


def test_a_second_connector_is_refused_by_name_before_anything_is_applied(script: Script) -> None:
    script.send(at(10, 1, "b", "other", partition=1))
    error = refused(script)
    assert "'other'" in error.message and "'src'" in error.message
    assert not script.states and script.rows("shop", "t") is None


def test_in_a_later_batch_and_among_records_of_one_partition(script: Script) -> None:
    script.sync()
    script.send(at(30, 2, "b"), at(15, 1, "c", "other"), at(40, 3, "d"))
    assert refused(script).where["record"] == "src.shop.t/0:2"
    assert refused(script).where["record"] == "src.shop.t/0:2"
    assert script.rows("shop", "t") == {(1, "a"): 1}


def test_a_statement_of_another_connector_is_refused_too(script: Script) -> None:
    script.send(ddl("TRUNCATE TABLE shop.t", 30, table="t", name="other"))
    refused(script)


def test_a_connector_that_took_the_place_of_another_is_stated(script: Script) -> None:
    script.sync()
    script.send(at(30, 2, "b", "src2"))
    refused(script)
    script.options["connectors"] = "src, src2"
    script.sync()
    assert script.rows("shop", "t") == {(1, "a"): 1, (2, "b"): 1}
    script.options.clear()
    script.send(at(40, 3, "c", "src2"))
    script.sync()
    assert script.states_of("shop", "t") == ["ok"]


def test_stated_names_are_all_that_may_come(script: Script) -> None:
    script.options["connectors"] = "src2"
    assert refused(script).where["source.name"] == "src"


def test_records_without_a_name_are_of_any_log(script: Script) -> None:
    script.send(at(30, 2, "b", name=None))  # type: ignore[arg-type]
    script.sync()
    assert script.rows("shop", "t") == {(1, "a"): 1, (2, "b"): 1}


def test_an_undecodable_record_between_hides_no_name(script: Script) -> None:
    script.policy["quarantine_limit"] = 1
    script.send(Record("src.shop.t", 0, 0, b"{", b"{"), at(10, 1, "b", "other"))
    assert refused(script).where["record"] == "src.shop.t/0:2"


def test_dtle_names_its_job_in_rows(log: Log, lake: Path) -> None:
    script = Script(log, lake, "dtle-json", None)
    for number, name in enumerate(["one", "two"]):
        script.send(_dtle(name, number + 4))
    assert refused(script).where["source.name"] == "two"


def _dtle(name: str, pos: int) -> Record:
    fields = [{"type": "int32", "optional": False, "field": "id"}]
    after = {"type": "struct", "field": "after", "optional": True, "fields": fields}
    binlog = {"gtid": None, "file": "bin.000001", "pos": pos, "row": 0, "snapshot": False, "db": "shop", "table": "t"}
    source = {"version": "0.0.1", "name": name, **binlog}
    payload = {"before": None, "after": {"id": pos}, "source": source, "op": "c", "ts_ms": 1}
    value = {"schema": {"type": "struct", "fields": [after]}, "payload": payload}
    key = {"schema": {"type": "struct", "fields": fields}, "payload": {"id": pos}}
    return Record(f"{name}.shop.t", 0, 0, json.dumps(key).encode(), json.dumps(value).encode())
