# SPDX-License-Identifier: Apache-2.0
"""Whole batches register their tables in a catalog: columns come, tables go, and a catalog that is away holds none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cross_format.debezium_json_writer import Writer
from tests.cross_format.events import Ddl
from tests.services.broker import Broker
from tests.services.catalogs import Catalog, GlueCatalog
from tests.services.s3 import S3
from tests.system.ground import Ground, Story
from tests.system.site import Site
from tests.system.wider_table import WIDER

pytestmark = pytest.mark.system


def _site(broker: Broker, folder: Path, catalog: Catalog, topic: str) -> tuple[Site, Ground]:
    site = Site(folder, {"bootstrap.servers": broker.bootstrap})
    site.changes["source"] = {"topics": [f"{topic}.rows"], "schema_topic": f"{topic}.schema", "heartbeat_topic": None}
    site.changes["policy"] = {"engine": "inline", "on_drop_table": "apply"}
    site.changes["sink"] = {
        "register": {**catalog.section, "connection": "the_catalog", "database": f"{topic}_{{database}}"}
    }
    site.environment["AIRFLOW_CONN_THE_CATALOG"] = json.dumps(catalog.connection)
    return site, Ground(site, broker, topic)


def test_tables_come_change_move_and_go(broker: Broker, tmp_path: Path, s3: S3) -> None:
    catalog, topic = GlueCatalog(s3), "registered"
    site, ground = _site(broker, tmp_path, catalog, topic)
    database = f"{topic}_shop"
    catalog.put(database, "v", "s3://others/v")
    story = Story(Writer())
    for table in ("t", "u", "v"):
        story.create(table)
        story.insert(table)
    ground.send(story)
    first = site.sync()
    assert (first.code, first.json["status"]) == (0, "done"), first.err
    (warning,) = first.json["warnings"]
    assert f"{database}.v" in warning and "s3://others/v" in warning
    assert catalog.tables(database) == {
        "t": (str(site.location("t")), {"id": "int", "v": "string"}),
        "u": (str(site.location("u")), {"id": "int", "v": "string"}),
        "v": ("s3://others/v", {}),
    }

    story.messages.clear()
    story.record(Ddl("ALTER TABLE `t` ADD COLUMN `w` INT", "shop", "t", WIDER))
    story.insert("t", WIDER, id=2, v="two", w=3)
    story.record(Ddl("DROP TABLE `u`", "shop", "u", None))
    story.record(Ddl("DROP TABLE `v`", "shop", "v", None))
    ground.append(story)
    address = site.environment["AIRFLOW_CONN_THE_CATALOG"]
    site.environment["AIRFLOW_CONN_THE_CATALOG"] = json.dumps(catalog.away)
    before = catalog.tables(database)
    away = site.sync()
    assert (away.code, away.json["status"]) == (0, "done"), away.err
    (warning,) = away.json["warnings"]
    assert "2 tables are left to the next batch" in warning
    assert site.batches()[-1]["result"]["warnings"] == [warning]
    assert catalog.tables(database) == before

    site.environment["AIRFLOW_CONN_THE_CATALOG"] = address
    back = site.sync()  # has nothing new to read
    assert (back.code, back.json.get("warnings")) == (0, None), back.err
    assert catalog.tables(database) == {
        "t": (str(site.location("t")), {"id": "int", "v": "string", "w": "int"}),
        "v": ("s3://others/v", {}),
    }

    story.messages.clear()
    story.record(Ddl("RENAME TABLE `t` TO `n`", "shop", "n", WIDER))
    story.insert("n", WIDER, id=4, v="four", w=4)
    ground.append(story)
    assert site.sync().code == 0
    assert catalog.tables(database) == {
        "n": (str(site.location("n")), {"id": "int", "v": "string", "w": "int"}),
        "v": ("s3://others/v", {}),
    }
