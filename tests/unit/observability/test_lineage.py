# SPDX-License-Identifier: Apache-2.0
"""OpenLineage of batches: first, empty, repeated, parked, failed, and over a rename."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.batch.result import BatchResult, TableResult, UnsettledTable
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.ledger import Batch, Ledger
from airflow_provider_cdc.observability.lineage import as_operator_lineage, batch_lineage, location_name
from airflow_provider_cdc.sources.kafka_log import ResolvedKafkaLog

BROKERS = "broker1:9092, broker2:9092"
NAMESPACE = ResolvedKafkaLog("kafka_default", {"bootstrap.servers": BROKERS}).namespace()
KAFKA = "kafka://broker1:9092"
TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)
TEN_TEXT = "2026-11-20T10:00:00.000000Z"


def schema(*names: str) -> TableSchema:
    return TableSchema(tuple(Column(number, name, ColumnType("int")) for number, name in enumerate(names)), (0,))


class Shop:
    """A pipeline of two tables in two topics; its batches are written straight into its ledger."""

    def __init__(self, folder: Path) -> None:
        source = {"topics": ["db.shop.a", "db.shop.b", "beats"], "format": "debezium-json", "heartbeat_topic": "beats"}
        url = f"sqlite:///{folder}/ledger.db"
        sink = {"type": "delta", "root": "s3://lake/cdc"}
        self.pipeline = CdcPipeline.from_dict({"name": "shop", "source": source, "sink": sink, "ledger": url})
        self.ledger = Ledger(url)
        self.ends: dict[str, dict[int, int]] = {"db.shop.a": {0: 0}, "db.shop.b": {0: 0}, "beats": {0: 0}}

    def commit(self, states: Sequence[TableState], **records: int) -> Batch:
        """Commit a batch that read so many records of each table's topic, and a heartbeat."""
        start, self.ends = self.ends, {topic: dict(partitions) for topic, partitions in self.ends.items()}
        for table, count in records.items():
            self.ends[f"db.shop.{table}"][0] += count
        self.ends["beats"][0] += 1
        with self.ledger.lease("shop", "a test") as lease:
            batch = self.ledger.plan(lease, start, self.ends, TEN)
            tables = {state.table_id: state.document() for state in states}
            return self.ledger.commit(lease, batch.seq, {"status": "done"}, tables)

    def events(self, result: BatchResult, batch: Batch | None) -> dict[str, Any]:
        """Return inputs, outputs and run facets as OpenLineage sends them."""
        from openlineage.client.serde import Serde

        lineage = as_operator_lineage(batch_lineage(self.pipeline, self.ledger, NAMESPACE, result, batch))
        return {
            "inputs": [f"{dataset.namespace} {dataset.name}" for dataset in lineage.inputs],
            "outputs": [json.loads(Serde.to_json(output)) for output in lineage.outputs],
            "batch": json.loads(Serde.to_json(lineage.run_facets["cdc_batch"])),
        }


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def table(name: str, columns: TableSchema, version: int = 0, status: TableStatus = TableStatus.OK) -> TableState:
    return TableState(f"id-{name}", "shop", name, f"shop/{name}", version, schema=columns.document(), state=status)


def result(seq: int | None, status: ResultStatus, *lines: TableResult, **members: Any) -> BatchResult:
    return BatchResult("shop", seq, status, 7, tables=list(lines), **members)


