# SPDX-License-Identifier: Apache-2.0
"""The verb ``approve`` for a table: a change waits, is approved or denied, and is in the history with the decision."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from deltalake import DeltaTable

from airflow_provider_cdc import CdcApproveOperator
from airflow_provider_cdc.core.model.schema import Column, TableSchema
from tests.cross_format.debezium_json_writer import Writer
from tests.cross_format.events import Ddl
from tests.services.broker import Broker
from tests.system.ground import INT, PLAIN, Ground, Story
from tests.system.site import Site

pytestmark = pytest.mark.system


NARROW = TableSchema((Column(1, "id", INT, False),), (1,))
WIDE = TableSchema((*PLAIN.columns, Column(3, "n", INT)), (1,))


def ids(site: Site, table: str) -> list[int]:
    return sorted(DeltaTable(str(site.location(table))).to_pyarrow_table().column("id").to_pylist())


def test_a_change_waits_is_decided_and_stays_decided_without_the_ledger(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, {"bootstrap.servers": broker.bootstrap})
    site.changes["source"] = {"topics": ["ask.rows"], "schema_topic": "ask.schema", "heartbeat_topic": None}
    site.changes["policy"] = {**site.changes.get("policy", {}), "on_truncate": "ask", "on_drop_table": "ask"}
    site.changes["tables"] = {"shop.w": {"on_drop_column": "keep"}, "shop.x": {"on_add_column": "ask"}}
    ground = Ground(site, broker, "ask")
    story = Story(Writer())
    for table in ("t", "u", "v", "w", "x"):
        story.create(table)
        story.insert(table)
    ground.send(story)
    assert site.sync().code == 0
    story.messages.clear()
    for table in ("t", "u"):
        story.record(Ddl(f"TRUNCATE TABLE `{table}`", "shop", table, PLAIN))
        story.insert(table, PLAIN, id=2, v="two")
    story.record(Ddl("DROP TABLE `v`", "shop", "v", None))
    story.record(Ddl("ALTER TABLE `w` DROP COLUMN `v`", "shop", "w", NARROW))
    story.insert("w", NARROW, id=2)
    story.record(Ddl("ALTER TABLE `x` ADD COLUMN `n` INT", "shop", "x", WIDE))
    story.insert("x", WIDE, id=2, v="two", n=2)
    ground.append(story)

    asks = site.command("plan", "--explain").json["explain"]["asks"]
    assert [(item["table"], item["policy"], item["answer"]) for item in asks] == [
        ("t", "on_truncate", "open"),
        ("u", "on_truncate", "open"),
        ("v", "on_drop_table", "open"),
        ("x", "on_add_column", "open"),
    ]
    parked = site.sync()
    assert (parked.code, parked.json["status"]) == (3, "parked")
    assert {table["table"]: table["reason"].split(" ")[0] for table in parked.json["parked"]} == dict.fromkeys(
        "tuvx", "[apply.approval_required]"
    )
    assert [ids(site, table) for table in "tuvx"] == [[1], [1], [1], [1]]
    waiting = site.command("approve")
    assert (waiting.code, [item["table"] for item in waiting.json["asked_changes"]]) == (0, ["t", "u", "v", "x"])
    people = site.run("approve")
    lines = people.out.splitlines()
    named = {item["table"]: item["id"] for item in waiting.json["asked_changes"]}
    assert f"airflow-cdc approve {site.file()} shop.t --change {named['t']}    # with --deny it is left out" in lines
    assert f"airflow-cdc approve {site.file()} shop.x --change {named['x']}" in lines
    for table in parked.json["parked"]:
        name = table["table"]
        assert f"`airflow-cdc approve PIPELINE.yaml shop.{name} --change {named[name]}`" in table["reason"]

    approved = site.command("approve", "shop.t", "--by", "ann")
    assert (approved.code, approved.json["asked_changes"][0]["by"]) == (3, "ann"), approved.err  # others still wait
    assert ids(site, "t") == [2]
    denied = site.command("approve", "shop.u", "--deny", "--by", "bob")
    assert denied.code == 3, denied.err
    assert ids(site, "u") == [1, 2]
    for name, value in site.env().items():
        if name.startswith("AIRFLOW_CONN_"):
            monkeypatch.setenv(name, value)
    refused = CdcApproveOperator(task_id="deny", pipeline=str(site.file()), table="shop.x", deny=True)
    with pytest.raises(AirflowFailException, match=r"approve\.cannot_deny"):
        refused.execute({})
    approves = CdcApproveOperator(task_id="x", pipeline=str(site.file()), table="shop.x", by="eve")
    with pytest.raises(AirflowFailException, match=r"shop\.v: "):  # v still waits
        approves.execute({})
    assert ids(site, "x") == [1, 2]
    task = CdcApproveOperator(task_id="approve", pipeline=str(site.file()), table="shop.v", by="a DAG")
    assert task.execute({})["status"] == "done"
    repeated = task.execute({})
    assert (repeated["status"], repeated["repeated"]) == ("done", True)
    for again in ("shop.u",), ("shop.v", "--deny"):  # nothing waits, and the newest decision is another one
        answer = site.command("approve", *again)
        assert (answer.code, answer.json["error"]["code"]) == (3, "approve.nothing_waits"), again
    assert ids(site, "u") == [1, 2]
    assert ids(site, "v") == []
    assert site.command("approve", "--deny").code == 2

    site.ledger.unlink()
    assert site.sync().code == 0
    history = {table["table"]: table for table in site.command("tables", "--history").json}
    for table, event, policy, words in (
        ("t", "truncate", "ask", "approved by ann at "),
        ("u", "truncate", "ask", "denied by bob at "),
        ("v", "drop", "ask", "approved by a DAG at "),
        ("w", "drop column", "keep", "denied by policy on_drop_column: keep at "),
        ("x", "add column", "ask", "approved by eve at "),
    ):
        (line,) = history[table]["events"]
        assert (line["event"], line["policy"]) == (event, policy)
        assert line["detail"].startswith(words)
        assert line["statement"]
    assert [version["policy"] for version in history["x"]["versions"]] == ["apply", "ask"]
    assert site.command("rebuild", "shop.t", "shop.u").code == 0
    assert [ids(site, table) for table in "tu"] == [[2], [1, 2]]
