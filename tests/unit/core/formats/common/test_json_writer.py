# SPDX-License-Identifier: Apache-2.0
"""JSON texts from columns are what a JSON reader takes for the same values."""

from __future__ import annotations

import json
import random

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_cdc.core.formats.common.json_writer import Room, escaped, object_texts

TEXTS = [
    "",
    "plain",
    'quo"te',
    "back\\slash",
    "\0\x01\x1f\x7f",
    "tab\tline\n",
    "größe 漢 😀",
    "\u2028",
    "null",
    "\\u0041",
]


def objects(rows: list[dict[str, str | None]]) -> list[str | None]:
    names = sorted({name for row in rows for name in row})
    members = [(name, value) for row in rows for name, value in row.items()]
    return texts_of([len(row) for row in rows], names, members).to_pylist()


def texts_of(sizes: list[int], names: list[str], members: list[tuple[str, str | bytes | None]]) -> pa.StringArray:
    room, bounds = Room(np.empty(8, np.uint8)), []
    for _, value in members:
        data = value.encode() if isinstance(value, str) else value or b"of a null"
        begin = room.put(np.frombuffer(data, np.uint8))
        bounds.append((begin, begin + len(data)))
    return object_texts(
        np.array(sizes, np.int64),
        names,
        np.array([names.index(name) for name, _ in members], np.int64),
        room,
        np.array(bounds, np.int32).reshape(-1, 2),
        np.array([value is None for _, value in members], bool),
    )


def test_objects_hold_strings_and_nulls_in_order() -> None:
    rows = [{"a": "x", "b": None, "c": "12"}, {"b": None}, {"c": "", "a": "y"}]
    assert objects(rows) == ['{"a":"x","b":null,"c":"12"}', '{"b":null}', '{"c":"","a":"y"}']


def test_an_object_without_members_is_null_wherever_it_stands() -> None:
    assert objects([{}, {"a": "x"}, {}, {}, {"a": None}, {}]) == [
        *(None, '{"a":"x"}', None),
        *(None, '{"a":null}', None),
    ]
    assert objects([{}]) == [None]
    assert objects([]) == []


def test_any_text_can_be_a_name_and_a_value() -> None:
    rows = [{name: value} for name in TEXTS for value in TEXTS]
    assert [json.loads(text or "") for text in objects(rows)] == rows


def test_random_rows_come_back_as_they_were() -> None:
    chance = random.Random(5)
    pick = [*TEXTS, *TEXTS, None, None, "text of many blocks" * 300]
    rows = [{name: chance.choice(pick) for name in chance.sample(TEXTS, chance.randrange(5))} for _ in range(900)]
    assert [{} if text is None else json.loads(text) for text in objects(rows)] == rows


@pytest.mark.parametrize("data", [b"\xff", b"a\xfe", b"\xc3", b"\xed\xa0\x80", b"\x80"])
def test_what_is_no_text_is_refused_but_where_null_stands(data: bytes) -> None:
    for members in ([("a", data)], [("a", "x"), ("b", data)], [("b", None), ("a", data)]):
        with pytest.raises(pa.ArrowInvalid):
            texts_of([len(members)], ["a", "b"], members)


def test_a_slice_of_an_array_is_escaped_by_its_own_texts() -> None:
    texts = pa.array(['"', "a", "b\\", "", '"'])
    assert escaped(texts.slice(1, 2)).to_pylist() == ["a", "b\\\\"]
    assert escaped(texts.slice(1, 1)).to_pylist() == ["a"]
    assert escaped(texts.slice(5)).to_pylist() == []


def test_escaped_texts_are_what_an_encoder_writes() -> None:
    chance = random.Random(8)
    for _ in range(200):
        texts = ["".join(chance.choices([*map(chr, range(0x80)), '"', "\\", "é", "漢", "😀"], k=chance.randrange(9)))]
        texts += chance.choices(TEXTS, k=chance.randrange(6))
        actual = escaped(pa.array(["before", *texts, ""]).slice(1))
        actual.validate(full=True)
        assert actual.to_pylist() == [msgspec.json.encode(text).decode()[1:-1] for text in [*texts, ""]]


def test_bytes_that_are_no_text_stay_as_they_are_next_to_what_is_escaped() -> None:
    texts = pa.array([b'\xc3"', b"\xa9\\\xff", b"\n"]).view(pa.string())
    assert escaped(texts).view(pa.binary()).to_pylist() == [b'\xc3\\"', b"\xa9\\\\\xff", b"\\n"]


@pytest.mark.parametrize("kinds", [0, 1, 2, 5, 6, 20, 34])
def test_however_many_kinds_of_bytes_need_an_escape_they_get_theirs(kinds: int) -> None:
    chance = random.Random(kinds)
    special = chance.sample([*map(chr, range(32)), '"', "\\"], kinds)
    pick = [*special, *special, "a", "é", "漢", "😀", "n", "u", "\x7f"]
    texts = ["".join(chance.choices(pick, k=chance.randrange(9))) for _ in range(400)]
    whole = pa.array(texts, pa.string())
    for part in (slice(0, 400), slice(100, 300), slice(7, 8), slice(9, 9)):
        actual = escaped(whole[part]).to_pylist()
        assert actual == [msgspec.json.encode(text).decode()[1:-1] for text in texts[part]]
