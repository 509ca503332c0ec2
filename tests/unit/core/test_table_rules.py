# SPDX-License-Identifier: Apache-2.0
"""Rules of tables: patterns are applied, statements are read, formats are known, when the pipeline is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import CdcPipeline, RunPolicy, TableRules
from airflow_provider_cdc.core.config.table_patterns import ambiguous
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, KnownValuesError
from airflow_provider_cdc.core.timeline.stated import stated_changes

CREATE = "CREATE TABLE orders (id INT PRIMARY KEY)"


def pipeline(tables: dict[str, Any], **source: Any) -> CdcPipeline:
    return CdcPipeline.from_dict(
        {
            "name": "shop",
            "source": {"topics": "shop.*", "format": "debezium-json", **source},
            "sink": {"root": "/lake"},
            "tables": tables,
        }
    )


def problems(tables: dict[str, Any], **source: Any) -> list[str]:
    with pytest.raises(ConfigurationError) as raised:
        pipeline(tables, **source)
    return raised.value.problems


# ---- patterns


RULES = TableRules(
    tables={  # type: ignore[arg-type]
        "shop.orders": {"on_truncate": "ignore"},
        "shop.*": {"zero_dates": "text", "on_truncate": "fail"},
        "shop.ord*": {"on_drop_table": "apply"},
        "*.log": {"quarantine_limit": 5},
    }
)


@pytest.mark.parametrize(
    ("table", "limit", "truncate", "drop", "dates"),
    [
        ("shop.orders", 0, "ignore", "keep", "null"),
        ("shop.orders_2", 0, "apply", "apply", "null"),
        ("shop.ord", 0, "apply", "apply", "null"),
        ("shop.users", 0, "fail", "keep", "text"),
        ("shop.log", 0, "fail", "keep", "text"),
        ("other.log", 5, "apply", "keep", "null"),
        ("other.orders", 0, "apply", "keep", "null"),
        ("Shop.orders", 0, "apply", "keep", "null"),
    ],
)
def test_the_most_specific_rule_counts_alone(table: str, limit: int, truncate: str, drop: str, dates: str) -> None:
    for rules in (RULES, TableRules.from_document(json.loads(json.dumps(RULES.document())))):
        policy = rules.policy(table, RunPolicy())
        assert (policy.quarantine_limit, policy.on_truncate, policy.on_drop_table, policy.zero_dates) == (
            limit,
            truncate,
            drop,
            dates,
        )
        assert rules.rule(table).on_drop_table == (drop if drop == "apply" else None)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("shop.*", "shop.?", True),
        ("shop.*_log", "shop.*_tmp", False),
        ("shop.a*", "shop.ab*", False),  # the longer prefix counts
        ("shop.*a", "shop.*b*", True),
        ("shop.?", "shop.??", False),
        ("shop.[ab]*", "shop.[!ab]*", True),  # sets are taken to have one in common
        ("shop.[ab]x", "shop.?y", False),
        ("*.log", "*.orders", False),
        ("*.log", "*", True),
    ],
)
def test_patterns_of_which_neither_is_more_specific_are_refused(one: str, other: str, both: bool) -> None:
    assert bool(ambiguous([one, other])) is both
    tables = {one: {"on_truncate": "ignore"}, other: {"on_truncate": "fail"}}
    if "." in other:
        if both:
            (problem,) = problems(tables)
            assert min(one, other) in problem and max(one, other) in problem
        else:
            pipeline(tables)


def test_a_pattern_states_no_statement_and_a_key_without_a_dot_is_no_table() -> None:
    assert problems({"shop.ord*": {"create": CREATE}})[0].startswith("tables.shop.ord*.create: ")
    assert problems({"orders": {"on_truncate": "ignore"}})[0].startswith("tables.orders: ")
    assert problems({"ord*": {"on_truncate": "ignore"}})[0].startswith("tables.ord*: ")


# ---- statements


OCEANBASE = """CREATE TABLE `orders` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `v` varchar(20) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `k` (`v`) BLOCK_SIZE 16384 LOCAL,
  KEY `g` (`v`) STORING (`id`) BLOCK_SIZE 16384 GLOBAL,
  FULLTEXT KEY `f` (`v`) WITH PARSER ngram PARSER_PROPERTIES=(ngram_token_size=2) BLOCK_SIZE 16384
) ORGANIZATION INDEX AUTO_INCREMENT = 1 AUTO_INCREMENT_MODE = 'ORDER' DEFAULT CHARSET = utf8mb4 ROW_FORMAT = DYNAMIC
 COMPRESSION = 'zstd_1.3.8' REPLICA_NUM = 1 BLOCK_SIZE = 16384 USE_BLOOM_FILTER = FALSE
 ENABLE_MACRO_BLOCK_BLOOM_FILTER = FALSE TABLET_SIZE = 134217728 PCTFREE = 0 WITH COLUMN GROUP(each column)"""
VECTOR = """CREATE TABLE `orders` (`id` int NOT NULL, `v` VECTOR(3), PRIMARY KEY (`id`),
 VECTOR KEY `i` (`v`) WITH (DISTANCE=L2, TYPE=HNSW, LIB=VSAG) BLOCK_SIZE 16384) ORGANIZATION HEAP"""
ORACLE = """CREATE TABLE "SHOP"."ORDERS" ("ID" NUMBER(10,0) NOT NULL ENABLE, "D" DATE,
 CONSTRAINT "PK" PRIMARY KEY ("ID") USING INDEX PCTFREE 10 ENABLE) SEGMENT CREATION IMMEDIATE NOCOMPRESS LOGGING"""


@pytest.mark.parametrize("create", [CREATE, CREATE + ";", OCEANBASE, VECTOR, CREATE.replace("orders", "shop.orders")])
def test_what_servers_print_is_read(create: str) -> None:
    (change,) = stated_changes(pipeline({"shop.orders": {"create": create}}).tables)
    assert (change.database, change.dialect) == ("shop", None)


def test_what_oracle_prints_is_read_as_oracle_s() -> None:
    (change,) = stated_changes(pipeline({"SHOP.ORDERS": {"create": ORACLE}}, format="oms-default").tables)
    assert (change.database, change.dialect) == ("SHOP", "oracle")


@pytest.mark.parametrize(
    ("create", "words"),
    [
        ("garbage", "not understood"),
        ("CREATE TABLE orders (id INT PRIMARY KEY", "not understood"),
        ("CREATE TABLE orders (id NOSUCHTYPE(1,2,3))", "not understood"),
        ("CREATE TABLE tt (id INT)", "another table"),
        ("CREATE TABLE other.orders (id INT)", "another table"),
        ("CREATE TABLE Orders (id INT)", "another table"),
        ("DROP TABLE orders", "not a CREATE TABLE"),
        ("SELECT 1", "not a CREATE TABLE"),
        ("ALTER TABLE orders ADD COLUMN v INT", "not a CREATE TABLE"),
        ("CREATE TABLE orders (id INT); CREATE TABLE tt (id INT)", "2 statements"),
        ("CREATE TABLE orders LIKE tt", "columns"),
        ("CREATE TABLE orders AS SELECT * FROM tt", "columns"),
        ("CREATE TEMPORARY TABLE orders (id INT)", "not a CREATE TABLE"),
    ],
)
def test_a_statement_that_does_not_make_the_table_is_refused(create: str, words: str) -> None:
    (problem,) = problems({"shop.orders": {"create": create}})
    assert problem.startswith("tables.shop.orders.create: ")
    assert words in problem


def test_a_server_with_names_in_lower_case_means_the_table_by_any_spelling() -> None:
    tables = {"shop.orders": {"create": "CREATE TABLE Orders (id INT)"}}
    assert pipeline(tables, options={"lower_case_table_names": "1"}).tables.rule("shop.orders").create


def test_all_problems_are_listed_at_once() -> None:
    tables = {"shop.a": {"create": "garbage"}, "shop.b": {"create": CREATE}}
    listed = problems(tables, format="debezium-jsn", options={"no.such": "UTC"})
    keys = ["source.options.no.such", "tables.shop.a.create", "tables.shop.b.create", "source.format"]
    assert [problem.partition(": ")[0] for problem in listed] == keys


# ---- formats


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (
            {"mode": "history", "soft_delete_days": 3},
            "soft_delete_days: is an option of mode soft_delete, and the table's is",
        ),
        ({"track": ["a"]}, "track: is an option of mode history, and the table's is mirror"),
        ({"mode": "history", "before": True}, "before: is an option of mode append, and the table's is history"),
        ({"mode": "append", "before": "yes"}, "before: expected true or false, got text"),
        ({"mode": "history", "trak": ["a"]}, "trak: unknown key; did you mean 'track'?"),
        ({"mode": "soft_delete", "soft_delete_days": 0}, "soft_delete_days: 0 is not above 0"),
        ({"mode": "soft_delete", "soft_delete_days": "x"}, "soft_delete_days: expected a number, got text"),
        ({"mode": "history", "track": []}, "track: is empty"),
        ({"mode": "history", "track": "a"}, "track: expected a list of texts"),
        (
            {"mode": "history", "track": ["Pw_1"], "columns": {"exclude": "pw_*"}},
            "track: names Pw_1, which columns.exclude",
        ),
    ],
)
def test_options_of_modes_are_refused_where_they_mean_nothing(rule: dict[str, Any], words: str) -> None:
    (problem,) = problems({"shop.t": rule})
    assert problem.startswith("tables.shop.t.")
    assert words in problem


def test_a_format_that_nobody_knows_is_refused_when_the_pipeline_is_made() -> None:
    with pytest.raises(KnownValuesError) as raised:
        pipeline({}, format="debezium-jsn")
    assert raised.value.code == "format.unknown"
    assert "debezium-json" in str(raised.value)


def test_a_pipeline_file_with_an_unknown_format_is_refused_by_any_verb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from airflow_provider_cdc.cli import main

    file = tmp_path / "shop.yaml"
    file.write_text(f"name: shop\nsource: {{topics: t, format: debezium-jsn}}\nsink: {{root: {tmp_path}/lake}}\n")
    for verb in ("sync", "plan", "tables"):
        assert main([verb, str(file), "--json"]) == 2
        assert json.loads(capsys.readouterr().out)["error"]["code"] == "format.unknown"


def test_options_of_another_format_are_refused_where_nothing_is_to_be_read() -> None:
    from airflow_provider_cdc.core.formats.registry import demand_options

    for name, options in (("canal-json", {"decimal.handling.mode": "string"}), ("debezium-json", {"dbType": "MYSQL"})):
        with pytest.raises(CdcError) as raised:
            demand_options(name, options)
        assert raised.value.code == "configuration"
    demand_options("canal-json", {"timezone": "+08:00"})
