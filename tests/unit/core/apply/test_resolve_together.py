# SPDX-License-Identifier: Apache-2.0
"""Tables of one layout that are resolved together get the plans that each gets alone."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.apply.resolve import ordered, resolve
from airflow_provider_cdc.core.apply.resolve_together import layout_of, resolve_together
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.changes import change, table_of, timeline_of

CREATE = "CREATE TABLE t (id INT, part INT, a INT, b VARCHAR(9), PRIMARY KEY (part, id))"
WIRES = ("debezium-json", "oms-default", "canal-protobuf", "dts-protobuf")


def history(chance: random.Random, wire: str) -> list[dict[str, Any]]:
    """Return random changes of one table."""
    rows, number = list[dict[str, Any]](), 0
    moves = open_format(wire).updates_move_keys
    for _ in range(chance.choice((1, 5, 40))):
        number += chance.randint(1, 3)
        image = {name: str(chance.randint(0, 4)) for name in ("id", "part", "a")}
        image["b"] = chance.choice(["x", "ü", None])
        op = chance.choice(("insert", "update", "delete"))
        before = None
        if op == "delete":
            before, image = image, None
        elif op == "update":
            before = {**image, "a": "0"}
            if moves and chance.random() < 0.5:
                before["id"] = str(chance.randint(0, 4))
        rows.append(change(number, op, before, image, partition=chance.randint(0, 1)))
    chance.shuffle(rows)
    return rows


def alone(rows: list[dict[str, Any]], wire: str, create: str = CREATE) -> MergePlan:
    return resolve(ordered(table_of(rows)), timeline_of(create), None, open_format(wire), TypeOptions())


def together(tables: list[list[dict[str, Any]]], wire: str, create: str = CREATE) -> list[MergePlan] | None:
    owners = np.repeat(np.arange(len(tables)), list(map(len, tables)))
    order = np.random.default_rng(7).permutation(len(owners))
    rows = pa.concat_tables(list(map(table_of, tables))).take(pa.array(order))
    timelines = [timeline_of(create) for _ in tables]
    return resolve_together(rows, owners[order], timelines, open_format(wire), TypeOptions())


def content(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=str)


@pytest.mark.sampled
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("seed", range(20))
def test_plans_are_those_of_the_single_tables(seed: int, wire: str) -> None:
    chance = random.Random(f"{wire} {seed}")
    tables = [history(chance, wire) for _ in range(chance.choice((1, 2, 7)))]
    plans = together(tables, wire)
    assert plans is not None
    assert len(plans) == len(tables)
    for rows, plan in zip(tables, plans, strict=True):
        (step,), (expected,) = plan.steps, alone(rows, wire).steps
        assert content(step.upserts) == content(expected.upserts)
        assert content(step.deletes) == content(expected.deletes)
        assert (step.upserts.schema, step.deletes.schema) == (expected.upserts.schema, expected.deletes.schema)
        assert plan.changes == alone(rows, wire).changes
        assert (step.positions is None) == (expected.positions is None)
        if step.positions is not None and expected.positions is not None:
            by_key = dict(zip(map(str, step.upserts.to_pylist()), step.positions().to_pylist(), strict=True))
            of_one = zip(map(str, expected.upserts.to_pylist()), expected.positions().to_pylist(), strict=True)
            assert by_key == dict(of_one)


@pytest.mark.parametrize(
    ("odd", "kind", "wire"),
    [
        (change(9, "insert", None, {"id": 1, "d": "x"}), "INT", "canal-protobuf"),
        (change(9, "insert", None, {"id": 1}), "INT", "debezium-json"),
        (change(9, "truncate"), "INT", "canal-protobuf"),
        (change(9, "insert", None, {"id": 1, "d": "0000-00-00"}), "DATE", "canal-protobuf"),
    ],
    ids=["no number", "a column lacks", "truncate", "a lossy value"],
)
def test_tables_one_of_which_is_odd_are_resolved_alone(odd: dict[str, Any], kind: str, wire: str) -> None:
    create = f"CREATE TABLE t (id INT PRIMARY KEY, d {kind})"
    plain = [change(1, "insert", None, {"id": 1, "d": None})]
    assert together([plain, plain], wire, create) is not None
    assert together([plain, [odd]], wire, create) is None


@pytest.mark.parametrize(
    ("create", "wire"),
    [
        ("CREATE TABLE t (id INT, a INT)", "debezium-json"),
        (CREATE, "oms-shareplex"),
    ],
    ids=["no key", "partial images"],
)
def test_such_tables_have_no_layout(create: str, wire: str) -> None:
    assert layout_of(timeline_of(create), open_format(wire)) is None


@pytest.mark.parametrize(
    "other",
    [
        "CREATE TABLE t (id INT, part INT, a INT, b VARCHAR(9), PRIMARY KEY (id, part))",
        "CREATE TABLE t (id INT, part INT, a BIGINT, b VARCHAR(9), PRIMARY KEY (part, id))",
        "CREATE TABLE t (id INT, part INT, b VARCHAR(9), a INT, PRIMARY KEY (part, id))",
        "CREATE TABLE t (id INT, part INT, a INT DEFAULT 3, b VARCHAR(9), PRIMARY KEY (part, id))",
        "CREATE TABLE t (id INT, part INT, a INT NOT NULL, b VARCHAR(9), PRIMARY KEY (part, id))",
    ],
)
def test_other_keys_types_orders_and_defaults_are_other_layouts(other: str) -> None:
    wire = open_format("debezium-json")
    assert layout_of(timeline_of(CREATE), wire) == layout_of(timeline_of(CREATE), wire)
    assert layout_of(timeline_of(CREATE), wire) != layout_of(timeline_of(other), wire)
