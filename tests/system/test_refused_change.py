# SPDX-License-Identifier: Apache-2.0
"""A TRUNCATE of a table with ``on_truncate: fail``, through the command line, also without the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.cross_format.debezium_json_writer import Writer
from tests.cross_format.events import Ddl
from tests.services.broker import Broker
from tests.system.ground import Ground, Story
from tests.system.site import Site, demand_refused
from tests.system.wider_table import WIDER

pytestmark = pytest.mark.system


def test_a_refused_truncate_fails_the_run_until_somebody_decides(broker: Broker, tmp_path: Path) -> None:
    site = Site(tmp_path, {"bootstrap.servers": broker.bootstrap})
    site.changes["source"] = {"topics": ["refused.rows"], "schema_topic": "refused.schema", "heartbeat_topic": None}
    site.changes["policy"] = {**site.changes.get("policy", {}), "on_truncate": "fail"}
    story = Story(Writer())
    story.create("t")
    story.insert("t")
    story.record(Ddl("ALTER TABLE `t` ADD COLUMN `w` INT", "shop", "t", WIDER))
    story.record(Ddl("TRUNCATE TABLE `t`", "shop", "t", WIDER))
    story.insert("t", WIDER, id=3, v="three", w=3)
    Ground(site, broker, "refused").send(story)
    demand_refused(site.sync(), 3, "apply.change_refused", "on_truncate", "shop.t")
    assert not (site.location("t") / "_delta_log").exists()
    site.changes["tables"] = {"shop.t": {"on_truncate": "apply"}}
    assert site.sync().code == 0
    assert DeltaTable(str(site.location("t"))).to_pyarrow_table().column("id").to_pylist() == [3]
    del site.changes["tables"]
    site.ledger.unlink()
    assert site.sync().code == 0
    assert DeltaTable(str(site.location("t"))).to_pyarrow_table().column("id").to_pylist() == [3]
