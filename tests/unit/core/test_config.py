# SPDX-License-Identifier: Apache-2.0
"""Pipelines as people write them: their meaning, and the errors of those that cannot work."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import (
    CdcPipeline,
    DeltaSink,
    KafkaSource,
    RunPolicy,
    SparkSettings,
    TableRule,
    TableRules,
)
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.model.schema import TableName
from tests.unit.core.pipelines import minimal, problems_of

SHOP = r"""
name: shop
source:
  topics: dbserver1\.shop\..*
  format: debezium-json
  schema_topic: dbserver1
sink:
  root: /data/lake
tables:
  exclude: ["shop.tmp_*"]
  shop.orders:
    create: "CREATE TABLE orders (id INT PRIMARY KEY)"
    on_drop_table: apply
    zero_dates: null
policy:
  zero_dates: text
  parallelism: 4
"""


def test_yaml_text_and_python_give_equal_pipelines() -> None:
    built = CdcPipeline(
        name="shop",
        source=KafkaSource(topics=r"dbserver1\.shop\..*", format="debezium-json", schema_topic="dbserver1"),
        sink=DeltaSink(root="/data/lake"),
        tables=TableRules(
            exclude="shop.tmp_*",
            tables={
                "shop.orders": TableRule(
                    create="CREATE TABLE orders (id INT PRIMARY KEY)", on_drop_table="apply", zero_dates="null"
                )
            },
        ),
        policy=RunPolicy(zero_dates="text", parallelism=4),
    )
    assert CdcPipeline.from_yaml(SHOP) == built


def test_a_file_is_read_by_path_and_by_name(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(SHOP)
    assert CdcPipeline.from_yaml(file) == CdcPipeline.from_yaml(str(file)) == CdcPipeline.from_yaml(SHOP)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigurationError, match="No such file") as refused:
        CdcPipeline.from_yaml("missing.yaml")
    assert refused.value.where == {"file": "missing.yaml"}


def test_what_the_file_keeps_from_templates_is_plain_where_nothing_renders_them(tmp_path: Path) -> None:
    """Let one file serve the operators, which render it, and the command line, which does not."""
    secret = "{{secrets/cdc/shop}}"
    run = {
        "tasks": [{"new_cluster": {"spark_env_vars": {"AIRFLOW_CDC_SECRETS": f"{{% raw %}}{secret}{{%- endraw -%}}"}}}]
    }
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps(minimal() | {"spark": {"submit": "databricks", "run": run}}))
    (task,) = CdcPipeline.from_yaml(file).spark.run["tasks"]
    assert task["new_cluster"]["spark_env_vars"] == {"AIRFLOW_CDC_SECRETS": secret}


def test_problems_in_a_file_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "shop.yml"
    file.write_text("name: shop\n")
    with pytest.raises(ConfigurationError) as refused:
        CdcPipeline.from_yaml(file)
    assert refused.value.where == {"file": str(file)}
    assert len(refused.value.problems) == 2


@pytest.mark.parametrize("kind", [json.loads, pickle.loads])
def test_plain_data_and_pickle_bring_back_an_equal_pipeline(kind: Any) -> None:
    pipeline = CdcPipeline.from_yaml(SHOP)
    if kind is pickle.loads:
        assert pickle.loads(pickle.dumps(pipeline)) == pipeline
    else:
        again = CdcPipeline.from_dict(json.loads(json.dumps(pipeline.to_dict())))
        assert again == pipeline and again.to_dict() == pipeline.to_dict()


def test_reading_needs_neither_airflow_nor_spark_and_yaml_only_for_yaml() -> None:
    code = """
