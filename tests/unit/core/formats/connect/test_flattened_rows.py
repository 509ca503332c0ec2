# SPDX-License-Identifier: Apache-2.0
"""Rows that ExtractNewRecordState flattened: where their place stands, how deletes are written, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.contract import Format, Headers, Records, needs_headers
from airflow_provider_cdc.core.formats.registry import open_format
from tests.unit.core.formats.connect.flattened_rows import ADDED, FIELDS, OPTIONS, POSITION, compact, flat

OTHERS = [
    {"ts_ms": 1_700_000_000_000},
    {"status": "BEGIN", "id": "file=a.1,pos=4", "event_count": None, "data_collections": None, "ts_ms": 4},
    {
        "source": {"db": "shop", "table": "t", "file": "b.000001", "pos": 4},
        "databaseName": "shop",
        "ddl": "DROP TABLE t",
    },
]


def decoded(
    fmt: Format, *values: Any, headers: Headers = None, key: bytes | None = b'{"id":1}'
) -> list[dict[str, Any]]:
    raw = [v if v is None or isinstance(v, bytes) else compact(v) for v in values]
    count = len(raw)
    listed = [] if headers is None else [headers] * count
    records = Records("p.shop.t", 0, list(range(count)), [1000] * count, [key] * count, raw, listed)
    return fmt.decode(records).to_pylist()


def changes(*values: Any, headers: Headers = None, **options: str) -> list[dict[str, Any]]:
    stated = {name.replace("_", "."): value for name, value in options.items()}
    return decoded(open_format("debezium-json", {**OPTIONS, **stated}), *values, headers=headers)


@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize(("op", "name"), [("r", "snapshot"), ("c", "insert"), ("u", "update"), ("d", "delete")])
def test_a_row_has_its_image_operation_table_and_place(op: str, name: str, spaced: bool) -> None:
    value = flat({"id": 1, "v": "a"}, op=op, deleted=str(op == "d").lower())
    (change,) = changes(json.dumps(value).encode() if spaced else compact(value))
    assert (change["kind"], change["op"], change["database"], change["table"]) == ("row", name, "shop", "t")
    assert change["position"] == POSITION
    assert change["source_time"].timestamp() == pytest.approx(1_700_000_000.123)
    image, other = ("before", "after") if op == "d" else ("after", "before")
    assert json.loads(change[image]) == {"id": 1, "v": "a"}
    assert change[other] is None


def test_tokens_of_columns_stay_as_they_were_received() -> None:
    columns = b'{"a":1.10,"b":1e400,"c": "\\u00e9\xc3\xa9 \\",\\"__deleted\\":","g":{"x":1,"__deleted":"true"}'
    added = compact(ADDED)[1:]
    for value in (columns + b"," + added, columns + b" , " + added):
        (change,) = changes(value)
        assert change["kind"] == "row"
        assert json.loads(change["after"]) == json.loads(columns + b"}")
        assert '"a":1.10,"b":1e400,' in change["after"]


def test_a_column_may_be_called_as_a_member_of_a_message() -> None:
    columns = {"id": 1, "op": "x", "source": "web", "payload": {"a": 1}, "schema": 2, "ts_ms": 5, "before": None}
    (change,) = changes(flat(columns))
    assert (change["op"], json.loads(change["after"])) == ("insert", columns)


def test_a_row_without_columns_is_one() -> None:
    assert changes(ADDED)[0]["after"] == "{}"


def test_other_messages_pass_as_they_are() -> None:
    kinds = [change["kind"] for change in changes(*OTHERS)]
    assert kinds == ["progress", "transaction", "schema"]


def enclosed(value: Any, form: str) -> Any:
    return (
        {"schema": {"schema": None}, "schemaId": {"schemaId": 7}}.get(form, {}) | {"payload": value} if form else value
    )


@pytest.mark.parametrize("form", ["", "schema", "schemaId", "payload"])
@pytest.mark.parametrize("options", [{}, OPTIONS])
def test_other_messages_are_read_in_each_envelope(form: str, options: dict[str, str]) -> None:
    fmt = open_format("debezium-json", options)
    kinds = [change["kind"] for change in decoded(fmt, *(enclosed(value, form) for value in OTHERS))]
    assert kinds == ["progress", "transaction", "schema"]


@pytest.mark.parametrize("form", ["schema", "schemaId", "payload"])
def test_a_flattened_row_is_read_in_each_envelope(form: str) -> None:
    (change,) = changes(enclosed(flat({"id": 1}), form))
    assert (change["kind"], change["after"], change["position"]) == ("row", '{"id":1}', POSITION)
    (change,) = changes(enclosed(flat({"id": 1}, source_pos=None), form))
    assert (change["kind"], change["table"]) == ("error", "t")


def test_an_envelope_among_flattened_rows_is_read() -> None:
    source = {"db": "shop", "table": "t", "file": "mysql-bin.000012", "pos": 4711, "row": 2}
    (change,) = changes({"before": None, "after": {"id": 1}, "op": "c", "source": source})
    assert (change["op"], change["position"]) == ("insert", POSITION)


def test_names_and_prefixes_are_those_of_the_settings() -> None:
    fields = "op:kind, db, source.table:t_name ,source.file,source.pos:at,source.row,source.snapshot"
    row = {
        "id": 1, "__deleted": "false", "cdc_kind": "u", "cdc_db": "shop", "cdc_t_name": "t",
        "cdc_source_file": "b.000012", "cdc_at": 4711, "cdc_source_row": 2, "cdc_source_snapshot": None,
    }  # fmt: skip
    (change,) = changes(row, add_fields=fields, add_fields_prefix="cdc_")
    assert (change["op"], change["table"], change["position"]) == ("update", "t", POSITION)
    assert change["after"] == '{"id":1}'


def test_without_a_prefix_a_member_is_called_as_its_field() -> None:
    row = {"id": 1, "__deleted": "false", **{name[2:]: value for name, value in ADDED.items() if name != "__deleted"}}
    (change,) = changes(row, add_fields_prefix="")
    assert (change["kind"], change["after"], change["position"]) == ("row", '{"id":1}', POSITION)


PLAIN = [(name, None if value is None else str(value).encode()) for name, value in ADDED.items() if name != "__deleted"]
AS_JSON = [(name, json.dumps(value).encode()) for name, value in ADDED.items() if name != "__deleted"]
DESCRIBED = [(name, compact({"schema": {"type": "x"}, "payload": ADDED[name]})) for name, _ in PLAIN]


@pytest.mark.parametrize("headers", [PLAIN, AS_JSON, DESCRIBED])
def test_the_place_may_stand_in_headers(headers: list[tuple[str, bytes | None]]) -> None:
    options = {"delete.tombstone.handling.mode": "rewrite", "add.headers": FIELDS}
    fmt = open_format("debezium-json", options)
    assert needs_headers(fmt)
    value = {"id": 1, "__deleted": "false"}
    (change,) = decoded(fmt, value, headers=[("__op", b"x"), ("other", b"1"), *headers])
    assert (change["op"], change["table"], change["position"]) == ("insert", "t", POSITION)
    assert change["source_time"].timestamp() == pytest.approx(1_700_000_000.123)
    snapshot = [(name, b"first" if name == "__source_snapshot" else cell) for name, cell in PLAIN]
    (change,) = decoded(fmt, value, headers=[*snapshot, ("__op", b"r")])
    assert change["op"] == "snapshot"
    (change,) = decoded(fmt, value)
    assert (change["kind"], change["error_code"]) == ("error", "record.malformed")


def test_without_headers_in_the_settings_none_are_read() -> None:
    assert not needs_headers(open_format("debezium-json", OPTIONS))


def test_the_embedded_schema_without_what_is_added_gives_the_columns() -> None:
    types = [
        {"field": "id", "type": "int64", "optional": False},
        {"field": "after", "type": "struct", "fields": [{"field": "x", "type": "int32"}]},
    ]
    added = [{"field": name, "type": "string", "optional": True} for name in ADDED]
    schema = {"type": "struct", "fields": [*types, *added], "name": "p.shop.t.Value"}
    value = {"schema": schema, "payload": flat({"id": 1, "after": None})}
    fmt = open_format("debezium-json", OPTIONS)
    both = decoded(fmt, value, value)
    assert [change["after"] for change in both] == ['{"id":1,"after":null}'] * 2
    description = fmt.describe(both[1]["columns"])
    assert (description.names, description.key) == (("id", "after"), ("id",))
    inferred = fmt.infer(description)
    assert inferred is not None and [column.name for column in inferred.columns] == ["id", "after"]


def test_the_order_in_the_transaction_may_be_added() -> None:
    fields = f"{FIELDS},connector,total_order,transaction.data_collection_order"
    more = {"connector": "mariadb", "total_order": 7, "transaction_data_collection_order": 3}
    (change,) = changes(flat({"id": 1}, **more), add_fields=fields)
    assert change["position"].endswith(".0000000007")
    assert change["transaction_order"] == 3


def test_what_else_is_added_is_no_column() -> None:
    (change,) = changes(
        flat({"id": 1}, ts_ns=5, version="3.6", source_query=None), add_fields=f"{FIELDS},ts_ns,version,source.query"
    )
    assert (change["kind"], change["after"]) == ("row", '{"id":1}')


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (flat({"id": 1}, op="d"), "op d with __deleted false"),
        (flat({"id": 1}, deleted="true"), "op c with __deleted true"),
        (flat({"id": 1}, op=None), "without its op"),
        (flat({"id": 1}, source_gtid="a:1"), "the member __source_gtid behind __deleted"),
        (flat({"id": 1}, source_pos="x"), "not a Debezium message"),
        (flat({"id": 1}, source_pos=None), "not a Debezium message"),
        (flat({"id": 1}, deleted="maybe"), "not a Debezium message"),
        (compact(flat({"id": 1}))[:-1], "not a Debezium message"),
        (compact(flat({"id": 1})).replace(b"1,", b"1x,", 1), "not a Debezium message"),
        ({"id": 1, "v": "a"}, "ExtractNewRecordState"),
        ({"id": 1, "ts_ms": 5}, "ExtractNewRecordState"),
    ],
)
def test_a_row_that_is_not_as_the_settings_say_is_an_error(value: Any, said: str) -> None:
    (change,) = changes(value)
    assert (change["kind"], change["error_code"]) == ("error", "record.malformed")
    assert said in change["error"]


def test_a_row_that_cannot_be_read_names_its_table() -> None:
    (change,) = changes(flat({"id": 1}, source_pos=None))
    assert (change["database"], change["table"]) == ("shop", "t")


@pytest.mark.parametrize("value", [None, b'{"schema":null,"payload":null}'])
def test_a_record_without_a_value_where_none_is_written_is_an_error(value: bytes | None) -> None:
    (change,) = changes(value)
    assert (change["kind"], change["error_code"]) == ("error", "record.tombstone_alone")


@pytest.mark.parametrize(
    "mode",
    [
        {"delete.tombstone.handling.mode": "rewrite-with-tombstone"},
        {"delete.handling.mode": "rewrite", "drop.tombstones": "false"},
    ],
)
def test_the_record_behind_a_delete_needs_nothing(mode: dict[str, str]) -> None:
    fmt: Any = open_format("debezium-json", {**mode, "add.fields": FIELDS})
    kinds = [change["kind"] for change in decoded(fmt, flat({"id": 1}, op="d", deleted="true"), None)]
    assert sorted(kinds) == ["ignored", "row"]
    assert fmt.may_delete(compact(flat({"id": 1}, op="d", deleted="true")))
    assert not fmt.may_delete(compact(flat({"id": 1})))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"add.fields": FIELDS}, "delete.tombstone.handling.mode: is not stated"),
        ({"add.fields": FIELDS, "delete.tombstone.handling.mode": "tombstone"}, "'tombstone' loses deletes"),
        ({"add.fields": FIELDS, "delete.tombstone.handling.mode": "drop"}, "'drop' loses deletes"),
        ({"add.fields": FIELDS, "delete.handling.mode": "none"}, "delete.handling.mode: 'none' loses deletes"),
        ({"add.fields": FIELDS, "delete.handling.mode": "rewrite", "drop.tombstones": "no"}, "drop.tombstones: 'no'"),
        ({"add.fields": "op,a.b.c", "delete.handling.mode": "rewrite"}, "'a.b.c' is not a field"),
        ({"add.fields": "op:a:b", "delete.handling.mode": "rewrite"}, "'op:a:b' is not a field"),
        ({"add.fields.prefix": "x"}, "state its add.fields or add.headers too"),
        ({"delete.tombstone.handling.mode": "rewrite"}, "state its add.fields or add.headers too"),
        ({**OPTIONS, "add.fields": "op,table"}, "lacks source.db, source.file, source.pos, source.row,"),
    ],
)  # fmt: skip
def test_settings_that_lose_rows_or_their_order_are_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_format("debezium-json", options)
    assert said in str(caught.value)


def test_fields_and_headers_count_together() -> None:
    apart = {**OPTIONS, "add.fields": "op,db,table", "add.headers": FIELDS.partition("table,")[2]}
    assert needs_headers(open_format("debezium-json", apart))
    assert not needs_headers(open_format("debezium-json", OPTIONS))


@pytest.mark.parametrize(
    "value",
    [
        {"id": 1, "ts_ms": 5},
        {"ts_ms": 5, "note": "a"},
        {"id": "a", "aggregate_type": "order", "aggregate_id": 5},
        {"id": "a", "status": "BEGIN", "total": 5},
    ],
)
def test_a_row_without_options_is_no_other_message(value: Any) -> None:
    """A heartbeat, notification or transaction mark has no other members."""
    (change,) = decoded(open_format("debezium-json"), value)
    assert change["kind"] == "error"
