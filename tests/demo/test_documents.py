# SPDX-License-Identifier: Apache-2.0
"""Compare the reference of a pipeline's keys, and the examples of README and guides, with the code."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import CdcPipeline, DeltaSink, KafkaSource, RunPolicy, SparkSettings, TableRules
from airflow_provider_cdc.core.config.lake import Lake
from airflow_provider_cdc.core.config.register import Register
from airflow_provider_cdc.core.config.sinks.iceberg import IcebergSink
from airflow_provider_cdc.core.config.source import CanalSource, FilesSource
from airflow_provider_cdc.core.config.tables import TableRule

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
KEYS = (ROOT / "docs" / "reference" / "pipeline.md").read_text(encoding="utf-8")
QUICK_START = (ROOT / "docs" / "guides" / "quick-start.md").read_text(encoding="utf-8")
# The page part by part: the text that each begins with, and the section and its class that it describes.
PARTS: tuple[tuple[str, str, type[Any]], ...] = (
    ("### The pipeline", "", CdcPipeline),
    ("### Source", "source", KafkaSource),
    ("With `type: canal-tcp`", "source", CanalSource),
    ("With `type: files`", "source", FilesSource),
    ("### Sink", "sink", DeltaSink),
    ("In `sink.register`", "sink.register", Register),
    ("With `sink.type: iceberg`", "sink", IcebergSink),
    ("### Lake", "lake", Lake),
    ("### Tables", "tables", TableRules),
    ("### Policy", "policy", RunPolicy),
    ("### Spark", "spark", SparkSettings),
)
TABLES = {"tables.include": "*", "tables.exclude": "none", "tables.<database.table>": "none"}
KEY = re.compile(r"^\| `([a-z_0-9.<>]+)` \| (?:`([^`]*)`|(required|none)) \| ?(.*?) ?\|$", re.MULTILINE)


def block(page: str, language: str) -> str:
    match = re.search(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert match
    return match[1]


def names_after(text: str) -> dict[str, Any]:
    """Return the names that an example defines."""
    names: dict[str, Any] = {}
    exec(compile(text, "example", "exec"), names)
    return names


def shown(value: object) -> str:
    if value is MISSING:
        return "required"
    if value is None or value in ({}, [], (), ""):
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def keys_of(section: str, kind: type[Any]) -> dict[str, str]:
    """Return the keys of a section and their defaults, as its class has them."""
    defaults = {}
    for one in fields(kind):
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        defaults[f"{section}.{one.name}".lstrip(".")] = shown(default)
    sections = {section for _, section, _ in PARTS}
    return {key: default for key, default in defaults.items() if "." in key or key not in sections}


@pytest.mark.parametrize("number", range(len(PARTS)))
def test_every_key_and_its_default_is_in_the_table(number: int) -> None:
    begin, section, kind = PARTS[number]
    part = KEYS.partition(begin)[2]
    if number + 1 < len(PARTS):
        part, end, _ = part.partition(PARTS[number + 1][0])
        assert end
    expected = TABLES if kind is TableRules else keys_of(section, kind)
    # without a type a section is of the first kind
    if kind in (CanalSource, FilesSource):
        expected["source.type"] = "kafka"
    if kind is IcebergSink:
        expected["sink.type"] = "delta"
    assert {key: default or word for key, default, word, _ in KEY.findall(part)} == expected


def test_every_rule_of_a_table_is_named() -> None:
    (reported,) = [text for key, _, _, text in KEY.findall(KEYS) if key == "tables.<database.table>"]
    assert set(re.findall(r"`(\w+)`", reported)) == {one.name for one in fields(TableRule)}
    assert TableRules().include == ["*"]


def test_the_yaml_example_is_the_python_example() -> None:
    assert names_after(block(KEYS, "python"))["shop"] == CdcPipeline.from_yaml(block(KEYS, "yaml"))


def test_the_dag_of_the_readme_has_ten_lines_and_loads() -> None:
    example = block(README, "python")
    names = names_after(example)
    assert list(names["shop"].source.data_topics(["shopdb.shop.orders", "shopdb"])) == ["shopdb.shop.orders"]
    assert names["sync"].dag.dag_id == "shop_cdc"
    assert names["sync"].pipeline == names["shop"]
    assert len([line for line in example.splitlines() if line]) == 10


def test_the_quick_start_loads() -> None:
    assert CdcPipeline.from_yaml(block(QUICK_START, "yaml")).policy.engine == "inline"
    received = names_after(block(QUICK_START, "python"))["received"]
    assert [task.task_id for task in received.dag.topological_sort()] == ["received", "sync"]
