# SPDX-License-Identifier: Apache-2.0
"""Rules of a pipeline change: ``plan`` and ``approve`` say what that costs, and the table waits for a decision."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc import CdcApproveOperator, CdcPlanOperator
from tests.cross_format.debezium_json_writer import Writer
from tests.services.broker import Broker
from tests.system.ground import PLAIN, Ground, Story
from tests.system.site import Site

pytestmark = pytest.mark.system

WITHOUT_V = {"shop.t": {"columns": {"exclude": ["v"]}}}


def columns(site: Site, table: str) -> list[str]:
    return DeltaTable(str(site.location(table))).to_pyarrow_table().column_names


def test_changed_rules_wait_and_say_what_they_cost(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site(tmp_path, {"bootstrap.servers": broker.bootstrap})
    site.changes["source"] = {"topics": ["rule.rows"], "schema_topic": "rule.schema", "heartbeat_topic": None}
    ground, story = Ground(site, broker, "rule"), Story(Writer())
    for table in ("t", "u"):
        story.create(table)
        story.insert(table)
    ground.send(story)
    assert site.sync().code == 0
    site.changes["tables"] = WITHOUT_V
    for name, value in site.env().items():
        if name.startswith("AIRFLOW_CONN_"):
            monkeypatch.setenv(name, value)

    # nothing is new in the log, and the next run would ask all the same
    planned = site.command("plan", "--explain").json
    (asks,) = planned["explain"]["asks"]
    assert (planned["status"], planned["explain"]["parks"]) == ("nothing_to_do", ["shop.t"])
    assert (asks["table"], asks["policy"], asks["statement"]) == (
        "t",
        "on_rule_change",
        "exclude of v: none -> left out",
    )
    assert {name: asks["cost"][name] for name in ("work", "rows", "is_whole", "still_shown")} == {
        "work": "rows", "rows": 1, "is_whole": True, "still_shown": ["v"],
    }  # fmt: skip
    shown = "older versions of the table still show v: `airflow-cdc maintain {} --purge shop.t` expires them"
    assert f"shop.t: {shown.format('PIPELINE.yaml')}" in site.run("plan", "--explain").out.splitlines()
    task = CdcPlanOperator(task_id="plan", pipeline=str(site.file()), explain=True)
    assert task.execute({})["explain"]["asks"][0]["cost"]["still_shown"] == ["v"]

    story.messages.clear()
    for table in ("t", "u"):
        story.insert(table, PLAIN, id=2, v="two")
    ground.append(story)
    parked = site.sync()
    assert (parked.code, [table["table"] for table in parked.json["parked"]]) == (3, ["t"])
    assert parked.json["parked"][0]["reason"].startswith("[shape.changed]")
    assert [columns(site, table) for table in "tu"] == [["id", "v"], ["id", "v"]]
    (waits,) = site.command("approve").json["asked_changes"]
    assert waits["id"] in parked.json["parked"][0]["reason"]
    lines = site.run("approve").out.splitlines()
    assert f"  {shown.format(site.file())}" in lines
    assert f"airflow-cdc approve {site.file()} shop.t --change {waits['id']}" in lines
    denied = site.command("approve", "shop.t", "--deny")
    assert (denied.code, denied.json["error"]["code"]) == (3, "approve.cannot_deny")
    assert "take the rules back" in denied.json["error"]["hint"]

    site.changes["tables"] = {}
    assert site.sync().code == 0
    assert site.command("approve").json["asked_changes"] == []
    withdrawn = site.command("approve", "shop.t", "--change", waits["id"])
    assert (withdrawn.code, withdrawn.json["error"]["code"]) == (3, "approve.nothing_waits")
    site.changes["tables"] = WITHOUT_V
    assert site.sync().code == 3
    approves = CdcApproveOperator(task_id="approve", pipeline=str(site.file()), table="shop.t", by="eve")
    capsys.readouterr()
    assert approves.execute({})["status"] == "done"
    assert f"shop.t: {shown.format('PIPELINE.yaml')}" in capsys.readouterr().out
    assert approves.execute({})["repeated"] is True
    assert DeltaTable(str(site.location("t"))).to_pyarrow_table().sort_by("id").to_pylist() == [{"id": 1}, {"id": 2}]
    (history,) = [table for table in site.command("tables", "--history").json if table["table"] == "t"]
    events = [(event["event"], event["statement"], event["detail"][:8]) for event in history["events"]]
    assert events == [
        ("rules", "exclude of v: none -> left out", "taken ba"),
        ("rules", "exclude of v: none -> left out", "approved"),
    ]