def plain(value: Any) -> Any:
    """Return a document without what OpenLineage adds to every facet."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if not key.startswith("_") and item not in (None, {})}
    return [plain(item) for item in value] if isinstance(value, list) else value


def fields(topic: str, **columns: list[str]) -> dict[str, Any]:
    return {
        "fields": {
            column: {
                "inputFields": [
                    {"namespace": KAFKA, "name": topic, "field": name, "transformations": []} for name in names
                ],
                "transformationType": "IDENTITY",
            }
            for column, names in columns.items()
        },
        "dataset": [],
    }


def test_the_first_batch_creates_its_tables(shop: Shop) -> None:
    batch = shop.commit([table("a", schema("id", "x"))], a=5, b=2)
    event = shop.events(result(1, ResultStatus.DONE, TableResult("shop", "a", "append", 5)), batch)
    assert event["inputs"] == [f"{KAFKA} db.shop.a", f"{KAFKA} db.shop.b"]
    (output,) = plain(event["outputs"])
    assert (output["namespace"], output["name"]) == ("s3://lake", "cdc/shop/a")
    assert output["outputFacets"] == {"outputStatistics": {"rowCount": 5}}
    facets = output["facets"]
    assert [(one["name"], one["type"]) for one in facets["schema"]["fields"]] == [("id", "int"), ("x", "int")]
    assert facets["symlinks"]["identifiers"] == [{"namespace": "cdc://shop", "name": "shop.a", "type": "TABLE"}]
    assert facets["version"] == {"datasetVersion": "0"}
    assert facets["lifecycleStateChange"] == {"lifecycleStateChange": "CREATE"}
    assert facets["columnLineage"] == fields("db.shop.a", id=["id"], x=["x"])
    assert plain(event["batch"]) == {
        "pipeline": "shop", "seq": 1, "status": "done", "until": TEN_TEXT, "records": 7, "repeated": False,
        "parked": [],
    }  # fmt: skip


def test_an_empty_batch_has_neither_inputs_nor_outputs(shop: Shop) -> None:
    event = shop.events(result(1, ResultStatus.EMPTY), shop.commit([]))
    assert (event["inputs"], event["outputs"], event["batch"]["status"]) == ([], [], "empty")
    event = shop.events(result(None, ResultStatus.NOTHING_TO_DO), None)
    assert (event["inputs"], event["outputs"], "until" in event["batch"]) == ([], [], False)


def test_a_repeated_batch_writes_nothing(shop: Shop) -> None:
    batch = shop.commit([table("a", schema("id"))], a=5)
    event = shop.events(result(1, ResultStatus.DONE, TableResult("shop", "a", "append", 5), repeated=True), batch)
    assert (event["inputs"], event["outputs"], event["batch"]["repeated"]) == ([f"{KAFKA} db.shop.a"], [], True)


def test_a_parked_table_is_named_and_no_output(shop: Shop) -> None:
    states = [table("a", schema("id"), 3), table("b", schema("id"), 1, TableStatus.PARKED)]
    batch = shop.commit(states, a=1, b=1)
    lines = [TableResult("shop", "a", "merge", 1), TableResult("shop", "b")]
    parked = [UnsettledTable("shop", "b", "its key is gone")]
    event = shop.events(result(1, ResultStatus.PARKED, *lines, parked=parked), batch)
    assert [output["name"] for output in event["outputs"]] == ["cdc/shop/a"]
    assert "lifecycleStateChange" not in event["outputs"][0]["facets"]
    assert event["batch"]["parked"] == ["shop.b"]


def test_a_failed_batch_names_its_error_code_only(shop: Shop) -> None:
    batch = shop.commit([table("a", schema("id"))], a=5)
    error = DataError("land.memory", "secret words")
    event = shop.events(result(1, ResultStatus.FAILED, error=error), batch)
    assert (event["inputs"], event["outputs"]) == ([f"{KAFKA} db.shop.a"], [])
    assert event["batch"]["error"] == "land.memory"
    assert "secret" not in json.dumps(event)


def test_a_renamed_column_comes_from_both_names_in_its_batch_only(shop: Shop) -> None:
    shop.commit([table("a", schema("id", "email"))], a=5)
    renamed = table("a", schema("id", "mail"), 1)
    line = TableResult("shop", "a", "merge", 1)
    event = shop.events(result(2, ResultStatus.DONE, line), shop.commit([renamed], a=1))
    lineage = plain(event["outputs"])[0]["facets"]["columnLineage"]
    assert lineage == fields("db.shop.a", id=["id"], mail=["email", "mail"])
    event = shop.events(result(3, ResultStatus.DONE, line), shop.commit([renamed], a=1))
    lineage = plain(event["outputs"])[0]["facets"]["columnLineage"]
    assert lineage == fields("db.shop.a", id=["id"], mail=["mail"])


def test_columns_say_what_they_are_made_of_and_which_are_masked(shop: Shop) -> None:
    laid: list[list[Any]] = [
        *([0, "id", ""], [1, "customer", "mask hash 1a2b3c4d"], [2, "born", "mask truncate(year)"]),
        *([-1_007, "label", "add CONCAT(Name, '-', x)"], [-10, "_cdc_deleted", "mode soft_delete"]),
    ]
    shop.commit([table("a", schema("id", "name", "born", "x"))], a=1)
    state = replace(table("a", schema("id", "nick", "born", "x"), 1), laid=laid)
    line = TableResult("shop", "a", "merge", 1)
    event = shop.events(result(2, ResultStatus.DONE, line), shop.commit([state], a=1))
    facets = plain(event["outputs"])[0]["facets"]
    types = {one["name"]: one.get("type") for one in facets["schema"]["fields"]}
    assert types == {"id": "int", "customer": "string", "born": "int", "label": None, "_cdc_deleted": None}
    sources = {
        name: ([one["field"] for one in field["inputFields"]], field.get("transformationType"))
        for name, field in facets["columnLineage"]["fields"].items()
    }
    assert sources == {
        "id": (["id"], "IDENTITY"),
        "customer": (["name", "nick"], "MASKED"),
        "born": (["born"], "MASKED"),
        "label": (["name", "nick", "x"], None),
    }


def test_dropped_and_overwritten_tables_say_so(shop: Shop) -> None:
    shop.commit([table("a", schema("id")), table("b", schema("id"))], a=1, b=1)
    states = [table("a", schema("id"), 1, TableStatus.DROPPED), table("b", schema("id"), 1)]
    lines = [TableResult("shop", "a"), TableResult("shop", "b", "overwrite", 9)]
    event = shop.events(result(2, ResultStatus.DONE, *lines), shop.commit(states, a=1, b=1))
    changes = {out["name"]: out["facets"]["lifecycleStateChange"]["lifecycleStateChange"] for out in event["outputs"]}
    assert changes == {"cdc/shop/a": "DROP", "cdc/shop/b": "OVERWRITE"}


def test_locations_are_named_as_the_standard_says() -> None:
    assert location_name("/data/lake/shop/a") == ("file", "/data/lake/shop/a")
    assert location_name("file:///data/lake") == ("file", "/data/lake")
    assert location_name("s3a://lake/cdc/shop/a/") == ("s3://lake", "cdc/shop/a")


def test_a_task_names_at_its_start_the_topics_of_its_pipeline(shop: Shop) -> None:
    from airflow_provider_cdc.observability.lineage import expected_lineage

    lineage = as_operator_lineage(expected_lineage(shop.pipeline, NAMESPACE))
    assert [dataset.name for dataset in lineage.inputs] == ["db.shop.a", "db.shop.b"]
    assert lineage.outputs == []
    pattern = CdcPipeline.from_dict(
        {**shop.pipeline.to_dict(), "source": {"topics": "db.*", "format": "debezium-json", "schema_topic": "db"}}
    )
    assert expected_lineage(pattern, NAMESPACE).inputs == [(KAFKA, "db")]


def test_columns_may_be_left_out(shop: Shop) -> None:
    batch = shop.commit([table("a", schema("id", "x"))], a=5)
    done = result(1, ResultStatus.DONE, TableResult("shop", "a", "append", 5))
    lineage = batch_lineage(shop.pipeline, shop.ledger, NAMESPACE, done, batch)
    (output,) = as_operator_lineage(lineage, columns=False).outputs
    assert set(output.facets) == {"symlinks", "version", "lifecycleStateChange"}


def test_checks_are_assertions_of_the_tables_that_they_name() -> None:
    from airflow_provider_cdc.core.model.check_result import CheckResult
    from airflow_provider_cdc.observability.lineage import checks_lineage

    states = [table("a", schema("id")), table("b", schema("id"))]
    checks = [CheckResult("no_parked", False, "", "", ["shop.b"]), CheckResult("freshness", False, "", "")]
    lineage = checks_lineage(states, checks, "s3://lake/cdc")
    seen = {
        dataset.name: {one.assertion: one.success for one in dataset.inputFacets["dataQualityAssertions"].assertions}
        for dataset in lineage.inputs
    }
    assert seen == {
        "cdc/shop/a": {"no_parked": True, "freshness": False},
        "cdc/shop/b": {"no_parked": False, "freshness": False},
    }


def test_the_operator_answers_for_airflows_provider(shop: Shop) -> None:
    from airflow_provider_cdc import CdcSyncOperator

    task = CdcSyncOperator(task_id="sync", pipeline=shop.pipeline)
    assert task.get_openlineage_facets_on_complete(None).inputs == []
    batch = shop.commit([table("a", schema("id"))], a=5)
    done = result(1, ResultStatus.DONE, TableResult("shop", "a", "append", 5))
    task._lineage = lambda: batch_lineage(shop.pipeline, shop.ledger, NAMESPACE, done, batch)
    for answer in (task.get_openlineage_facets_on_complete(None), task.get_openlineage_facets_on_failure(None)):
        assert [dataset.name for dataset in answer.inputs + answer.outputs] == ["db.shop.a", "cdc/shop/a"]