import sys
from airflow_provider_cdc import CdcPipeline
heavy = {"airflow", "pyspark", "pyarrow", "confluent_kafka", "sqlalchemy", "yaml", "pandas"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


# ---- problems


def test_every_problem_is_reported_at_once_with_its_key() -> None:
    problems = problems_of(
        {
            "nam": "x",
            "source": {"topics": "*bad", "formt": 3, "schema_topic": "a b"},
            "sink": {"root": "rel"},
            "tables": {"orders": {}, "a.b": {"on_drop_table": False, "creat": 1}},
            "policy": {"engine": "flink", "chunk_records": 0, "tinyint1_as_boolean": "yes", "parallelism": 1.5},
            "spark": [1],
            "ledger": 7,
        }
    )
    assert [problem.split(": ")[0] for problem in problems] == [
        "nam", "name", "ledger", "source.formt", "source.format", "source.topics", "source.schema_topic", "sink.root",
        "tables.orders", "tables.a.b.creat", "tables.a.b.on_drop_table", "policy.engine", "policy.chunk_records",
        "policy.parallelism", "policy.tinyint1_as_boolean", "spark",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"polcy": {}},
            "polcy: unknown key; did you mean 'policy'? known: lake, ledger, mask_connection, name, policy, sink, "
            "source, spark, tables,"
            " target",
        ),
        ({"source": {"topics": [], "format": "x"}}, "source.topics: is empty"),
        ({"source": {"topics": ["a", "a"], "format": "x"}}, "source.topics: named twice: a"),
        (
            {"source": {"topics": ["a.*"], "format": "x"}},
            "source.topics[0]: 'a.*' is not a topic name (a list holds no patterns)",
        ),
        ({"source": None}, "source: is missing; it needs topics, format"),
        (
            {"sink": {"root": "sftp://bucket"}},
            "sink.root: 'sftp' is not a known scheme; known: a local path, file://, s3://, s3a://, gs://, abfss://, "
            "abfs://, hdfs://",
        ),
        ({"sink": {"root": "s3://"}}, "sink.root: 's3://' names no folder or bucket"),
        ({"policy": {"engine": True}}, "policy.engine: True is not known; known: spark, inline, auto"),
        ({"policy": {"lease_seconds": "60"}}, "policy.lease_seconds: expected a whole number, got text"),
        ({"policy": {"quarantine_limit": -1}}, "policy.quarantine_limit: -1 is below 0"),
        ({"policy": {"chunk_records": True}}, "policy.chunk_records: expected a whole number, got true/false"),
        ({"name": "a/b"}, "name: 'a/b' may hold only letters, digits, '_', '-' and '.', at most 100 of them"),
        ({"tables": {"include": []}}, "tables.include: is empty"),
        ({"tables": {"a.b": None}}, "tables.a.b: expected a mapping, got nothing"),
        ({"spark": {"conf": {"a": [1]}}}, "spark.conf.a: expected text, a number or true/false, got a list"),
    ],
)  # fmt: skip
def test_each_problem_is_one_sentence_that_helps(change: dict[str, Any], sentence: str) -> None:
    assert problems_of(minimal(**change)) == [sentence]


def test_the_limit_in_rows_of_earlier_releases_leads_to_the_one_in_bytes() -> None:
    (problem,) = problems_of(minimal(policy={"spark_writer_rows": 20_000_000}))
    assert problem.startswith("policy.spark_writer_rows: unknown key; did you mean 'spark_writer_bytes'?")


@pytest.mark.parametrize("data", [None, [], "shop", 3])
def test_what_is_not_a_mapping_is_reported(data: Any) -> None:
    assert "a pipeline is a mapping" in problems_of(data)[0]


def test_a_key_given_twice_is_refused_with_its_line() -> None:
    with pytest.raises(ConfigurationError, match=r"root: is given twice \(line 4\)"):
        CdcPipeline.from_yaml("name: a\nsink:\n  root: /a\n  root: /b\n")


def test_broken_yaml_names_the_place_and_not_the_text() -> None:
    with pytest.raises(ConfigurationError, match="line 3, column 1") as refused:
        CdcPipeline.from_yaml("name: shop\nsource: {topics: s3cret\n")
    assert "s3cret" not in str(refused.value)


def test_yaml_cannot_make_objects() -> None:
    with pytest.raises(ConfigurationError, match="not YAML"):
        CdcPipeline.from_yaml("name: !!python/object/apply:os.getcwd []\nsource: {}\n")


def test_sections_of_another_type_are_refused_in_python_too() -> None:
    with pytest.raises(ConfigurationError, match=r"sink: expected a DeltaSink or IcebergSink, got text"):
        CdcPipeline(name="a", source=KafkaSource("t", "f"), sink="/data")  # type: ignore[arg-type]


# ---- secrets


@pytest.mark.parametrize("prefix", ["spark.executorEnv.", "spark.yarn.appMasterEnv.", "spark.kubernetes.driverEnv."])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AIRFLOW_CDC_SECRETS", "e30="),
        ("AWS_SECRET_ACCESS_KEY", "horse"),
        ("PGPASSWORD", "horse"),
        ("MYSQL_PWD", "horse"),
        ("LEDGER", "postgresql://cdc:horse@h/cdc"),
        ("AIRFLOW_CONN_SHOP", "anything: an encoded one, too"),
        ("SETTINGS", '{"host": "h", "password": "horse"}'),
        ("SETTINGS", "{'extra': {'sasl.password': 'horse'}}"),
        ("JAVA_OPTIONS", "-Djavax.net.ssl.keyStorePassword=horse"),
    ],
)
def test_variables_that_submitters_write_down_hold_no_secret(prefix: str, name: str, value: str) -> None:
    """YARN writes them into a shell script, Kubernetes into pods and ConfigMaps."""
    with pytest.raises(ConfigurationError, match="looks like a secret") as refused:
        SparkSettings(conf={prefix + name: value})
    assert "horse" not in str(refused.value)


