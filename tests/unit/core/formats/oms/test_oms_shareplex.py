# SPDX-License-Identifier: Apache-2.0
"""OMS's SharePlex method: the vendor's samples, partial updates, scn as place, local times."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.contract import Progress, Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.model.schema import ColumnType

SEEDS = Path(__file__).parents[5] / ".." / "shared" / "seeds"


def message(op: str, data: Any, key: Any = None, **meta: Any) -> dict[str, Any]:
    reported = {
        "op": op,
        "table": "shop.t",
        "time": "2020-11-25T00:01:02",
        "posttime": "2020-11-25T00:01:03",
        "scn": "160623366200042",
        "trans": "tx1",
        **meta,
    }
    return {
        "data": data,
        "meta": {name: value for name, value in reported.items() if value is not None},
        **({} if key is None else {"key": key}),
    }


def changes(*values: Any, **options: str) -> list[dict[str, Any]]:
    raw = [v if v is None or isinstance(v, bytes) else json.dumps(v).encode() for v in values]
    count = len(raw)
    records = Records("t", 0, list(range(count)), [1000] * count, [None] * count, raw)
    return open_format("oms-shareplex", options).decode(records).to_pylist()


def samples() -> list[bytes]:
    result = sorted(SEEDS.glob("003_*.txt"))
    if not result:
        pytest.skip("the seed document is not there")
    text = result[0].read_text(encoding="utf-8")
    part = text[text.index("SharePlex JSON 消息格式") : text.index("DefaultExtendColumnType JSON 消息格式\n\n数据同步")]
    return [b.encode() for b in re.findall(r"^    (\{\n.*?^    \})", part, re.DOTALL | re.MULTILINE)]


def test_the_vendors_samples_are_an_insert_an_update_and_a_delete() -> None:
    # their scn, 123456789, is not a time with a counter
    insert, update, delete = changes(*samples(), sequenceEnabled="false")
    assert [c["op"] for c in (insert, update, delete)] == ["insert", "update", "delete"]
    assert {(c["database"], c["table"]) for c in (insert, update, delete)} == {("mock_database", "mock_table")}
    assert insert["after"].count("E-308") == 2
    assert json.loads(insert["after"], parse_float=str) == json.loads(delete["before"], parse_float=str)
    assert json.loads(update["before"], parse_float=str) == json.loads(insert["after"], parse_float=str)
    # the column that the sample changes is none of the row's: it is reported, so that nothing is lost in silence
    assert open_format("oms-shareplex").describe(update["columns"]).names[-1] == "string"


def test_an_update_is_the_row_before_with_the_changed_columns() -> None:
    (change,) = changes(
        b'{"data":{"d":2.50},"meta":{"op":"upd","table":"s.t","scn":1606233662},"key":{"id":1,"d":1.10}}'
    )
    assert change["before"] == '{"id":1,"d":1.10}'
    assert change["after"] == '{"id":1,"d":2.50}'


def test_only_an_update_may_lack_columns() -> None:
    wire = open_format("oms-shareplex")
    actual = changes(message("ins", {"id": 1}), message("upd", {"v": 2}, {"id": 1}), message("del", {"id": 1}))
    assert [wire.describe(change["columns"]).complete for change in actual] == [True, False, True]
    assert wire.describe(actual[1]["columns"]).names == ("id", "v")
    assert wire.infer(wire.describe(actual[0]["columns"])) is None


def test_positions_rise_with_the_counter_although_it_is_not_padded() -> None:
    actual = changes(*(message("ins", {"id": 1}, scn=f"1606233662{n}") for n in (1, 2, 9, 10, 99, 100, 99999)))
    positions = [change["position"] for change in actual]
    assert positions == sorted(positions)
    assert len(set(positions)) == len(positions)


def test_rows_of_the_full_load_stand_before_every_change() -> None:
    load, change = changes(message("ins", {"id": 1}, scn=None), message("ins", {"id": 1}))
    assert (load["op"], change["op"]) == ("snapshot", "insert")
    assert load["position"] < change["position"]


def test_without_sequences_order_is_by_second_and_the_time_of_writing() -> None:
    wire = open_format("oms-shareplex", {"sequenceEnabled": "false"})
    assert (wire.order, wire.splits_partitions) == ("clock", False)
    (change,) = changes(message("upd", {"v": 1}, {"id": 1}, scn=None), sequenceEnabled="false")
    assert change["position"] is None
    assert change["tool_time"].timestamp() == 1_606_262_463
    (bad,) = changes(message("ins", {"id": 1}, posttime="soon"), sequenceEnabled="false")
    assert bad["kind"] == "error"


def test_times_are_local_in_the_stated_zone() -> None:
    (change,) = changes(message("ins", {"id": 1}), timezone="+08:00")
    assert change["source_time"].timestamp() == 1_606_233_662
    wire = open_format("oms-shareplex", {"timezone": "+08:00"})
    value = json.dumps(message("ins", {"id": 1})).encode()
    assert wire.progress_of("t", None, value) == Progress(1_606_233_662_000, heartbeat=False)
    for other in (None, b"", b"{}", json.dumps(message("ins", {}, time=None)).encode()):
        assert wire.progress_of("t", None, other) is None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[]",
        b"{}",
        message("ins", None),
        message("ins", {}),
        message("ins", [1]),
        message("del", {}),
        message("upd", {"v": 1}),
        message("upd", {"v": 1}, {}),
        message("upd", None, {"id": 1}),
        message("INS", {"id": 1}),
        message("ins", {"id": 1}, table="t"),
        message("ins", {"id": 1}, table=".t"),
        message("ins", {"id": 1}, table="s."),
        message("ins", {"id": 1}, time="yesterday"),
        message("ins", {"id": 1}, time="2020-02-30T00:00:00"),
        message("ins", {"id": 1}, scn="x"),
        message("ins", {"id": 1}, scn="123456789"),  # as the samples have it
        message("ins", {"id": 1}, scn="1606233662000042"),
        message("ins", {"id": 1}, scn=1.5),
        message("del", {"id": 1}, scn=None),
        b"\x01" + json.dumps(message("ins", {"id": 1})).encode(),
        json.dumps(message("ins", {"id": "\u00e9"}), ensure_ascii=False).encode("latin-1"),
    ],
)
def test_what_is_no_message_is_one_error(value: Any) -> None:
    (change,) = changes(value)
    assert change["kind"] == "error"
    assert change["raw"] is not None


def test_a_bare_control_byte_in_rowid_is_let_pass() -> None:
    value = json.dumps(message("ins", {"id": 1}, rowid="s.t-3\x011129")).encode().replace(b"\\u0001", b"\x01")
    assert [change["kind"] for change in changes(value)] == ["row"]


def test_values_stand_as_oms_writes_them_by_the_stated_type() -> None:
    wire = open_format("oms-shareplex")
    actual = {kind: wire.encoding_of("c", ColumnType(kind), None).encoding for kind in ("decimal", "blob", "timestamp")}
    assert actual == {"decimal": Encoding.NUMBER, "blob": Encoding.BASE64, "timestamp": Encoding.EPOCH_SECONDS}


def test_wrong_options_are_reported_all_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_format("oms-shareplex", {"sequenceEnabled": "yes", "timezone": "Mars", "dbType": "x"})
    assert len(caught.value.problems) == 3


def test_an_image_is_read_alike_whatever_the_one_before_it_was() -> None:
    keys = [b'{"id":1,"v":2}', b'{"v":2,"id":1}', b'{"id":1, "v":2}', b'{"id":1,"v":9,"v":2}', b'{"id":1}']
    head = json.dumps(message("upd", {"v": 3}, "KEY"))
    values = [head.encode().replace(b'"KEY"', key) for key in keys]
    reported = ("kind", "before", "after", "columns")
    alone = [{name: changes(value)[0][name] for name in reported} for value in values]
    assert [change["after"] for change in alone[:2]] == ['{"id":1,"v":3}', '{"v":3,"id":1}']
    for first in values:
        actual = [{name: change[name] for name in reported} for change in changes(first, *values)]
        assert actual[1:] == alone
