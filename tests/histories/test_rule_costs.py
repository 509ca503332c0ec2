# SPDX-License-Identifier: Apache-2.0
"""Say what it costs to carry out changed rules, and for which of them the stored rows are enough."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.timeline.asked_changes import Answer, AskedChange
from airflow_provider_cdc.core.timeline.rule_costs import Work
from spark_jobs.driver.log_retention import expire_log
from spark_jobs.driver.run_batch import sync
from tests.histories.buckets import split_every_table
from tests.histories.decisions import state_of
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.ruled_table import (
    ANN,
    BOB,
    MORE,
    OPTIONS,
    RECORDS,
    SALT,
    change,
    gone,
    put,
    question,
    statement,
    stored,
    with_another,
)
from tests.histories.run import inline
from tests.histories.scripted import Script
from tests.sinks.kinds import options_of, sink_of, type_of

HASHED: dict[str, Any] = {"columns": {"mask": {"name": "hash"}}}


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return table t with two rows, and another one."""
    return with_another(log, lake)


def test_it_says_what_is_read_and_what_older_versions_still_show(script: Script) -> None:
    script.send(put(45, "u", BOB, **{**BOB, "name": "Bob"}))
    script.sync()
    change(script, {"columns": {"mask": {"name": "hash"}, "exclude": ["born"]}}, MORE)
    item = question(script)
    assert item.cost is not None
    cost = item.cost
    assert (cost.work, cost.rows, cost.log_rows, cost.is_whole) == (Work.ROWS, 2, 0, True)
    files = DeltaTable(str(script.root / "shop" / "t")).file_uris()
    assert cost.size == sum(Path(file).stat().st_size for file in files)
    assert cost.still_shown == ["name", "born"]
    made, shown = cost.sentences("shop.t")
    assert made.startswith("all rows of the table of 2 rows in ")
    assert made.endswith(" are written again from the stored ones, the change log is not read")
    assert shown == (
        "older versions of the table still show name, born: "
        "`airflow-cdc maintain PIPELINE.yaml --purge shop.t` expires them"
    )
    (reason,) = (state.reason for state in script.states.values() if state.table == "t")
    assert made in reason
    assert shown in reason
    change(script, {"filter": "name IS NOT NULL"})
    (filtered,) = [item.cost for item in script.waiting("t")]
    assert filtered is not None
    assert (filtered.work, filtered.log_rows) == (Work.LOG, 4)
    assert filtered.still_shown == ["rows that do not pass the filter"]
    assert "4 changes (" in filtered.sentences("shop.t")[0]


def test_of_a_change_log_that_lacks_rows_it_says_so_and_the_table_waits_for_a_snapshot(script: Script) -> None:
    script.send(MORE)
    script.sync()
    expire_log(script._job(script.ends), 1, {})
    change(script, {"filter": "name IS NOT NULL"})
    item = question(script)
    assert item.cost is not None
    assert not item.cost.is_whole
    assert "`airflow-cdc rebuild PIPELINE.yaml shop.t --from snapshot`" in item.cost.sentences("shop.t")[0]
    script.decide("t", Answer.APPLY)
    assert state_of(script, "t") == ("parked", "retention.log_expired")
    change(script, {})
    assert [one["name"] for one in stored(script)] == ["Ann", None, "Cid"]


def test_a_preview_says_what_it_costs_now(script: Script, tmp_path: Path) -> None:
    change(script, {"filter": "name IS NOT NULL"})
    script.minutes += 1
    script.send(MORE)
    ends = {where: len(records) for where, records in script.log.partitions.items()}
    job = replace(script._job(ends), scratch=str(tmp_path / "scratch"))
    (document,) = sync(job, SALT, inline, lambda text: None).asked_changes
    item = AskedChange.from_document(document)
    assert item.id == question(script).id
    assert item.cost is not None
    assert (item.answer, item.cost.log_rows, item.cost.rows) == (Answer.OPEN, 3, 2)


def test_of_rows_that_did_not_fit_the_change_log_is_read_again(log: Log, lake: Path) -> None:
    rule = {"columns": {"add": {"q": "10 % n"}}, "quarantine_limit": 1}
    script = Script(log, lake, tables={"shop.t": rule}, options=OPTIONS)
    script.send(*RECORDS, put(41, id=3, name="0", born=None, n="0.00"))
    script.sync()
    assert [one["id"] for one in stored(script)] == [1, 2]
    change(script, {"columns": {"exclude": ["born"]}, "quarantine_limit": 1})
    item = question(script)
    assert item.cost is not None
    assert item.cost.work == Work.LOG
    script.decide("t", Answer.APPLY)
    assert [one["id"] for one in stored(script)] == [1, 2, 3]


