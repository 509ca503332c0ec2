# SPDX-License-Identifier: Apache-2.0
"""One live pipeline, from one trouble to the next: each verb frees what is stuck, and readers never miss rows."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from tests.airflow.shop import rows
from tests.cross_format.debezium_json_writer import Writer
from tests.cross_format.events import Ddl
from tests.services.broker import Broker
from tests.system.bad_rows import BAD, GOOD, repaired, update, waiting
from tests.system.ground import INT, PLAIN, Ground, Story
from tests.system.site import Site

pytestmark = pytest.mark.system

LONGER = TableSchema((Column(1, "id", INT, False), Column(2, "v", ColumnType("varchar", 40))), (1,))
Content = dict[int, str]


@contextmanager
def reading(location: Path) -> Iterator[list[int]]:
    """Count the rows of a table again and again while the block runs."""
    counts: list[int] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.wait(0.05):
            counts.append(DeltaTable(str(location)).to_pyarrow_table().num_rows)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield counts
    finally:
        ended.set()
        reader.join()


def as_incremental(story: Story) -> None:
    """Turn the last row into one of an incremental snapshot, as Debezium 3.5 writes it."""

    def change(value: bytes) -> bytes:
        record = json.loads(value)
        change = record.get("payload", record)
        change["op"], change["source"]["snapshot"], change["source"]["row"] = "r", "incremental", 0
        return json.dumps(record).encode()

    story.change_last(change)


@dataclass
class Walk:
    """One pipeline on its way, and what the source has in ``shop.t``.

    :ivar expected: values by id.
    """

    ground: Ground
    story: Story = field(default_factory=lambda: Story(Writer()))
    expected: Content = field(default_factory=dict)

    @property
    def site(self) -> Site:
        return self.ground.site

    @property
    def location(self) -> Path:
        return self.site.location("t")

    def insert(self, key: int) -> None:
        self.expected[key] = f"v{key}"
        self.story.insert("t", id=key, v=f"v{key}")

    def send(self) -> None:
        self.ground.append(self.story)
        self.story.messages.clear()

    def verb(self, *arguments: str, code: int = 0) -> Any:
        """Run a verb, demand its exit code and return its JSON."""
        answer = self.site.run(*arguments, "--json")
        assert answer.code == code, answer.out + answer.err
        return answer.json

    def content(self, table: str = "t") -> Content:
        return {row["id"]: row["v"] for row in rows(self.site.lake, "shop", table)}

    # ---- steps

    def begin(self) -> None:
        for table in ("t", "u"):
            self.story.create(table)
        self.story.insert("u")
        for key in range(1, 31):
            self.insert(key)
        self.ground.send(self.story)
        self.story.messages.clear()
        self.verb("sync")

    def repair_a_record(self) -> None:
        self.insert(31)
        self.story.change_last(lambda value: value.replace(GOOD, BAD))
        self.send()
        self.verb("sync", code=3)
        (entry,) = waiting(self.ground)
        assert (entry["table"], entry["code"]) == ("shop.t", "record.malformed")
        self.verb("quarantine", "replay", repaired(self.ground, lambda value: value.replace(BAD, GOOD)))
        assert self.content() == self.expected

    def lose_rows(self) -> None:
        """Let rows go without row events, and a TRUNCATE wait for a decision."""
        self.story.record(Ddl("ALTER TABLE `t` DROP PARTITION p0", "shop", "t", PLAIN))
        self.story.record(Ddl("TRUNCATE TABLE `u`", "shop", "u", PLAIN))
        self.send()
        explained = self.verb("plan", "--explain")["explain"]
        assert [ask["table"] for ask in explained["asks"]] == ["u"]
        assert any("DROP PARTITION" in change["text"] for change in explained["ddl"])
        reasons = {line["table"]: line["reason"] for line in self.verb("sync", code=3)["parked"]}
        assert reasons["t"].startswith("needs rebuild") and "[apply.approval_required]" in reasons["u"]
        self.expected = {key: value for key, value in self.expected.items() if key > 10}

    def take_an_incremental_snapshot(self) -> None:
        """Let a snapshot state the rows; key 20 changes while its chunk is read, which so leaves it out."""
        update(self.story, "t", id=20, v="newest")
        self.expected[20] = "newest"
        for key, value in self.expected.items():
            if key != 20:
                self.story.insert("t", id=key, v=value)
                as_incremental(self.story)
        self.send()
        self.verb("sync", code=3)
        lines = self.verb("rebuild", "shop.t", "--from", "snapshot", code=3)["tables"]  # u waits still
        assert [(line["table"], line["state"]) for line in lines if line["table"] == "t"] == [("t", "ok")]
        assert self.content() == self.expected

    def approve(self) -> None:
        self.verb("approve", "shop.u", "--by", "ann")
        assert self.content("u") == {}

    def go_back_behind_a_vacuumed_version(self) -> None:
        late = self.story.number + 1
        self.story.number = late
        update(self.story, "t", id=21, v="after")
        self.expected[21] = "after"
        self.send()
        self.verb("sync")
        assert DeltaTable(str(self.location)).vacuum(0, dry_run=False, enforce_retention_duration=False)
        newest, self.story.number = self.story.number, late - 1
        self.story.record(Ddl("ALTER TABLE `t` MODIFY `v` VARCHAR(40)", "shop", "t", LONGER))
        self.story.number = newest
        self.send()
        (line,) = self.verb("sync")["tables"]
        assert (line["table"], line["action"]) == ("t", "overwrite")
        assert self.content() == self.expected

    def restore_a_deleted_folder_from_files_with_spark(self) -> None:
        file = self.site.folder / "t.parquet"
        pq.write_table(DeltaTable(str(self.location)).to_pyarrow_table(), file)
        shutil.rmtree(self.location)
        self.site.changes["policy"]["engine"] = "spark"
        # every change so far is in the file
        (line,) = self.verb("rebuild", "shop.t", "--from", str(file), "--since", "2100-01-01")["tables"]
        self.site.changes["policy"]["engine"] = "inline"
        assert (line["table"], line["action"]) == ("t", "create")
        file.unlink()
        assert self.content() == self.expected


@pytest.mark.spark
def test_each_verb_frees_what_is_stuck_and_readers_never_miss_rows(broker: Broker, tmp_path: Path) -> None:
    site = Site(tmp_path, {"bootstrap.servers": broker.bootstrap})
    site.changes["source"] = {"topics": ["walk.rows"], "schema_topic": "walk.schema", "heartbeat_topic": None}
    site.changes["policy"] = {"on_truncate": "ask"}
    walk = Walk(Ground(site, broker, "walk"))
    walk.begin()
    with reading(walk.location) as counts:
        walk.repair_a_record()
        walk.lose_rows()
        walk.take_an_incremental_snapshot()
    assert set(counts) <= {30, 31, len(walk.expected)} and len(walk.expected) == 21
    walk.approve()
    walk.go_back_behind_a_vacuumed_version()
    walk.restore_a_deleted_folder_from_files_with_spark()
    with reading(walk.location) as counts:
        walk.verb("replay")
        walk.verb("maintain")
    assert set(counts) == {len(walk.expected)}
    assert walk.content() == walk.expected
    history = {table["table"]: table for table in walk.verb("tables", "--history")}
    assert [state["state"] for state in history["t"]["states"]].count("parked") == 2
    assert history["u"]["events"][-1]["detail"].startswith("approved by ann at ")
