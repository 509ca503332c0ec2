# SPDX-License-Identifier: Apache-2.0
"""Check what every registered format must do: golden records, splits, truncated and mutated bytes, order."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.common.joined_partitions import decode_joined
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA, Format, Grouped, Records, Registered
from airflow_provider_cdc.core.formats.registry import FORMATS, format_names, is_planned_unopened, open_format
from tests.conformance.damage import damaged, restructured
from tests.conformance.golden import Golden, differing, load, records_of, schemas
from tests.sample import amount
from tests.services.capture import Record, read
from tests.services.registered_schemas import SCHEMAS, schemas_of

CAPTURES = Path(__file__).parents[1] / "captures" / "data"
# real traffic, where there is a recording of it
RECORDED = {
    "debezium-avro": ["public-shop-avro-my8", "public-shop-avro-mdb11"],
    "debezium-json": ["public-a", "public-b", "public-c"],
    "canal-json": ["canal-my8-f", "canal-mdb-f"],
    "canal-protobuf": ["canal-my8-b", "canal-mdb-b"],
}
REPEATING = {"public-shop-avro-my8", "public-shop-avro-mdb11"}
Damage = Callable[[bytes, random.Random], bytes]
KINDS = {"row", "schema", "progress", "transaction", "ignored", "error"}
IMAGE = ("op", "database", "table", "before", "after")


@pytest.fixture(params=format_names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[name for name in format_names() if name in RECORDED])
def recorded(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(name: str, golden: Golden) -> Format:
    return taught(name, dict(golden.options), schemas(name))


def recorded_format(name: str) -> Format:
    every = [schemas_of(CAPTURES / capture) for capture in RECORDED[name] if (CAPTURES / capture / SCHEMAS).is_file()]
    return taught(name, {}, {identity: schema for known in every for identity, schema in known.items()})


def taught(name: str, options: dict[str, str], known: Mapping[int, Mapping[str, Any]]) -> Format:
    """Return a format with the schemas that its records name, as what decodes records teaches it."""
    fmt = open_format(name, options)
    if isinstance(fmt, Registered):
        fmt.learn(known)
    return fmt


@cache
def partitions(name: str) -> list[list[Record]]:
    result: dict[tuple[str, str, int], list[Record]] = defaultdict(list)
    for capture in RECORDED[name]:
        for record in read(CAPTURES / capture):
            result[capture, record.topic, record.partition].append(record)
    return list(result.values())


def recorded_records(group: list[Record]) -> Records:
    return Records(
        group[0].topic,
        group[0].partition,
        [r.offset for r in group],
        [r.timestamp for r in group],
        [r.key for r in group],
        [r.value for r in group],
        [r.headers for r in group],
    )


@cache
def decoded(name: str) -> list[pa.RecordBatch]:
    """Return the changes of each partition of the recorded traffic."""
    wire = recorded_format(name)
    return [wire.decode(recorded_records(group)) for group in partitions(name)]


def lone(values: list[bytes], keys: list[bytes | None]) -> Records:
    """Return records that have nothing to do with each other."""
    return Records("t", 0, list(range(len(values))), [0] * len(values), keys, values, [None] * len(values))


def plain(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Return changes in their order; ignored records, which may stand behind all others of a batch, come last."""
    changes = [row for batch in batches for row in batch.to_pylist()]
    return sorted(changes, key=_is_ignored)


def in_order(batches: list[pa.RecordBatch]) -> pa.Table:
    """Return the same as :func:`plain` as columns, for many changes."""
    table = pa.Table.from_batches(batches)
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(number, field.name, table.column(number).cast(field.type.value_type))
    ignored = pc.equal(table.column("kind"), "ignored")
    return pa.concat_tables([table.filter(pc.invert(ignored)), table.filter(ignored)]).combine_chunks()


def _is_ignored(change: Mapping[str, Any]) -> bool:
    return bool(change["kind"] == "ignored")


# ---- golden records


def test_every_format_has_golden_records_of_every_kind_it_carries(name: str) -> None:
    stated = [change for group in load(name) for item in group for change in item.changes]
    kinds = {change.get("kind") for change in stated}
    carries = open_format(name, dict(load(name)[0][0].options)).carries
    kind_of = {"rows": "row", "ddl": "schema", "progress": "progress", "transactions": "transaction"}
    assert {kind_of[what] for what in carries if what in kind_of} <= kinds
    assert "error" in kinds
    assert len(stated) >= 10


def test_golden_records_decode_to_what_is_stated(name: str) -> None:
    wrong = []
    for group in load(name):
        batch = opened(name, group[0]).decode(records_of(group))
        assert batch.schema.equals(CHANGE_SCHEMA)
        batch.validate(full=True)
        changes = plain([batch])
        stated = sorted((change for item in group for change in item.changes), key=_is_ignored)
        if len(changes) != len(stated):
            wrong.append(f"{group[0].why}: {len(changes)} changes instead of {len(stated)}: {changes}")
            continue
        for change, expected in zip(changes, stated, strict=True):
            assert change["kind"] in KINDS
            wrong += [f"{group[0].why}: {text}" for text in differing(change, expected)]
    assert not wrong, "\n".join(wrong)


