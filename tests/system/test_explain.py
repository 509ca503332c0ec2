# SPDX-License-Identifier: Apache-2.0
"""``plan --explain``: what the next batch would do, from a batch that is resolved and not committed."""

from __future__ import annotations

import hashlib

import pytest

from tests.histories.checksums import checksums
from tests.system.pipeline_site import PipelineSite

pytestmark = pytest.mark.system


@pytest.fixture
def ground(request: pytest.FixtureRequest) -> PipelineSite:
    """Return a pipeline whose topics hold the shop's first phase."""
    topics: PipelineSite = request.getfixturevalue("shop")
    return topics


def written(ground: PipelineSite) -> dict[str, str]:
    """Return a digest of each file of the lake, and of the ledger."""
    ledger = hashlib.blake2b(ground.site.ledger.read_bytes()).hexdigest()
    return {**checksums(ground.site.lake), str(ground.site.ledger): ledger}


def test_the_next_batch_does_what_was_explained_and_nothing_was_written(ground: PipelineSite) -> None:
    assert ground.site.sync().code == 0
    ground.feed(1)
    ground.produce(ground.topic("customers"), b"no JSON at all")
    ground.site.changes["policy"] = {"quarantine_limit": 1}
    before = written(ground)
    answer = ground.site.command("plan", "--explain")
    assert answer.code == 0, answer.err
    assert written(ground) == before
    explained = answer.json["explain"]
    assert explained["error"] is None
    assert explained["parks"] == explained["waits"] == explained["unfit"] == []
    assert len(explained["unreadable"]) == 1

    done = ground.site.sync()
    assert done.code == 0, done.err
    columns = ("action", "upserts", "deletes")
    lines = {table["table"]: [table[name] or 0 for name in columns] for table in done.json["tables"]}
    said = {table["table"]: [table[name] or 0 for name in columns] for table in explained["tables"]}
    assert {name.removeprefix("shop."): line for name, line in said.items()} == lines
    totals: dict[str, int] = {}
    for table in explained["tables"]:
        for name, count in table["changes"].items():
            totals[name] = totals.get(name, 0) + count
    assert totals == done.json["changes"]
    assert len([change for change in explained["ddl"] if not change["snapshot"]]) == done.json["schema_changes"]
    kinds = {change["kind"] for change in explained["ddl"]}
    assert kinds <= {"mapping", "barrier", "destructive", "unknown"}
    merged = [table for table in explained["tables"] if table["action"] == "merge"]
    touched = [table for table in merged if table["files"]]
    assert touched and all(table["file_bytes"] > 0 for table in touched)
    assert ground.site.run("plan", "--explain").out.count("nothing_to_do") == 1


def test_tables_that_would_park_are_named(ground: PipelineSite) -> None:
    assert ground.site.sync().code == 0
    ground.produce(ground.topic("customers"), b"no JSON at all")
    text = ground.site.run("plan", "--explain")
    assert text.code == 0
    assert "land.quarantine_exceeded" in text.out and "customers" in text.out
    before = written(ground)
    explained = ground.site.command("plan", "--explain").json["explain"]
    assert written(ground) == before
    assert explained["error"] is None
    assert explained["parks"] == ["shop.customers"]