def test_an_iceberg_table_is_renamed_in_its_metadata_and_written_again_where_values_go(log: Log, lake: Path) -> None:
    lake.mkdir(parents=True, exist_ok=True)
    kind: dict[str, Any] = {"sink_type": type_of("iceberg"), "sink_options": options_of("iceberg", lake)}
    script = Script(log, lake, secrets=SALT, options=OPTIONS, **kind)
    script.send(*RECORDS)
    script.sync()

    def files() -> set[str]:
        table: Any = sink_of("iceberg", lake).open(f"{lake}/shop/t")
        return {file.path for file in table.files()}

    first = files()
    for rule, work, stays in (
        ({"columns": {"rename": {"name": "nick"}}}, Work.METADATA, True),
        ({"columns": {"rename": {"name": "nick"}, "exclude": ["born"]}}, Work.ROWS, False),
    ):
        change(script, rule)
        item = question(script)
        assert item.cost is not None
        assert item.cost.work == work
        script.decide("t", Answer.APPLY)
        assert state_of(script, "t") == ("ok", "")
        assert (files() == first) == stays
    rows = sink_of("iceberg", lake).open(f"{lake}/shop/t").rows()
    assert rows.column_names == ["id", "nick", "n"]
    assert rows.column("nick").to_pylist() == ["Ann", None]


@pytest.mark.parametrize("rule", [{"columns": {"rename": {"name": "nick"}}}, {"columns": {"metadata": {"op": "_op"}}}])
def test_a_table_in_parts_gets_its_columns_as_one_in_one_task(
    script: Script, rule: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    script.policy = {"on_rule_change": "apply"}
    change(script, rule)
    split_every_table(monkeypatch)
    script.policy |= {"bucket_rows": 1}
    change(script, {}, MORE, gone(61, **ANN))
    assert [(one["id"], one["name"]) for one in stored(script)] == [(2, None), (3, "Cid")]
    assert list(stored(script)[0]) == ["id", "name", "born", "n"]


FROM_ROWS: list[dict[str, Any]] = [
    {"columns": {"mask": {"name": "hash", "n": "truncate(1)", "born": "truncate(year)"}}},
    {"columns": {"mask": {"name": "redact", "id": "hash"}}},
    {"columns": {"exclude": ["name", "born"], "type": {"n": "string"}}},
    {"columns": {"rename": {"name": "nick"}}},
]
AFTER: list[list[Record]] = [
    [],
    [MORE, put(61, "u", BOB, **{**BOB, "name": "Bob"}), gone(71, **ANN)],
    [
        statement("ALTER TABLE shop.t ADD COLUMN w int DEFAULT 7, DROP COLUMN born", 55),
        put(61, id=3, name="C", n="1.00", w=1),
    ],
    [
        statement("ALTER TABLE shop.t MODIFY n decimal(14,4), RENAME COLUMN name TO b", 55),
        put(61, id=3, b="C", born=1, n="1.0000"),
    ],
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sink", ["delta", "iceberg"])
@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "history"])
@pytest.mark.parametrize("after", range(len(AFTER)))
@pytest.mark.parametrize("rule", FROM_ROWS, ids=str)
def test_columns_that_the_stored_rows_have_are_made_of_them_without_the_change_log(
    log: Log, lake: Path, rule: dict[str, Any], after: int, mode: str, sink: str
) -> None:
    of_mode = {} if mode == "mirror" else {"mode": mode}

    def begun(root: Path, **stated: Any) -> Script:
        kind = {"sink_type": type_of(sink), "sink_options": options_of(sink, root)}
        tables, policy = {"shop.t": {**of_mode, **stated}}, {"on_rule_change": "apply"}
        root.mkdir(parents=True)
        script = Script(log, root, secrets=SALT, options=OPTIONS, tables=tables, policy=policy, **kind)
        script.send(*RECORDS)
        return script

    script = begun(lake / "one")
    script.sync()
    script.send(put(41, "u", BOB, **BOB))
    script.sync()
    expire_log(script._job(script.ends), 1, {})
    script.send(*AFTER[after])
    script.tables = {"shop.t": {**of_mode, **rule}}
    script.sync()
    assert state_of(script, "t")[0] == "ok", [state.reason for state in script.states.values()]
    log.partitions.clear()
    fresh = begun(lake / "two", **rule)
    fresh.send(put(41, "u", BOB, **BOB), *AFTER[after])
    fresh.sync()
    rows = [sink_of(sink, one.root).open(f"{one.root}/shop/t").rows() for one in (script, fresh)]
    assert rows[0].schema == rows[1].schema
    assert sorted(map(repr, rows[0].to_pylist())) == sorted(map(repr, rows[1].to_pylist()))
