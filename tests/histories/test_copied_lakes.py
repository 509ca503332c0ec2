# SPDX-License-Identifier: Apache-2.0
"""A lake that was copied or moved is refused before anything is written, and goes on once it is adopted."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_cdc.core.documents import Maintenance
from airflow_provider_cdc.core.errors import SinkError
from spark_jobs.driver.maintenance import maintain
from tests.histories.debezium_records import ddl, snapshot_ddl
from tests.histories.log import Log
from tests.histories.numbered_rows import COLUMNS, KEY, expected, insert
from tests.histories.place import digests
from tests.histories.run import inline
from tests.histories.scripted import Script


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return two tables, one without key, that hold the rows 1 and 2."""
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY), "k": (COLUMNS, ())}))
    for number in (1, 2):
        script.send(insert("t", number, 100 + 10 * number), insert("k", number, 101 + 10 * number, keyed=False))
    script.sync()
    return script


def copied(script: Script, *, ledger: str) -> Script:
    """Return a pipeline on a copy of the lake, whose ledger was copied too, is new, or has all but the lake."""
    root = script.root.with_name("copy")
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(script.root, root)
    copy = replace(script, root=root, states=dict(script.states), seqs=list(script.seqs), ends=dict(script.ends))
    if ledger == "new":
        copy.identity, copy.states, copy.seqs, copy.schema_changes = None, {}, [], []
    if ledger == "older":
        copy.identity = None
    return copy


def refused(script: Script) -> str:
    before = digests(script.root)
    with pytest.raises(SinkError) as caught:
        script.sync()
    assert digests(script.root) == before, "nothing was written"
    assert "airflow-cdc adopt" in caught.value.hint
    return caught.value.code


@pytest.mark.parametrize("ledger", ["copied", "new", "older"])
def test_a_copy_is_refused_and_never_touches_the_original(ledger: str, script: Script) -> None:
    copy = copied(script, ledger=ledger)
    script.send(insert("t", 3, 200), ddl("RENAME TABLE k TO k2", 210, table="k2"))
    before = digests(script.root)
    assert refused(copy) == "lake.moved"
    assert digests(script.root) == before
    order = Maintenance(1 << 20, 0)
    with pytest.raises(SinkError, match="copied or moved"):
        maintain(replace(copy._job({}), order=order), order, {}, inline)


def test_a_copy_goes_on_once_it_is_adopted_and_so_does_the_original(script: Script) -> None:
    copy = copied(script, ledger="copied")
    copy.adopt()
    adopted = copy.identity
    copy.adopt()
    assert copy.identity == adopted, "doing it again changes nothing"
    assert adopted is not None and script.identity is not None and adopted.id != script.identity.id
    script.send(insert("t", 3, 200), ddl("RENAME TABLE k TO k2", 210, table="k2"), insert("k2", 3, 220, keyed=False))
    before = digests(script.root)
    copy.sync()
    assert digests(script.root) == before
    for each in (copy, script):
        if each is script:
            each.sync()
        assert each.rows("shop", "t") == each.rows("shop", "k2") == expected(1, 2, 3)
        assert each.rows("shop", "k") == Counter()


def test_a_ledger_that_went_on_with_the_copy_refuses_the_original(script: Script) -> None:
    copy = copied(script, ledger="copied")
    copy.adopt()
    copy.send(insert("t", 3, 200))
    copy.sync()
    copy.root = script.root
    assert refused(copy) == "lake.other"
    copy.adopt()
    assert copy.identity is not None and copy.identity.root == str(script.root)


def test_a_lake_that_was_moved_is_refused_until_it_is_adopted(script: Script) -> None:
    root = script.root.with_name("moved")
    script.root.rename(root)
    script.root = root
    script.send(insert("t", 3, 200))
    assert refused(script) == "lake.moved"
    script.adopt()
    script.sync()
    assert script.rows("shop", "t") == expected(1, 2, 3)
    assert script.rows("shop", "k") == expected(1, 2)


def test_a_lake_that_was_moved_and_has_a_symlink_at_its_root_is_the_same(script: Script) -> None:
    root = script.root.with_name("moved")
    script.root.rename(root)
    script.root.symlink_to(root)
    script.send(insert("t", 3, 200))
    script.sync()
    script.root = root
    script.send(insert("t", 4, 210))
    script.sync()
    assert script.rows("shop", "t") == expected(1, 2, 3, 4)


def test_claims_and_results_name_the_lake(script: Script) -> None:
    assert script.identity is not None
    folder = script.root / "_cdc" / script.name
    identity = json.loads((folder / "lake.json").read_text())
    assert identity == script.identity.document()
    for kind in ("claim", "manifest", "result"):
        assert json.loads((folder / "log" / "00000001" / f"{kind}.json").read_text())["lake"] == identity


def test_an_empty_root_is_adopted_by_nobody(script: Script, lake: Path) -> None:
    script.root = lake.with_name("empty")
    script.root.mkdir()
    with pytest.raises(SinkError) as caught:
        script.adopt()
    assert caught.value.code == "lake.missing"
    with pytest.raises(SinkError) as caught:
        script.sync()
    assert caught.value.code == "log.missing"
    assert not (script.root / "_cdc" / script.name / "lake.json").exists()
