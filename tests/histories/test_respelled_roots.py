# SPDX-License-Identifier: Apache-2.0
"""A root that is spelled in another way is the same root: no table is emptied, moved or written again."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.documents import Rebuild, TableState
from tests.histories.debezium_records import ddl, snapshot_ddl
from tests.histories.log import Log
from tests.histories.numbered_rows import COLUMNS, KEY, expected, insert
from tests.histories.scripted import Script


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return two tables, one without key, that hold the rows 1 and 2."""
    script = Script(log, lake, policy={"on_drop_table": "apply"})
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY), "k": (COLUMNS, ())}))
    for number in (1, 2):
        script.send(insert("t", number, 100 + 10 * number), insert("k", number, 101 + 10 * number, keyed=False))
    script.sync()
    return script


def spelled(lake: Path, how: str) -> str:
    if how == "symlink":
        link = lake.with_name("link")
        link.unlink(missing_ok=True)
        link.symlink_to(lake)
        return str(link)
    if how == "dots":
        return f"{lake}/../{lake.name}"
    return how.format(lake)


SPELLINGS = ["file://{}", "/{}", "{}/", "{}/.", "file:///{}//", "symlink", "dots"]


@pytest.mark.parametrize("how", SPELLINGS)
def test_batches_go_on_under_another_spelling(how: str, script: Script, lake: Path) -> None:
    for number, root in enumerate((spelled(lake, how), str(lake), spelled(lake, how))):
        script.root = root  # type: ignore[assignment]
        script.send(insert("t", 3 + number, 200 + 10 * number))
        script.sync()
        script.root = lake
        assert script.rows("shop", "t") == expected(*range(1, 4 + number))
        assert script.rows("shop", "k") == expected(1, 2)
    assert DeltaTable(str(lake / "shop" / "k")).version() == 0, "nothing of it changed"
    assert DeltaTable(str(lake / "shop" / "t")).version() == 3


@pytest.mark.parametrize("how", SPELLINGS)
def test_what_moves_tables_works_under_another_spelling(how: str, script: Script, lake: Path) -> None:
    script.root = spelled(lake, how)  # type: ignore[assignment]
    script.send(ddl("RENAME TABLE t TO u", 300, table="u"), insert("u", 3, 310), ddl("DROP TABLE k", 320, table="k"))
    script.sync()
    script.sync(rebuild=Rebuild(["shop.u"]))
    script.root = lake
    assert script.rows("shop", "u") == expected(1, 2, 3)
    assert script.rows("shop", "t") == script.rows("shop", "k") == Counter()


def test_states_of_earlier_releases_have_whole_locations(script: Script, lake: Path) -> None:
    for state in script.states.values():
        state.location = f"{lake}/{state.location}"
    script.send(insert("t", 3, 200))
    script.sync()
    assert script.rows("shop", "t") == expected(1, 2, 3)
    assert script.rows("shop", "k") == expected(1, 2)
    assert {state.location for state in script.states.values() if state.table == "t"} == {"shop/t"}


def test_states_name_places_below_the_root(script: Script, lake: Path) -> None:
    assert sorted(state.location for state in script.states.values()) == ["shop/k", "shop/t"]
    for file in (lake / "_cdc").rglob("*.json"):
        document = json.loads(file.read_text())
        identity = document if file.name == "lake.json" else document.pop("lake", {})
        assert identity.get("root", str(lake)) == str(lake)
        assert file.name == "lake.json" or str(lake) not in json.dumps(document), file


def test_a_table_state_keeps_no_root() -> None:
    state = TableState("1", "shop", "t", "shop/t")
    assert TableState.from_document(state.document()) == state
