# SPDX-License-Identifier: Apache-2.0
"""Compare what records say of their columns: the same text for the same columns, whatever stood before them."""

from __future__ import annotations

import json
from itertools import permutations

import msgspec
import pytest

from airflow_provider_cdc.core.formats.connect import envelope
from airflow_provider_cdc.core.formats.connect.columns import ColumnTexts, KeyNames, MemberNames, describe, row_columns
from airflow_provider_cdc.core.formats.connect.envelope import EnvelopeReader, Message

TABLE = ("shop", "t")


@pytest.mark.parametrize("name", ["v", "größe", 'a"b', "a\\b", "a\nb", "", "😀", "f0"])
def test_member_names_are_listed_whatever_they_are(name: str) -> None:
    known = MemberNames()
    image, other = json.dumps({name: 1, "id": 2}).encode(), json.dumps({name: 1, "id": 2, "x": {"y": [1]}}).encode()
    for value, names in [
        (image, {name, "id"}),
        (image, {name, "id"}),
        (image, {name, "id"}),
        (other, {name, "id", "x"}),
    ]:
        assert known.names(value) == tuple(sorted(names))
    assert known.names(image) == tuple(sorted({name, "id"}))


def test_repeated_member_names_are_one_object() -> None:
    known = MemberNames()
    actual = [known.names(b'{"a":%d,"b":"}"}' % number) for number in range(5)]
    assert all(names is actual[-1] for names in actual[1:])


def test_a_member_more_or_less_is_never_overlooked() -> None:
    known = MemberNames()
    for _ in range(3):
        assert known.names(b'{"a":1,"b":2}') == ("a", "b")
    assert known.names(b'{"a":1}') == ("a",)
    assert known.names(b'{"a":1,"b":2,"c":3}') == ("a", "b", "c")
    assert known.names(b'{"b":1,"a":2}') == ("a", "b")
    assert known.names(b"{}") == ()


@pytest.mark.parametrize("image", [b"", b"{", b"[1]", b"1", b'{"a":1} x', b'{"a":}'])
def test_what_is_no_object_is_refused_also_after_good_ones(image: bytes) -> None:
    known = MemberNames()
    for _ in range(3):
        known.names(b'{"a":1}')
    with pytest.raises(msgspec.DecodeError):
        known.names(image)


def test_a_keys_columns_keep_their_order() -> None:
    known = KeyNames()
    for _ in range(3):
        assert known.names(b'{"b":1,"a":2}') == ("b", "a")
        assert known.names(b'{"a":1,"b":2}') == ("a", "b")
        assert known.names(b'{"a":1}') == ("a",)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        (b'{"b":1,"a":2}', ("b", "a")),
        (b'{"a": 1, "b": 2}', ("a", "b")),
        (b'{"a":1,"b":2,"a":3}', ("a", "b")),
        (b'{"b":2,"a":1,"b":3}', ("b", "a")),
        (b'{"a":1}', ("a",)),
        (b'{"a":1,"b":2,"c":3}', ("a", "b", "c")),
        (b'{"schema":null,"payload":{"b":1,"a":2}}', ("b", "a")),
    ],
)
def test_a_key_of_several_columns_is_read_as_if_it_were_the_first(key: bytes, names: tuple[str, ...]) -> None:
    known = KeyNames()
    usual = [known.names(b'{"a":%d,"b":"x"}' % number) for number in range(4)]
    assert usual[0] == ("a", "b")
    assert all(actual is usual[0] for actual in usual)
    assert [known.names(key) for _ in range(3)] == [names] * 3
    assert known.names(b'{"a":9,"b":"x"}') == ("a", "b")


def test_an_envelope_is_looked_through_whatever_stood_before() -> None:
    known = KeyNames()
    for _ in range(3):
        assert known.names(b'{"schema":1,"payload":{"schema":2,"payload":3}}') == ("schema", "payload")
    assert known.names(b'{"schema":1,"payload":{"id":2}}') == ("id",)


def key_of(*names: str, payload: bytes | None = None) -> bytes:
    schema = json.dumps({"type": "struct", "fields": [{"type": "int32", "field": name} for name in names]}).encode()
    return b'{"schema":%b,"payload":%b}' % (schema, payload or json.dumps(dict.fromkeys(names, 1)).encode())


def test_keys_with_schema_are_recognised_by_it() -> None:
    known = KeyNames()
    for names in (("a",), ("a",), ("b", "a"), ("a", "b"), ("payload",), ("a",), ("schema", "payload")):
        assert known.names(key_of(*names)) == names
    assert known.names(b'{"payload":{"c":1},"schema":{}}') == ("c",)
    assert known.names(b'{"schema":{"fields":[]},"payload":{"d":1}}') == ("d",)
    assert known.names(b'{"schema":{"type":"struct"},"payload":{}}') == ()


@pytest.mark.parametrize(
    "key", [key_of("a", payload=b"garbage"), key_of("a", payload=b'{"b":1}'), key_of("b", "a", payload=b'{"a":1}')]
)
def test_what_stands_behind_a_keys_schema_changes_nothing(key: bytes) -> None:
    fresh, used = KeyNames(), KeyNames()
    used.names(key_of("a"))
    used.names(key_of("b", "a"))
    assert fresh.names(key) == used.names(key)


