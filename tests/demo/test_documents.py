"""What README.md says of a pipeline's keys, and its examples, against the code."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from airflow_provider_cdc.core.config import CdcPipeline, DeltaSink, KafkaSource, RunPolicy, SparkSettings, TableRules
from airflow_provider_cdc.core.config.tables import TableRule

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTIONS = {"source": KafkaSource, "sink": DeltaSink, "policy": RunPolicy, "spark": SparkSettings, "": CdcPipeline}
KEY = re.compile(r"^\| `([a-z_0-9.<>]+)` \| (?:`([^`]*)`|(required|none)) \| ?(.*?) ?\|$", re.MULTILINE)


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def shown(value: object) -> str:
    if value is MISSING:
        return "required"
    if value is None or value == {} or value == []:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_every_key_and_its_default_is_in_the_table() -> None:
    expected = {}
    for section, kind in SECTIONS.items():
        for one in fields(kind):
            if not section and one.name in {*SECTIONS, "tables"}:
                continue
            default = one.default_factory() if one.default_factory is not MISSING else one.default
            expected[f"{section}.{one.name}".lstrip(".")] = shown(default)
    expected |= {"tables.include": "*", "tables.exclude": "none", "tables.<database.table>": "none"}
    assert {key: default or word for key, default, word, _ in KEY.findall(README)} == expected


def test_every_rule_of_a_table_is_named() -> None:
    (told,) = [text for key, _, _, text in KEY.findall(README) if key == "tables.<database.table>"]
    assert set(re.findall(r"`(\w+)`", told)) == {one.name for one in fields(TableRule)}
    assert TableRules().include == ["*"]


def test_the_yaml_example_is_the_python_example(monkeypatch: pytest.MonkeyPatch) -> None:
    written = CdcPipeline.from_yaml(block("yaml"))
    names: dict[str, object] = {}
    exec(compile(block("python"), "README.md", "exec"), names)
    assert names["shop"] == written
