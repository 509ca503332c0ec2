# SPDX-License-Identifier: Apache-2.0
"""The option ``--history`` of the verb ``tables``: schema versions with their statements, states with their reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cross_format.debezium_json_writer import Writer
from tests.cross_format.events import Ddl
from tests.services.broker import Broker
from tests.system.ground import Ground, Story
from tests.system.site import Site
from tests.system.wider_table import WIDER

pytestmark = pytest.mark.system


def test_history_of_a_table_that_was_altered_truncated_parked_and_repaired(broker: Broker, tmp_path: Path) -> None:
    site = Site(tmp_path, {"bootstrap.servers": broker.bootstrap})
    site.changes["source"] = {"topics": ["h.rows"], "schema_topic": "h.schema", "heartbeat_topic": None}
    story = Story(Writer())
    story.create("t")
    story.insert("t")
    alter = "ALTER TABLE `t` ADD COLUMN `w` INT"
    story.record(Ddl(alter, "shop", "t", WIDER))
    story.insert("t", WIDER, id=2, v="two", w=2)
    story.record(Ddl("TRUNCATE TABLE `t`", "shop", "t", WIDER))
    story.insert("t", WIDER, id=3, v="three", w=3)
    story.change_last(lambda value: value.replace(b"mysql-bin.000001", b"mysql-bin.9223372036854775808"))
    Ground(site, broker, "h").send(story)
    assert site.sync().code == 3
    site.changes["tables"] = {"shop.t": {"quarantine_limit": 1}}
    assert site.sync().code == 0

    answer = site.command("tables", "--history")
    assert answer.code == 0, answer.err
    (table,) = answer.json
    assert (table["database"], table["table"]) == ("shop", "t")
    assert [version["kind"] for version in table["versions"]] == ["mapping", "mapping"]
    assert table["versions"][1]["statement"] == alter
    assert [column["name"] for column in table["versions"][1]["columns"]] == ["id", "v", "w"]
    assert table["versions"][1]["time"].startswith("2026-01-01T00:00:0")
    (event,) = table["events"]
    assert (event["event"], event["policy"], event["statement"]) == ("truncate", "apply", "TRUNCATE TABLE `t`")
    assert [state["state"] for state in table["states"]] == ["parked", "ok"]
    assert "land.quarantine_exceeded" in table["states"][0]["reason"]
    assert [state["batch"] for state in table["states"]] == [1, site.batches()[-1]["seq"]]
    assert all(state["since"] for state in table["states"])

    people = site.run("tables", "--history")
    assert people.code == 0
    for words in ("shop.t", alter, "truncate", "parked"):
        assert words in people.out
