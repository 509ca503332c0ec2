# SPDX-License-Identifier: Apache-2.0
"""A second kind of table takes the demo's whole log: nothing of the product but the registry knows of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import DeltaSink, TargetRule
from airflow_provider_cdc.core.config.sinks.kinds import SINKS, SinkKind
from airflow_provider_cdc.core.documents import Rebuild
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.demo.shop_log import Phase, ShopLog
from spark_jobs.driver.paths import TargetPaths
from tests.demo.check import compare
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.sample import ALL
from tests.sinks import parquet_folder
from tests.sinks.kinds import options_of, sink_of, type_of

FOLDER = "parquet-folder"


def demo(log: Log, root: Path, patch: pytest.MonkeyPatch, **how: Any) -> tuple[Script, ShopLog]:
    """Return a pipeline over the demo's log in memory, and that log."""
    shop = ShopLog()
    log.install(patch)
    for record in shop.records:
        partition = log.partitions.setdefault((record.topic, record.partition), [])
        assert record.offset == len(partition)
        partition.append(Record(record.topic, record.partition, record.timestamp_ms, record.key, record.value))
    return Script(log, root, schema_topic="shopdb", **how), shop


def sync_phase(script: Script, phase: Phase) -> None:
    """Carry out the batch of one of the demo's hours."""
    ends = {(topic, part): end for topic, counts in phase.ends.items() for part, end in enumerate(counts)}
    script.sync({where: end for where, end in ends.items() if where in script.log.partitions})


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(SINKS, dict)
    monkeypatch.setitem(SINKS, FOLDER, SinkKind(parquet_folder.__name__, parquet_folder.__name__, "pyarrow"))


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    "policy", [{}, {"apply_bytes": 2_000}, {"bucket_rows": 40}], ids=["whole", "pieces", "buckets"]
)
def test_every_table_of_the_demo_equals_the_database_after_every_hour(
    policy: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, shop = demo(Log(), tmp_path, monkeypatch, policy=policy, sink_type=FOLDER)
    sink = parquet_folder.open_sink({})
    phases = shop.phases if ALL else shop.phases[:2]
    for phase in phases:
        sync_phase(script, phase)
        verdict = compare(tmp_path, phase.truth, list(script.states.values()), sink)
        assert [text for problems in verdict.problems.values() for text in problems] == []
        assert verdict.rows
    script.sync(rebuild=Rebuild(["shop.orders"]))
    verdict = compare(tmp_path, phases[-1].truth, list(script.states.values()), sink)
    assert verdict.complete
    assert not list(tmp_path.rglob("_delta_log"))


RULES = (
    (TargetRule(r"shop\.(?P<t>[a-o].*)", "raw.{t|upper}"),),
    (TargetRule(".*", "all.{database}_{table}_{table|digest}"),),
    (),
)


@pytest.mark.every(2)
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_every_table_of_the_demo_is_where_the_rules_of_the_hour_put_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_of(kind, tmp_path)
    script, shop = demo(Log(), tmp_path, monkeypatch, sink_type=type_of(kind), sink_options=options)
    sink = sink_of(kind, tmp_path)
    hours = 2 if ALL else 1  # of each rule
    for number, phase in enumerate(shop.phases[: hours * len(RULES)]):
        script.target = RULES[number // hours]
        target = TargetPaths(script.target, sink.names)
        sync_phase(script, phase)
        states = list(script.states.values())
        verdict = compare(tmp_path, phase.truth, states, sink, lambda *name: target.path(TableName(*name)))  # noqa: B023
        assert [text for problems in verdict.problems.values() for text in problems] == []
        assert verdict.rows


def test_a_kind_that_is_not_registered_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match="delta"):
        DeltaSink("/lake", type=FOLDER)


@pytest.mark.usefixtures("registered")
def test_a_kind_that_is_registered_can_be_configured() -> None:
    assert DeltaSink("/lake", type=FOLDER).document()["type"] == FOLDER
