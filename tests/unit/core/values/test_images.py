# SPDX-License-Identifier: Apache-2.0
"""Test batches of images: names, absent members, invalid images, several blocks."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values import images as images_module
from airflow_provider_cdc.core.values.images import Failure, Field, type_images

NAMES = [
    "",
    " ",
    "a b",
    '"',
    "\\",
    "'",
    "`",
    "class",
    "f0",
    "f1",
    "é",
    "😀",
    "A",
    "a",
    "\n",
    "\x7f",
    "a.b",
    "$",
    "__init__",
    "None",
]


def test_any_column_name() -> None:
    fields = [Field(Encoded(name, Encoding.NUMBER), ColumnType("int"), pa.int32()) for name in NAMES]
    image = {name: i for i, name in enumerate(NAMES)}
    for ascii_only in (True, False):
        result = type_images(pa.array([json.dumps(image, ensure_ascii=ascii_only)] * 3), fields)
        assert [column.to_pylist() for column in result.columns] == [[i] * 3 for i in range(len(NAMES))]
        assert result.failures == []


def test_one_member_for_two_columns() -> None:
    fields = [
        Field(Encoded("a", Encoding.NUMBER), ColumnType("int"), pa.int32()),
        Field(Encoded("a", Encoding.TEXT), ColumnType("varchar", 9), pa.string()),
    ]
    result = type_images(pa.array(['{"a":5}', '{"a":null}', "{}"]), fields)
    assert [column.to_pylist() for column in result.columns] == [[5, None, None], ["5", None, None]]


def test_the_last_of_equal_members_wins() -> None:
    field = Field(Encoded("a", Encoding.NUMBER), ColumnType("int"), pa.int32())
    images = ['{"a":1,"a":2}', '{"a":"x","a":3}', '{"a":4,"a":"x"}', '{"a":5,"\\u0061":6}']
    result = type_images(pa.array(images), [field])
    assert result.columns[0].to_pylist() == [2, 3, None, 6]
    assert result.failures == [Failure(2, "a", "number_invalid")]


@pytest.mark.parametrize(
    "image", [b"", b" ", b"[1]", b"null", b"5", b'{"a":1', b'{"a":1}{}', b'{"a":01}', b"\xff", b'{"a" 1}', b"{a:1}"]
)
def test_an_image_that_is_not_an_object_fails_as_a_whole(image: bytes) -> None:
    fields = [Field(Encoded(name, Encoding.NUMBER), ColumnType("int"), pa.int32()) for name in ("a", "b")]
    result = type_images(pa.array([b'{"a":1,"b":2}', image, b'{"a":3,"b":4}'], pa.large_binary()), fields)
    assert [column.to_pylist() for column in result.columns] == [[1, None, 3], [2, None, 4]]
    assert result.failures == [Failure(1, "", "image_invalid")]
    assert result.absent == [None, None]


def test_nothing() -> None:
    field = Field(Encoded("a", Encoding.NUMBER), ColumnType("int"), pa.int32())
    empty = type_images(pa.array([], pa.string()), [field])
    assert (len(empty.columns[0]), empty.columns[0].type, empty.absent) == (0, pa.int32(), [None])
    assert type_images(pa.array(['{"a":1}']), []).columns == []


def test_many_blocks_and_a_slice() -> None:
    field = Field(Encoded("a", Encoding.NUMBER), ColumnType("int"), pa.int32())
    images = [f'{{"a":{i}}}' for i in range(40_000)]
    images[20_000], images[39_999] = '{"a":1.5}', "{}"
    result = type_images(pa.array(["x", *images]).slice(1), [field])
    expected: list[int | None] = list(range(40_000))
    expected[20_000] = expected[39_999] = None
    assert result.columns[0].to_pylist() == expected
    assert result.failures == [Failure(20_000, "a", "fraction_lost")]
    assert [i for i, flag in enumerate(result.absent[0].to_pylist()) if flag] == [39_999]


def test_a_text_that_a_tool_could_not_read_is_kept_and_counted() -> None:
    field = Field(Encoded("a", Encoding.TEXT), ColumnType("varchar", 20), pa.string())
    plain = type_images(
        pa.array(['{"a":"caf\u00e9"}', '{"a":"\ufffd\ufffd gbk"}', '{"a":"\\ufffd"}', '{"a":null}']), [field]
    )
    assert plain.columns[0].to_pylist() == ["caf\u00e9", "\ufffd\ufffd gbk", "\ufffd", None]
    assert plain.lossy == {"replacement_character": 2}
    next_to_an_invalid_one = type_images(pa.array(['{"a":"\ufffd"}', '{"a":{}}']), [field])
    assert next_to_an_invalid_one.lossy == {"replacement_character": 1}


def test_large_images_are_read_in_blocks_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    class Watched:
        """Record how many bytes of images are requested at a time."""

        def __init__(self, texts: list[str]) -> None:
            self.texts, self.asked = pa.array(texts), list[int]()
            self.nbytes = self.texts.nbytes

        def __len__(self) -> int:
            return len(self.texts)

        def slice(self, offset: int, length: int, /) -> pa.Array:
            part = self.texts.slice(offset, length)
            self.asked.append(part.nbytes)
            return part

    monkeypatch.setattr(images_module, "_BLOCK_BYTES", 5_000)
    texts = [json.dumps({"a": str(number) * 1_000}) for number in range(10)]
    watched = Watched(texts)
    typed = type_images(watched, [Field(Encoded("a", Encoding.TEXT), ColumnType("text"), pa.string())])
    assert typed.columns[0].to_pylist() == [str(number) * 1_000 for number in range(10)]
    assert len(watched.asked) == 3 and max(watched.asked) < 5_000