def test_the_text_does_not_depend_on_the_rows_before() -> None:
    typed = ('{"type":"int32","field":"id"}',)
    rows = [
        (None, b'{"id":1}', ("shop", "t"), b'{"id":1,"v":2}'),
        (None, None, ("shop", "t"), b'{"id":1,"v":2}'),
        (None, b'{"id":1}', ("shop", "u"), b'{"v":1,"id":2}'),
        (typed, b'{"id":1}', ("shop", "t"), b""),
    ]

    def texts(order: list[int]) -> dict[int, str]:
        known = ColumnTexts(no_key=())
        numbers = {index: known.number(*rows[index]) for index in order for _ in range(3)}
        return {index: known.texts[number] for index, number in numbers.items()}

    expected = texts([0, 1, 2, 3])
    assert all(texts(list(order)) == expected for order in permutations(range(4)))
    assert (describe(expected[0]).names, describe(expected[0]).key) == (("id", "v"), ("id",))
    assert expected[0] == expected[2]


class Payload(Message):
    n: int | None = None


def test_messages_are_read_with_and_without_envelope_in_any_order() -> None:
    reader = EnvelopeReader(Payload)

    def enveloped(number: int, name: str) -> bytes:
        schema = {"fields": [{"field": "after", "fields": [{"field": name, "type": "int32"}]}]}
        return json.dumps({"schema": schema, "payload": {"n": number}}).encode()

    for _ in range(2):
        assert reader.read(b'{"n":1}')[1].n == 1
        for name in ("a", "b"):
            columns, message = reader.read(enveloped(2, name))
            assert (json.loads(columns[0])["field"], message.n) == (name, 2)
        assert reader.read(b'{"schema":null,"payload":{"n":3}}') == (None, Payload(n=3))
        columns, message = reader.read(b'{"payload":{"n":4},"schema":{"fields":[]}}')
        assert (columns, message.n) == (None, 4)


def schema_message(name: str, number: int) -> bytes:
    schema = {"fields": [{"field": "after", "fields": [{"field": name, "type": "int32"}]}], "name": name}
    return json.dumps({"schema": schema, "payload": {"n": number}}).encode()


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Note the embedded schemas that are parsed."""
    schemas: list[bytes] = []

    def noted(schema: bytes) -> tuple[str, ...] | None:
        schemas.append(schema)
        return row_columns(schema)

    monkeypatch.setattr(envelope, "row_columns", noted)
    return schemas


def read_by_turns(reader: EnvelopeReader[Payload], tables: range, turns: int) -> None:
    for number in range(turns):
        for table in tables:
            columns, message = reader.read(schema_message(f"c{table}", number))
            assert columns is not None
            assert (f'"c{table}"' in columns[0], message.n) == (True, number)


def test_the_schemas_of_many_tables_that_change_by_turns_are_each_parsed_once(parsed: list[bytes]) -> None:
    read_by_turns(EnvelopeReader(Payload), range(10_000), turns=3)
    assert len(parsed) == 10_000


def test_with_more_schemas_than_are_remembered_those_that_are_stay(parsed: list[bytes]) -> None:
    reader = EnvelopeReader(Payload, limit=10 * len(schema_message("c000", 0)))
    read_by_turns(reader, range(100, 130), turns=5)
    assert sum(len(prefix) for prefix, _ in reader._prefixes.values()) <= 10 * len(schema_message("c000", 0))
    assert len(parsed) <= 30 + 4 * 20  # all once, and those that were not remembered again


def test_a_schema_that_takes_the_place_of_another_counts_once(parsed: list[bytes]) -> None:
    def message(number: int) -> bytes:
        schema = {"fields": [{"field": "after", "fields": [{"field": f"c{number:02d}"}]}], "name": "x" * 300}
        return json.dumps({"schema": schema, "payload": {"n": number}}).encode()

    reader = EnvelopeReader(Payload, limit=3 * len(message(0)))
    for number in range(50):
        for _ in range(2):
            columns, read = reader.read(message(number))
            assert columns is not None
            assert (json.loads(columns[0])["field"], read.n) == (f"c{number:02d}", number)
    assert len(parsed) == 50
    assert len(reader._prefixes) == 1


def test_schemas_that_end_alike_are_not_taken_for_each_other() -> None:
    reader, end = EnvelopeReader(Payload), "x" * 300
    for number, name in enumerate(["a", "b", "a", "b", "c", "a"]):
        schema = {"fields": [{"field": "after", "fields": [{"field": name, "type": "int32"}]}], "name": end}
        columns, message = reader.read(json.dumps({"schema": schema, "payload": {"n": number}}).encode())
        assert columns is not None
        assert (json.loads(columns[0])["field"], message.n) == (name, number)


@pytest.mark.parametrize(
    "value",
    [
        b'{"schema":{"fields":[]},"payload":{"n":1}}}',
        b'{"schema":{"fields":[]},"payload":{"n":1}',
        b'{"schema":{"fields":[]},"payload":{"n":1},',
        b'{"schema":{"fields":[]},"payload":{"n":"1"}}',
        b'{"schema":{"fields":[]},"payload":{"n":1},"x":{}}',
        b'{"schema":{"fields":[]},"payload":}',
    ],
)
def test_a_message_means_the_same_where_its_beginning_is_known(value: bytes) -> None:
    fresh, used = EnvelopeReader(Payload), EnvelopeReader(Payload)
    used.read(b'{"schema":{"fields":[]},"payload":{"n":1}}')

    def read(reader: EnvelopeReader[Payload]) -> object:
        try:
            return reader.read(value)
        except msgspec.DecodeError as error:
            return str(error)

    assert read(fresh) == read(used)
