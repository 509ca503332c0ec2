# SPDX-License-Identifier: Apache-2.0
"""Rules that name tables in the target: what they make of names, what is refused, and what a hostile name can do."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_cdc.core.config import CdcPipeline, TargetRule
from airflow_provider_cdc.core.config.sinks.iceberg_options import identifier_of
from airflow_provider_cdc.core.config.target import TargetRules, target_rules
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.model.schema import TableName
from spark_jobs.driver.paths import TargetPaths
from spark_jobs.sinks.names import NameRule
from tests.unit.core.pipelines import minimal, problems_of

SHARDS = TargetRule(r"shop_(?P<shard>\d+)\.orders", "shop.orders_{shard}")
RAW = TargetRule(r"(?P<db>[^.]+)\.(?P<table>.+)", "raw_{db|lower}.{table|safe}")
HOSTILE = [
    "größe", "x y", "we`ird", "a.b", "a/b", "../../etc/passwd", "..", ".", "%2e%2e", "n" * 300, "ü" * 200, "2024", "😀",
    "a\nb", "a\0b", "a\x7f\x1bb", "'; DROP TABLE x; --", '"', "{table}", "{", "~41", "\ud800", "_cdc", " ", "Orders",
]  # fmt: skip


def name_of(rules: list[TargetRule], database: str, table: str) -> tuple[str, str]:
    return tuple(TargetRules(rules).name_of(TableName(database, table)))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        (("shop_12", "orders"), ("shop", "orders_12")),
        (("shop_12", "orders2"), ("raw_shop_12", "orders2")),  # the whole name has to match
        (("Shop", "Order Lines"), ("raw_shop", "order_lines")),
        (("a.b", "c"), ("raw_a", "b_c")),
        (("x", ""), ("x", "")),  # no rule matches it
    ],
)
def test_the_first_rule_that_matches_counts(name: tuple[str, str], target: tuple[str, str]) -> None:
    assert name_of([SHARDS, RAW], *name) == target


@pytest.mark.parametrize(
    ("to", "target"),
    [
        ("{database}.{table}", ("Shop", "Größe")),
        ("{database|upper}.x_{table|lower}_y", ("SHOP", "x_größe_y")),
        ("{database|lower|upper}.{ table | safe }", ("SHOP", "gro__e")),
        ("d.{table|digest}", ("d", "6c8c2e2c")),
        ("d.{table|lower|digest}", ("d", "f38dcb88")),
        ("d{table}{database}.t", ("dGrößeShop", "t")),
    ],
)
def test_functions_are_chained(to: str, target: tuple[str, str]) -> None:
    actual = name_of([TargetRule(".*", to)], "Shop", "Größe")
    if "digest" in to:
        assert actual[0] == "d" and len(actual[1]) == 8 and int(actual[1], 16) >= 0
    else:
        assert actual == target


def test_a_digest_depends_on_the_value_alone() -> None:
    rules = [TargetRule(".*", "{database|digest}.{table|digest}")]
    assert len({name_of(rules, *pair) for pair in (("a", "b"), ("a", "b"), ("b", "a"), ("A", "b"))}) == 3
    assert name_of(rules, "a", "b")[0] == name_of(rules, "b", "a")[1]


def test_a_group_goes_before_the_names_own_parts_and_may_be_empty() -> None:
    rule = TargetRule(r"shop\.(?P<table>[a-z]+)(?P<part>_\d+)?", "s.{table}{part}")
    assert name_of([rule], "shop", "orders_7") == ("s", "orders_7")
    assert name_of([rule], "shop", "orders") == ("s", "orders")


@pytest.mark.parametrize("table", HOSTILE)
def test_no_name_leads_out_of_its_place(table: str) -> None:
    for rule in (RAW, TargetRule(".*", "{table}.{database}"), TargetRule(".*", "/raw~/x.{table}"), SHARDS):
        for names in (NameRule(), NameRule("safe"), NameRule("exact", folds=True)):
            paths = TargetPaths([rule], names)
            for name in (TableName("shop", table), TableName(table, "t")):
                path = paths.path(name)
                parts = path.split("/")
                assert len(parts) == 2
                assert all(part and part[0] not in "._ " and part[-1] not in ". " for part in parts)
                assert all(len(part.encode()) <= 255 and part.isprintable() for part in parts)
                assert len(identifier_of(f"/lake/{path}", {})) == 2


def test_different_names_under_one_rule_without_functions_stay_apart() -> None:
    paths = TargetPaths([TargetRule(".*", "raw.{database}-{table}")], NameRule())
    names = [TableName("shop", table) for table in HOSTILE]
    assert len({paths.path(name) for name in names}) == len(names)


def test_half_a_character_matches_no_rule() -> None:
    assert name_of([TargetRule(".*", "raw.{table}")], "shop", "\ud800") == ("shop", "\ud800")


@pytest.mark.parametrize("pattern", [r"(?:a+)+b", r"(?:a|a)*b", r"(?:a|aa)+\.b", r"(?:.*.*)*x", r"(?P<x>(?:\w+\s?)+)!"])
def test_an_expression_that_may_take_for_ever_elsewhere_takes_no_time(pattern: str) -> None:
    begun = time.process_time()
    assert not TargetRules([TargetRule(pattern, "a.b")]).matches(TableName("a" * 50_000, "a" * 50_000))
    assert time.process_time() - begun < 5


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"from": r"(?P<shard>\d+).*", "to": "a.b_{shrd}"}, "target[0].to: 'shrd' is not a group; did you mean 'shard'?"),
    ({"from": ".*", "to": "a.{table|lowr}"}, "target[0].to: 'lowr' is not a function; did you mean 'lower'?"),
    ({"from": ".*", "to": "a.{table|}"}, "target[0].to: '' is not a function"),
    ({"from": ".*", "to": "a.{}"}, "target[0].to: '' is not a group"),
    ({"from": ".*", "to": "orders"}, "target[0].to: one dot stands outside of braces, as in"),
    ({"from": ".*", "to": "a.b.{table}"}, "there are 2"),
    ({"from": ".*", "to": "{database}.{table}.x"}, "there are 2"),
    ({"from": ".*", "to": ".{table}"}, "target[0].to: nothing stands in front of the dot"),
    ({"from": ".*", "to": "{table}."}, "target[0].to: nothing stands behind the dot"),
    ({"from": ".*", "to": "a.{table"}, "target[0].to: a brace has no other half"),
    ({"from": ".*", "to": "a.table}"}, "target[0].to: a brace has no other half"),
    ({"from": ".*", "to": ""}, "target[0].to: is empty"),
    ({"from": ".*", "to": 7}, "target[0].to: expected text, got a whole number"),
    ({"from": ".*"}, "target[0].to: is missing"),
    ({"to": "a.b"}, "target[0].from: is missing"),
    ({"from": "(shop).*", "to": "a.b"}, "target[0].from: name each group"),
    ({"from": "shop(", "to": "a.b"}, "target[0].from: missing )"),
    ({"from": "a)|(?:b", "to": "a.b"}, "target[0].from: unexpected )"),
    ({"from": "a*+", "to": "a.b"}, "target[0].from: bad repetition operator"),
    ({"from": r"(?P<x>a)\1", "to": "a.b"}, "the syntax is RE2's"),
    ({"from": "a(?=b)", "to": "a.b"}, "the syntax is RE2's"),
    ({"from": "(?P<x>a)(?P<x>b)", "to": "a.b"}, "target[0].from: two groups have one name: x"),
    ({"from": "(?:(?:a{1000}){1000}){1000}", "to": "a.b"}, "invalid repetition size"),
    ({"from": ".*", "to": "a.b", "merge": {"key": "shard"}}, "target[0].merge: several tables cannot be merged"),
    ({"from": ".*", "to": "a.b", "too": 1}, "target[0].too: unknown key; did you mean 'to'? known: from, to"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "sentence"), REFUSED)
def test_a_rule_that_cannot_work_is_refused(rule: dict[str, Any], sentence: str) -> None:
    (problem,) = problems_of({**minimal(), "target": [rule]})
    assert sentence in problem


def test_all_problems_are_said_at_once_each_with_its_rule() -> None:
    target = [{"from": "(", "to": "a.b"}, "x", {"from": ".*", "to": "{a}.{b}.{c}"}, {}]
    with pytest.raises(ConfigurationError) as refused:
        target_rules(target)
    heads = [problem.split(":")[0] for problem in refused.value.problems]
    assert heads == ["target[0].from", "target[1]", *["target[2].to"] * 4, "target[3].from", "target[3].to"]
    assert problems_of({**minimal(), "target": target, "caption": 1})[0].startswith("caption: unknown key")
    assert problems_of({**minimal(), "target": {"from": 1}}) == ["target: expected a list of rules, got a mapping"]


def test_python_and_yaml_make_equal_pipelines() -> None:
    data = {**minimal(), "target": [SHARDS.document(), RAW.document()]}
    pipeline = CdcPipeline.from_dict(data)
    assert list(pipeline.target) == [SHARDS, RAW]
    assert replace(CdcPipeline.from_dict(minimal()), target=[SHARDS, RAW]) == pipeline
    assert CdcPipeline.from_dict(pipeline.to_dict()) == CdcPipeline.from_yaml(pipeline.to_yaml()) == pipeline
    assert pipeline.target_names.name_of(TableName("shop_7", "orders")) == ("shop", "orders_7")
    with pytest.raises(ConfigurationError, match=r"target\[0\].to"):
        replace(pipeline, target=[TargetRule(".*", "x")])


def test_the_rules_decide_what_tables_become() -> None:
    plain, ruled = (CdcPipeline.from_dict({**minimal(), "target": rules}) for rules in ([], [RAW.document()]))
    assert plain == CdcPipeline.from_dict(minimal()) == CdcPipeline.from_dict({**minimal(), "target": None})
    assert plain.fingerprint() == CdcPipeline.from_dict(minimal()).fingerprint() != ruled.fingerprint()


def tables(*names: str, **more: Any) -> dict[str, Any]:
    return {**more, **{name: {"on_truncate": "ignore"} for name in names}}


ONE = {"from": r"shop\.orders_\d+", "to": "shop.orders"}


@pytest.mark.parametrize(
    ("target", "stated", "taken"),
    [
        ([ONE], tables("shop.orders_1", "shop.orders_2"), True),
        ([ONE], tables("shop.orders_1", "shop.orders"), True),  # the other has it by its own name
        ([ONE], tables("shop.orders_1", "shop.x"), False),
        ([ONE], tables("shop.orders_1", "shop.orders_2", exclude=["shop.orders_2"]), False),
        ([ONE], tables("shop.orders_1", "shop.orders_*"), False),  # a pattern names no table
        ([], tables("shop.orders", "shop.Orders"), False),
    ],
)
def test_two_known_tables_with_one_name_are_refused(
    target: list[dict[str, str]], stated: dict[str, Any], taken: bool
) -> None:
    data = {**minimal(), "target": target, "tables": stated}
    if not taken:
        CdcPipeline.from_dict(data)
        return
    (problem,) = problems_of(data)
    assert "would have one name, shop.orders" in problem


def test_safe_names_are_compared_as_the_sink_has_them() -> None:
    data = {**minimal(), "target": [{"from": ".*", "to": "raw.{table}"}], "tables": tables("a.Orders", "b.orders")}
    CdcPipeline.from_dict(data)
    (problem,) = problems_of({**data, "sink": {**data["sink"], "names": "safe"}})
    assert "a.Orders and b.orders, which tables names, would have one name, raw.orders" in problem