def test_rows_describe_exactly_the_columns_they_carry(name: str) -> None:
    for group in load(name):
        wire = opened(name, group[0])
        for change in wire.decode(records_of(group)).to_pylist():
            if change["kind"] != "row" or change["columns"] is None:
                continue
            description = wire.describe(change["columns"])
            for image in (change["before"], change["after"]):
                if image is not None and not wire.partial_images:
                    assert set(pa_members(image)) <= set(description.names), group[0].why


def pa_members(image: str) -> list[str]:
    import json

    return list(json.loads(image))


# ---- bytes that are not what they should be


@cache
def _values(name: str) -> list[tuple[Golden, bytes]]:
    """Return the golden records that stand alone."""
    return [(g[0], g[0].value) for g in load(name) if len(g) == 1 and g[0].value]


def test_every_truncation_gives_the_same_rows_or_errors(name: str) -> None:
    for golden, value in _values(name):
        wire = opened(name, golden)
        whole = {tuple(c[n] for n in IMAGE) for c in plain([wire.decode(lone([value], [golden.key]))])}
        cuts = [value[:n] for n in range(0, len(value), max(1, len(value) // amount(100, 300)))]
        batch = wire.decode(lone(cuts, [golden.key] * len(cuts)))
        batch.validate(full=True)
        changes = batch.to_pylist()
        assert {change["offset"] for change in changes} == set(range(len(cuts))), golden.why
        for change in changes:
            assert change["kind"] in KINDS
            if change["kind"] == "row":
                assert tuple(change[n] for n in IMAGE) in whole, golden.why


@pytest.mark.parametrize(("damage", "count"), [(damaged, amount(300, 1_000)), (restructured, amount(300, 1_000))])
def test_damaged_records_give_changes_or_errors(name: str, damage: Damage, count: int) -> None:
    chance = random.Random(7)
    values = _values(name)
    for golden, value in values:
        wire = opened(name, golden)
        mutated = [damage(value, chance) for _ in range(-(-count // len(values)))]
        batch = wire.decode(lone(mutated, [golden.key] * len(mutated)))
        assert batch.schema.equals(CHANGE_SCHEMA)
        batch.validate(full=True)
        assert set(batch.column("offset").to_pylist()) == set(range(len(mutated))), golden.why
        assert set(batch.column("kind").cast(pa.string()).to_pylist()) <= KINDS
        demand_readable(wire, batch)
        for record in mutated:
            demand_calm(wire, golden, record)


def demand_readable(wire: Format, batch: pa.RecordBatch) -> None:
    """Demand that what a format writes of columns and tables it can read, too."""
    for columns in {c for c in batch.column("columns").to_pylist() if c is not None}:
        wire.infer(wire.describe(columns))
    for change in batch.select(["kind", "database", "table", "error_code", "error"]).to_pylist():
        if change["kind"] == "error":
            assert change["error_code"] and change["error"]
            assert (change["database"] is None) is (change["table"] is None)


def demand_calm(wire: Format, golden: Golden, value: bytes) -> None:
    """Demand that looking for times and groups never fails at a record."""
    try:
        wire.progress_of("t", golden.key, value)
        if isinstance(wire, Grouped):
            wire.part_of(value, golden.headers)
    except ConfigurationError:
        assert not golden.options, "only a format that lacks its options may refuse"


def test_one_wrong_byte_never_changes_a_value_that_it_does_not_touch(name: str) -> None:
    chance = random.Random(11)
    for golden, value in _values(name):
        if any(change.get("error_code", "record.malformed") != "record.malformed" for change in golden.changes):
            continue  # a record that is understood and refused for one of its values may be right with another one
        wire = opened(name, golden)
        whole = plain([wire.decode(lone([value], [golden.key]))])
        indexes = [chance.randrange(len(value)) for _ in range(amount(40, 100))]
        mutated = [value[:p] + bytes([chance.randrange(256)]) + value[p + 1 :] for p in indexes]
        for change in plain([wire.decode(lone(mutated, [golden.key] * len(mutated)))]):
            if change["kind"] == "row":
                assert _touched(whole, change) <= 2, f"{golden.why}: byte {indexes[change['offset']]}"


def _touched(whole: list[dict[str, Any]], change: dict[str, Any]) -> int:
    """Return how many columns of a row differ, at least, from any row of the whole record."""
    counts = [99]
    for row in whole:
        if row["kind"] == "row" and row["index"] == change["index"]:
            members = [(a, b) for name in ("before", "after") for a, b in _pairs(row[name], change[name])]
            counts.append(sum(1 for a, b in members if a != b) if members else 0)
    return min(counts)


def _pairs(one: str | None, other: str | None) -> list[tuple[Any, Any]]:
    import json

    if one is None or other is None:
        return []
    left, right = json.loads(one, parse_float=str), json.loads(other, parse_float=str)
    return [(value, right[key]) for key, value in left.items() if key in right]


def test_no_bytes_at_all_are_no_change_or_an_error(name: str) -> None:
    golden = load(name)[0][0]
    records = Records("t", 0, [0, 1], [None, None], [None, b"k"], [b"", None], [None, None])
    kinds = opened(name, golden).decode(records).column("kind").to_pylist()
    assert len(kinds) == 2
    assert set(kinds) <= {"error", "ignored"}


# ---- order


def test_a_formats_order_and_reading_fit_together(name: str) -> None:
    wire = open_format(name, dict(load(name)[0][0].options))
    assert wire.order in ("exact", "clock")
    assert wire.order == "exact" or not wire.splits_partitions
    assert wire.name == name
    assert wire.summary


def test_a_batch_is_planned_without_formats_that_have_no_part_in_it(name: str) -> None:
    decides = isinstance(open_format(name), Grouped) or hasattr(import_module(FORMATS[name]), "prepare")
    assert is_planned_unopened(name, {}) == (not decides)
    assert is_planned_unopened(name, {"lower_case_table_names": "1"}) == (not decides)
    with pytest.raises(ConfigurationError):
        open_format(name, {"lower_case_table_names": "2"})


def test_a_valid_time_zone_does_not_need_the_format(name: str) -> None:
    kind, golden = import_module(FORMATS[name]).WireFormat, dict(load(name)[0][0].options)
    unopened = is_planned_unopened(name, {}) and "timezone" in kind.options
    assert is_planned_unopened(name, {"timezone": "Asia/Shanghai"}) == unopened
    assert not is_planned_unopened(name, {"timezone": "Mars/Olympus"})
    assert not is_planned_unopened(name, {"timezone": "Asia/Shanghai", "unknown": "1"})
    if unopened:
        open_format(name, {**golden, "timezone": "Asia/Shanghai"})
        with pytest.raises(ConfigurationError):
            open_format(name, {**golden, "timezone": "Mars/Olympus"})


def test_positions_stand_where_the_format_is_exact(name: str) -> None:
    for group in load(name):
        wire = opened(name, group[0])
        for change in wire.decode(records_of(group)).to_pylist():
            if change["kind"] in ("row", "schema") and wire.order == "clock":
                assert change["position"] is None
                assert change["tool_time"] is not None or change["source_time"] is not None, group[0].why


# ---- real traffic


def test_real_traffic_decodes_in_the_common_schema(recorded: str) -> None:
    rows = 0
    for batch in decoded(recorded):
        assert batch.schema.equals(CHANGE_SCHEMA)
        kinds = batch.column("kind").cast(pa.string()).to_numpy(zero_copy_only=False)
        if recorded.startswith("debezium-"):
            assert "error" not in kinds
        offsets = batch.column("offset").to_numpy()[kinds != "ignored"].tolist()
        assert offsets == sorted(offsets)
        rows += batch.num_rows
    assert rows > 5_000


def test_any_split_of_the_input_gives_the_same_changes(recorded: str) -> None:
    chance, wire = random.Random(1), recorded_format(recorded)
    for group, whole in zip(partitions(recorded), decoded(recorded), strict=True):
        cuts = sorted({0, len(group), *(chance.randrange(len(group) + 1) for _ in range(amount(1, 3)))})
        parts = [recorded_records(group[a:b]) for a, b in pairwise(cuts)]
        changes = [wire.decode(part) for part in parts]
        assert in_order(changes).equals(in_order([whole])) or plain(changes) == plain([whole])


def test_any_split_of_golden_records_gives_the_same_changes(name: str) -> None:
    groups = [group for group in load(name) if group[0].options == load(name)[0][0].options]
    wire = opened(name, groups[0][0])
    together = records_of([item for group in groups for item in group])
    whole = [tuple(c[n] for n in (*IMAGE, "kind", "position", "index")) for c in plain([wire.decode(together)])]
    apart = plain([opened(name, groups[0][0]).decode(records_of(group)) for group in groups])
    assert [tuple(c[n] for n in (*IMAGE, "kind", "position", "index")) for c in apart] == whole


def test_records_of_several_partitions_give_the_same_changes_together(name: str) -> None:
    groups = [group for group in load(name) if group[0].options == load(name)[0][0].options]
    if isinstance(opened(name, groups[0][0]), Grouped):
        pytest.skip("groups of records are whole in one partition only")
    items = [item for group in groups for item in group]
    parts = []
    for number, (start, end) in enumerate(pairwise([0, 1, 1, len(items) // 3, len(items)])):
        records = records_of(items[start:end])
        offsets = [7_000_000_000 + 3 * offset for offset in records.offsets]
        parts.append(replace(records, topic=f"t{number % 2}", partition=number, offsets=offsets))
    wire = opened(name, groups[0][0])
    assert plain([decode_joined(wire.decode, parts)]) == plain([wire.decode(part) for part in parts])


def test_positions_of_rows_and_schema_changes_are_one_order(recorded: str) -> None:
    wire = recorded_format(recorded)
    if wire.order != "exact":
        pytest.skip("the format states no exact order")
    if REPEATING & set(RECORDED[recorded]):
        pytest.skip("the connector was killed: records come again")
    for group, batch in zip(partitions(recorded), decoded(recorded), strict=True):
        positions = [p for p in batch.column("position").to_pylist() if p is not None]
        assert positions == sorted(positions), group[0].topic
