# SPDX-License-Identifier: Apache-2.0
"""Tables of another pipeline or a person stay as they are, whatever happens to the table of ours of that name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_provider_cdc.core.documents import JobDocument, Maintenance, Rebuild
from spark_jobs.driver.maintenance import maintain
from tests.histories.debezium_records import ddl, snapshot_ddl
from tests.histories.log import Log
from tests.histories.numbered_rows import COLUMNS, KEY, insert
from tests.histories.place import digests
from tests.histories.run import inline
from tests.histories.scripted import Script

FOREIGN = pa.table({"id": pa.array([7, 8], pa.int32()), "v": pa.array([70, 80], pa.int32())})


def write_by_hand(lake: Path) -> None:
    """Let a person make the table ``shop.t``."""
    write_deltalake(str(lake / "shop" / "t"), FOREIGN)
    write_deltalake(str(lake / "shop" / "t"), FOREIGN, mode="append")


def write_by_other_pipeline(lake: Path) -> None:
    """Let a pipeline of another name make it, in the same root."""
    with pytest.MonkeyPatch.context() as patch:
        log = Log()
        log.install(patch)
        other = Script(log, lake, name="scripted2")
        other.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY)}), insert("t", 7, 110), insert("t", 8, 120))
        other.sync()


def maintained(script: Script) -> list[str]:
    """Maintain the tables; return the codes of what went wrong."""
    job = JobDocument.from_document(script._job(script.ends).document())
    order = Maintenance(1 << 20, 0)
    done = maintain(replace(job, order=order), order, {}, inline).maintained
    return [one.error["code"] for one in done if one.error is not None]


def rename(script: Script) -> None:
    script.send(ddl("RENAME TABLE t TO u", 300, table="u"), insert("u", 2, 310))
    script.sync()


def drop(script: Script) -> None:
    script.send(ddl("DROP TABLE t", 300, table="t"))
    script.sync()


def drop_and_create(script: Script) -> None:
    text = "CREATE TABLE t (id INT PRIMARY KEY, v INT)"
    script.send(ddl("DROP TABLE t", 300, table="t"), ddl(text, 310, table="t", columns=COLUMNS, key=KEY))
    script.send(insert("t", 3, 320))
    script.sync()


def truncate(script: Script) -> None:
    script.send(ddl("TRUNCATE TABLE t", 300, table="t"), insert("t", 3, 310))
    script.sync()


def alter(script: Script) -> None:
    script.send(ddl("ALTER TABLE t ADD COLUMN w INT", 300, table="t", columns={**COLUMNS, "w": "int"}, key=KEY))
    script.sync()


def rebuild(script: Script) -> None:
    script.sync(rebuild=Rebuild(["shop.t"]))


def exclude_and_include(script: Script) -> None:
    script.tables = {"exclude": ["shop.t"]}  # type: ignore[dict-item]
    script.send(insert("other", 1, 300))
    script.sync()
    script.tables = {}
    script.send(insert("t", 4, 310))
    script.sync()


def exchange(script: Script) -> None:
    script.send(ddl("RENAME TABLE t TO x, other TO t, x TO other", 300, table="t"), insert("t", 3, 310))
    script.sync()


def keep_on(script: Script) -> None:
    script.send(insert("t", 2, 300))
    script.sync()


VERBS = [rename, drop, drop_and_create, truncate, alter, rebuild, exclude_and_include, exchange, keep_on]


@pytest.mark.sampled
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("write", [write_by_hand, write_by_other_pipeline])
def test_a_foreign_table_is_untouched(
    write: Callable[[Path], None], verb: Callable[[Script], None], log: Log, lake: Path
) -> None:
    write(lake)
    before = digests(lake / "shop" / "t")
    script = Script(log, lake, policy={"on_drop_table": "apply", "on_truncate": "apply"})
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY), "other": (COLUMNS, KEY)}))
    script.send(insert("t", 1, 110), insert("other", 1, 120))
    script.sync()
    assert [(state.state, state.code) for state in script.states.values() if state.table == "t"] == [
        ("parked", "sink.not_ours")
    ]
    verb(script)
    maintained(script)
    script.send(insert("other", 9, 900))
    script.sync()
    maintained(script)
    assert digests(lake / "shop" / "t") == before
    assert DeltaTable(str(lake / "shop" / "t")).to_pyarrow_table().num_rows in (2, 4)
    for state in script.states.values():
        if (state.table, state.state) == ("t", "ok"):
            pytest.fail("a table is ok at a location that is not ours")


@pytest.mark.parametrize("verb", [rename, drop])
def test_what_a_person_wrote_to_a_table_of_ours_last_is_not_emptied(
    verb: Callable[[Script], None], log: Log, lake: Path
) -> None:
    script = Script(log, lake, policy={"on_drop_table": "apply"})
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY), "other": (COLUMNS, KEY)}), insert("t", 1, 110))
    script.sync()
    write_deltalake(str(lake / "shop" / "t"), FOREIGN, mode="append")
    before = digests(lake / "shop" / "t")
    verb(script)
    assert digests(lake / "shop" / "t") == before
    if verb is rename:
        assert script.rows("shop", "u") == Counter({(1, 1): 1, (2, 2): 1})


def test_a_foreign_table_in_the_place_of_a_table_of_ours_is_not_replaced(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY)}), insert("t", 1, 110))
    script.sync()
    (lake / "shop" / "t").rename(lake.with_name("aside"))
    write_by_hand(lake)
    before = digests(lake / "shop" / "t")
    keep_on(script)
    rebuild(script)
    assert maintained(script) == ["sink.not_ours"]
    assert digests(lake / "shop" / "t") == before
    assert [state.state for state in script.states.values()] == ["parked"]


def test_a_table_of_ours_is_rebuilt_whoever_changed_its_rows(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY)}), insert("t", 1, 110))
    script.sync()
    DeltaTable(str(lake / "shop" / "t")).delete()
    keep_on(script)
    assert [state.code for state in script.states.values()] == ["sink.changed_by_other"]
    rebuild(script)
    assert script.rows("shop", "t") == Counter({(1, 1): 1, (2, 2): 1})


def test_a_rebuild_does_not_replace_what_a_person_wrote_to_an_earlier_table_of_the_name(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY)}), insert("t", 1, 110))
    script.sync()
    write_deltalake(str(lake / "shop" / "t"), FOREIGN, mode="append")
    before = digests(lake / "shop" / "t")
    drop_and_create(script)
    assert sorted(script.states_of("shop", "t")) == ["dropped", "parked"]
    (line,) = script.sync(rebuild=Rebuild(["shop.t"])).tables
    assert line.status == "parked" and "[sink.not_ours]" in line.reason
    assert digests(lake / "shop" / "t") == before
    (lake / "shop" / "t").rename(lake.with_name("aside"))
    rebuild(script)
    assert script.rows("shop", "t") == Counter({(3, 3): 1})


def test_maintenance_leaves_a_table_that_somebody_wrote_to(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY)}), insert("t", 1, 110))
    script.sync()
    keep_on(script)
    assert maintained(script) == []
    write_deltalake(str(lake / "shop" / "t"), FOREIGN, mode="append")
    before = digests(lake / "shop" / "t")
    assert maintained(script) == ["sink.not_ours"]
    assert digests(lake / "shop" / "t") == before
