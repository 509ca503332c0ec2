# SPDX-License-Identifier: Apache-2.0
"""Compiled Avro against fastavro: recorded frames, and random values of random schemas."""

from __future__ import annotations

import io
import json
import math
import random
from pathlib import Path
from typing import Annotated, Any

import fastavro
import msgspec
import numpy as np
import pytest

from airflow_provider_cdc.core.formats.connect.avro_code import compiled
from airflow_provider_cdc.core.formats.connect.avro_columns import read_together
from airflow_provider_cdc.core.formats.connect.avro_types import resolve, row_columns
from airflow_provider_cdc.core.formats.connect.frames import HEAD, schema_id
from airflow_provider_cdc.core.formats.connect.messages import Payload
from airflow_provider_cdc.core.formats.connect.registered_schemas import AvroSchema
from tests.sample import amount
from tests.services.capture import read
from tests.services.registered_schemas import schemas_of

CAPTURES = Path(__file__).parents[4] / "captures" / "data"
PRIMITIVES = ("int", "long", "string", "bytes", "boolean", "float", "double")


def without_logical(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: without_logical(value) for key, value in tree.items() if key != "logicalType"}
    return [without_logical(item) for item in tree] if isinstance(tree, list) else tree


def in_json(value: Any) -> Any:
    """Return a value of fastavro with numbers as JSON has them; of a float all digits."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if isinstance(value, dict):
        return {name: in_json(item) for name, item in value.items()}
    return [in_json(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["public-shop-avro-my8", "public-shop-avro-mdb11", "public-shop-routed-avro-my8"])
def test_recorded_frames_are_read_as_fastavro_reads_them(name: str) -> None:
    trees = {identity: json.loads(answer["schema"]) for identity, answer in schemas_of(CAPTURES / name).items()}
    parsed = {identity: fastavro.parse_schema(without_logical(tree)) for identity, tree in trees.items()}
    readers = {identity: compiled(resolve(tree)) for identity, tree in trees.items()}
    count = 0
    for record in read(CAPTURES / name):
        for frame in (record.key, record.value):
            identity = schema_id(frame)
            if frame is None or identity is None:
                continue
            expected = fastavro.schemaless_reader(io.BytesIO(frame[HEAD:]), parsed[identity], None)
            assert readers[identity](frame, HEAD) == (in_json(expected), len(frame))
            count += 1
    assert count > 1000


@pytest.mark.parametrize("name", ["public-shop-avro-my8", "public-shop-avro-mdb11", "public-shop-routed-avro-my8"])
def test_recorded_frames_of_a_schema_are_read_together_as_one_by_one(name: str) -> None:
    schemas = {identity: json.loads(answer["schema"]) for identity, answer in schemas_of(CAPTURES / name).items()}
    frames: dict[int, list[bytes]] = {}
    for record in read(CAPTURES / name):
        identity = schema_id(record.value)
        if identity is not None and record.value is not None:
            frames.setdefault(identity, []).append(record.value)
    for identity, some in frames.items():
        schema = AvroSchema(schemas[identity], Payload)
        assert schema.read_together(some) == [schema.read(frame) for frame in some]
    assert sum(map(len, frames.values())) > 1000


class Chance:
    """Makes schemas and values of them."""

    def __init__(self, seed: int) -> None:
        self._random, self._names = random.Random(seed), 0

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def damaged(self, frames: list[bytes]) -> list[bytes]:
        """Return frames of which one lacks bytes, has more or has others."""
        result, index = list(frames), self._random.randrange(len(frames))
        frame = bytearray(frames[index])
        at = self._random.randrange(1, len(frame) + 1)
        match self._random.randrange(3):
            case 0:
                del frame[at:]
            case 1:
                frame.insert(at, self._random.randrange(256))
            case _:
                frame[at:][:1] = b""
                frame[at - 1 if at == len(frame) else at : at + 1] = bytes([self._random.randrange(256)])
        result[index] = b"?" + bytes(frame[1:])
        return result

    def type(self, depth: int) -> Any:
        kind = self._random.choice([*PRIMITIVES, "record", "array", "map", "enum", "fixed"][: 12 if depth else 7])
        self._names += 1
        number = self._names
        if kind == "record":
            fields = [{"name": f"f{n}", "type": self.member(depth - 1)} for n in range(self._random.randint(1, 5))]
            kind = {"type": "record", "name": f"R{number}", "fields": fields}
        elif kind in ("array", "map"):
            kind = {"type": kind, "items" if kind == "array" else "values": self.member(depth - 1)}
        elif kind == "enum":
            kind = {"type": "enum", "name": f"E{number}", "symbols": ["a", "b", "c"]}
        elif kind == "fixed":
            kind = {"type": "fixed", "name": f"F{number}", "size": self._random.randint(1, 20)}
        return kind

    def member(self, depth: int) -> Any:
        kind = self.type(depth)
        return self._random.choice([kind, ["null", kind], [kind, "null"]])

    def value(self, kind: Any) -> Any:
        chance = self._random
        if isinstance(kind, list):
            return None if chance.random() < 0.4 else self.value(next(part for part in kind if part != "null"))
        name = kind if isinstance(kind, str) else kind["type"]
        match name:
            case "int":
                return chance.choice(
                    [0, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31), chance.randint(-(2**31), 2**31 - 1)]
                )
            case "long":
                return chance.choice([0, -1, 2**63 - 1, -(2**63), chance.randint(-(2**63), 2**63 - 1)])
            case "string":
                return chance.choice(["", "a", "é漢😀", "x" * 63, "x" * 64, "x" * 20_000])
            case "bytes":
                return chance.randbytes(chance.choice([0, 1, 63, 64, 300]))
            case "boolean":
                return chance.random() < 0.5
            case "float":
                return float(np.float32(chance.choice([0.0, -0.0, 1.5, math.inf, -math.inf])))
            case "double":
                return chance.choice([0.0, 0.1, 1e308, math.inf, -math.inf, chance.uniform(-1e9, 1e9)])
            case "record":
                return {field["name"]: self.value(field["type"]) for field in kind["fields"]}
            case "array":
                return [self.value(kind["items"]) for _ in range(chance.randint(0, 4))]
            case "map":
                return {f"k{n}": self.value(kind["values"]) for n in range(chance.randint(0, 4))}
            case "enum":
                return chance.choice(kind["symbols"])
        return chance.randbytes(kind["size"])


def struct_of(**members: Any) -> type[msgspec.Struct]:
    return msgspec.defstruct("Message", list(members.items()))


def in_dicts(messages: list[msgspec.Struct]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(msgspec.json.encode(message)) for message in messages]


@pytest.mark.parametrize("seed", range(amount(40, 100)))
def test_many_values_are_read_as_one_by_one(seed: int) -> None:
    chance = Chance(seed)
    names = [f"m{n}" for n in range(6)]
    tree = {
        "type": "record",
        "name": "Whole",
        "namespace": "n",
        "fields": [{"name": name, "type": chance.member(2)} for name in names],
    }
    kind, parsed = resolve(tree), fastavro.parse_schema(tree, named_schemas={})
    read = compiled(kind)
    frames = []
    for _ in range(chance.number(1, 40)):
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, chance.value(tree))
        frames.append(b"?" + stream.getvalue())
    one_by_one = [msgspec.json.decode(msgspec.json.encode(read(frame, 1)[0])) for frame in frames]
    whole = struct_of(**dict.fromkeys(names, msgspec.Raw))
    assert in_dicts(read_together(kind, frames, 1, whole)) == one_by_one
    some = read_together(kind, frames, 1, struct_of(m4=msgspec.Raw, m1=msgspec.Raw))
    assert in_dicts(some) == [{"m1": record["m1"], "m4": record["m4"]} for record in one_by_one]
    for _ in range(10):
        damaged = chance.damaged(frames)
        try:
            records = in_dicts(read_together(kind, damaged, 1, whole))
        except ValueError:
            continue
        each = [read(frame, 1) for frame in damaged]
        assert [end for _, end in each] == list(map(len, damaged)), "what is damaged is never taken for whole"
        assert records == [msgspec.json.decode(msgspec.json.encode(value)) for value, _ in each]


AT_MOST_NINE = Annotated[int, msgspec.Meta(le=9)]
LETTERS = Annotated[str, msgspec.Meta(pattern="^[a-z]+$")]


@pytest.mark.parametrize(
    ("kind", "values", "demanded"),
    [
        ("long", [1, 5, -3], int | None),
        ("long", [4, 4], AT_MOST_NINE),
        ("long", [4, 12, 4], AT_MOST_NINE),
        ("int", [4, 5], str | None),
        ("string", ["a", 'b "quoted" ü'], str | None),
        ("string", ["ab", "c"], LETTERS),
        ("string", ["ab", "C"], LETTERS),
        ("string", ["C", "C"], LETTERS),
        ("string", ["1"], int),
        (["null", "long"], [None, 7, None, 8], int | None),
        (["string", "null"], ["x", None], str | None),
        (["null", "long"], [None, 7], int),
        ("double", [1.5], float),
        ({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}, [{"n": 1}, {"n": 2}], dict),
        ({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}, [{"n": 1}], struct_of(n=int)),
        ({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}, [{"n": 1}], struct_of(o=int)),
    ],
)
def test_members_are_of_the_types_that_a_message_demands(kind: Any, values: list[Any], demanded: Any) -> None:
    # or it is refused, and read one by one
    tree = {"type": "record", "name": "Whole", "fields": [{"name": "m", "type": kind}]}
    parsed, message, frames = fastavro.parse_schema(tree, named_schemas={}), struct_of(m=demanded), []
    for value in values:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, {"m": value})
        frames.append(stream.getvalue())
    try:
        read = read_together(resolve(tree), frames, 0, message)
    except ValueError:
        read = None
    try:
        converted = [msgspec.convert({"m": value}, message) for value in values]
    except ValueError:
        assert read is None
    else:
        assert read == converted or (read is None and demanded in (float, dict))


@pytest.mark.parametrize("seed", range(amount(80, 200)))
def test_random_values_are_read_as_they_were_written(seed: int) -> None:
    chance = Chance(seed)
    fields = [{"name": f"m{n}", "type": chance.member(3)} for n in range(6)]
    tree = {"type": "record", "name": "Whole", "namespace": "n", "fields": fields}
    parsed, read_all = fastavro.parse_schema(tree, named_schemas={}), compiled(resolve(tree))
    some = {f"m{n}" for n in range(0, 6, 2)}
    read_some = compiled(resolve(tree), dict.fromkeys(some))
    for _ in range(5):
        datum, stream = chance.value(tree), io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, datum)
        data, expected = stream.getvalue(), in_json(datum)
        assert read_all(b"?" + data, 1) == (expected, len(data) + 1)
        assert read_some(data, 0) == ({name: expected[name] for name in expected if name in some}, len(data))
        for size in {*range(min(len(data), 50)), len(data) - 1} - {len(data)}:
            try:
                _, end = read_all(data[:size], 0)
            except Exception:
                continue
            assert end > size, "what is cut short is never taken for whole"


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", "A"]}]}, "inside itself"),
        ({"type": "array", "items": "null"}, "without end"),
        ({"type": "array", "items": {"type": "record", "name": "A", "fields": []}}, "without end"),
        (["int", "string"], "a union of other types"),
        (["null", "int", "string"], "a union of other types"),
        ("unknown", "is not defined"),
        ({"type": "fixed", "name": "F", "size": 0}, "no bytes"),
        (7, "neither a name"),
    ],
)
def test_a_schema_that_is_not_read_safely_is_refused(tree: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        resolve(tree)


def test_names_of_a_schema_are_no_code() -> None:
    name = "a'}, exec('1/0'), {'\n"
    tree = {"type": "record", "name": "R", "fields": [{"name": name, "type": "int"}]}
    assert compiled(resolve(tree))(b"\x02", 0) == ({name: 1}, 1)


def test_a_block_of_an_array_may_state_its_size() -> None:
    read_items = compiled(resolve({"type": "array", "items": "int"}))
    assert read_items(b"\x03\x04\x02\x04\x00", 0) == ([1, 2], 5)


def test_an_array_ends_with_the_bytes() -> None:
    """Its count is that of a damaged record: more than memory holds."""
    read_items = compiled(resolve({"type": "array", "items": {"type": "fixed", "name": "F", "size": 2}}))
    with pytest.raises(ValueError, match="end of the bytes"):
        read_items(b"\xfe\xff\xff\xff\xff\xff\x01aabb", 0)


@pytest.mark.parametrize("data", [b"\x80" * 11 + b"\x01", b"\xff" * 30])
def test_a_number_without_end_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        compiled(resolve("long"))(data, 0)


def test_a_name_is_looked_up_in_its_namespace() -> None:
    inner = {"type": "record", "name": "P", "namespace": "far", "fields": [{"name": "x", "type": "int"}]}
    row = {"type": "record", "name": "Value", "fields": [{"name": "p", "type": inner}, {"name": "q", "type": "far.P"}]}
    fields = [{"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "Value"]}]
    kind = resolve({"type": "record", "name": "Envelope", "namespace": "near", "fields": fields})
    columns = row_columns(kind)
    assert columns is not None and [json.loads(column)["field"] for column in columns] == ["p", "q"]
    assert compiled(kind)(b"\x00\x02\x02\x04", 0) == ({"before": None, "after": {"p": {"x": 1}, "q": {"x": 2}}}, 4)


def test_only_what_a_message_has_is_read() -> None:
    tree = {"type": "record", "name": "E", "fields": [{"name": "op", "type": "string"}, {"name": "x", "type": "long"}]}
    assert AvroSchema(tree, Payload).read(bytes(5) + b"\x02c\x80\x01").op == "c"
