# SPDX-License-Identifier: Apache-2.0
"""Examples of names of tables in targets that take fewer names than the source."""

from __future__ import annotations

import re

import pytest

from airflow_provider_cdc.core.config import IcebergSink
from airflow_provider_cdc.core.config.sinks.iceberg_options import identifier_of
from spark_jobs.sinks.delta.sink import open_sink as open_delta
from spark_jobs.sinks.iceberg.sink import open_sink as open_iceberg
from spark_jobs.sinks.names import NameRule
from tests.locations import table_place

SAFE = NameRule("safe")
ODD = ["größe", "x y", "we`ird", "a.b", "a/b", "%", "n" * 300, "2024", "😀", "", "..", "Orders", "~41", "\ud800", "表"]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("orders", "orders"),
        ("Orders", "orders"),
        ("x y", "x_y"),
        ("we`ird", "we_ird"),
        ("a.b", "a_b"),
        ("a/b", "a_b"),
        ("%", "_"),
        ("größe", "gro__e"),  # NFKD: o, the two dots, and a letter outside ASCII
        ("ﬁle", "file"),
        ("2024", "t_2024"),
        ("²", "t_2"),
        ("٣", "_"),  # a digit outside ASCII
        ("😀", "_"),
        ("", "t_"),
    ],
)
def test_a_safe_name_has_lower_case_letters_digits_and_underscores(name: str, safe: str) -> None:
    assert SAFE.name(name) == safe


@pytest.mark.parametrize("name", ODD)
def test_every_safe_name_is_one_that_each_catalog_takes_and_stays_safe(name: str) -> None:
    safe = SAFE.name(name)
    assert re.fullmatch(r"[a-z_][a-z0-9_]{0,254}", safe)
    assert SAFE.name(safe) == safe


def test_long_names_that_begin_alike_stay_apart() -> None:
    one, other = SAFE.name("n" * 300), SAFE.name("n" * 301)
    assert (len(one), len(other)) == (255, 255)
    assert one != other
    assert SAFE.name("n" * 255) == "n" * 255
    assert re.fullmatch(r"n{246}_[0-9a-f]{8}", SAFE.name("n" * 256))


@pytest.mark.parametrize("name", ODD)
def test_an_exact_name_lies_where_it_always_did(name: str) -> None:
    assert NameRule().path("shop", name) == table_place("shop", name)


@pytest.mark.parametrize("name", [name for name in ODD if 0 < len(name) < 200])
def test_a_catalog_gets_the_name_of_the_rule(name: str) -> None:
    for rule in (NameRule(), SAFE):
        path = rule.path(name, name)
        assert identifier_of(f"/lake/{path}", {}) == (rule.name(name), rule.name(name))


def test_database_and_table_go_through_the_rule() -> None:
    assert SAFE.path("Shop-1", "Orders 2") == "shop_1/orders_2"


def test_the_kind_of_the_target_decides_unless_the_pipeline_does() -> None:
    kinds = {kind: open_iceberg({"iceberg.type": kind}).names for kind in ("sql", "rest", "glue")}
    assert {kind: rule.names for kind, rule in kinds.items()} == {"sql": "exact", "rest": "exact", "glue": "safe"}
    assert open_delta({}).names.names == "exact"
    assert open_iceberg({"iceberg.type": "glue", "names": "exact"}).names.names == "exact"
    assert open_iceberg(IcebergSink("/lake", names="safe").options()).names.names == "safe"
    assert open_delta({"names": "safe"}).names.names == "safe"


def test_names_that_differ_in_case_only_are_one_in_a_catalog_without_upper_case() -> None:
    glue = NameRule("exact", folds=True)
    assert glue.path("Shop", "Größe") == "shop/größe"
    assert glue.same("shop/Orders") == glue.same("shop/orders")
    assert NameRule().same("shop/Orders") != NameRule().same("shop/orders")