def test_what_only_names_a_secret_is_allowed() -> None:
    conf = {
        "spark.kubernetes.driver.secretKeyRef.AWS_SECRET_ACCESS_KEY": "store:secret",
        "spark.authenticate.secret.file": "/mnt/secret",
        "spark.executorEnv.SETTINGS": '{"topics": "a"}',
    }
    assert SparkSettings(conf=conf).conf == conf


def test_tables_are_chosen_by_patterns_over_the_full_name() -> None:
    rules = TableRules(include=["shop.*", "billing.invoice"], exclude=["*.tmp_*"])
    assert rules.selects("shop.orders") and rules.selects(TableName("billing", "invoice"))
    assert not rules.selects("shop.tmp_1") and not rules.selects("billing.other") and not rules.selects("SHOP.orders")


def test_a_tables_rule_overrides_the_policy_for_it_alone() -> None:
    pipeline = CdcPipeline.from_yaml(SHOP)
    orders = pipeline.tables.policy(TableName("shop", "orders"), pipeline.policy)
    others = pipeline.tables.policy("shop.items", pipeline.policy)
    assert (orders.on_drop_table, orders.zero_dates) == ("apply", "null")
    assert (others.on_drop_table, others.zero_dates) == ("keep", "text")
    assert orders.parallelism == others.parallelism == 4


def test_a_table_without_a_name_part_is_refused() -> None:
    for name in ("orders", ".orders", "shop.", 5):
        with pytest.raises(ConfigurationError, match=r"neither database\.table"):
            TableRules(tables={name: TableRule()})  # type: ignore[dict-item]


def test_data_topics_leave_out_the_schema_and_the_heartbeat_topic() -> None:
    source = KafkaSource("shop.*", "f", schema_topic="shop", heartbeat_topic="shop.beat")
    assert source.data_topics(["shop.b", "shop", "shop.beat", "shop.a", "other", "my.shop.a"]) == ["shop.a", "shop.b"]
    assert KafkaSource(["b", "a", "gone"], "f").data_topics(["a", "b", "c"]) == ["a", "b"]


def test_the_fingerprint_follows_what_tables_become_and_nothing_else() -> None:
    base = CdcPipeline.from_dict(minimal()).fingerprint()
    assert CdcPipeline.from_dict(minimal()).fingerprint() == base
    for harmless in (
        {"policy": {"parallelism": 9, "chunk_records": 5, "engine": "inline", "lease_seconds": 5}},
        {"spark": {"conf": {"a": 1}}},
        {"ledger": "sqlite:////x.db"},
        {"source": {"topics": "t", "format": "debezium-json", "connection": "other"}},
        {"sink": {"root": "/data/lake/"}},
    ):
        assert CdcPipeline.from_dict(minimal(**harmless)).fingerprint() == base, harmless
    for deciding in (
        {"policy": {"zero_dates": "text"}},
        {"tables": {"a.b": {"create": "CREATE TABLE b (id INT)"}}},
        {"source": {"topics": "t2", "format": "debezium-json"}},
        {"source": {"topics": "t", "format": "debezium-json", "options": {"decimal.handling.mode": "string"}}},
        {"sink": {"root": "/data/other"}},
        {"name": "other"},
    ):
        assert CdcPipeline.from_dict(minimal(**deciding)).fingerprint() != base, deciding


def test_format_options_are_text_as_formats_read_them() -> None:
    source = KafkaSource("t", "f", options={"a": True, "b": 5, "c": "x"})
    assert source.options == {"a": "true", "b": "5", "c": "x"}


def test_what_was_given_may_change_afterwards_without_changing_the_pipeline() -> None:
    conf, topics = {"a": "1"}, ["t"]
    settings, source = SparkSettings(conf=conf), KafkaSource(topics, "f")
    conf["b"] = "2"
    topics.append("u")
    assert settings.conf == {"a": "1"} and source.topics == ["t"]


# ---- catalogs, and a lake of its own
