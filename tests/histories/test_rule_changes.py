# SPDX-License-Identifier: Apache-2.0
"""A table with rows whose rules are others now waits for approval, and says what carrying them out costs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.documents import Rebuild
from airflow_provider_cdc.core.timeline.asked_changes import Answer, AskedChange, newest_answers
from airflow_provider_cdc.core.timeline.rule_costs import Work
from spark_jobs.driver.log_retention import expire_log
from spark_jobs.driver.run_batch import sync
from tests.histories.buckets import split_every_table
from tests.histories.debezium_records import row
from tests.histories.decisions import decide_twice, state_of
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.ruled_table import ANN, BOB, OPTIONS, RECORDS, SALT, digest, gone, put, statement, stored
from tests.histories.run import inline
from tests.histories.scripted import Script
from tests.sinks.kinds import options_of, sink_of, type_of

HASHED: dict[str, Any] = {"columns": {"mask": {"name": "hash"}}}
WAITS = ("parked", "shape.changed")
OTHER = [statement("CREATE TABLE shop.o (id int PRIMARY KEY)", 5), row("c", "o", 41, {"id": 1}, key=("id",), time=41)]
MORE = put(51, id=3, name="Cid", born=1, n="3.00")


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return table t with two rows, and another one."""
    script = Script(log, lake, secrets=SALT, options=OPTIONS)
    script.send(*RECORDS, *OTHER)
    script.sync()
    return script


def change(script: Script, rule: dict[str, Any], *records: Record) -> None:
    """State another rule for the table, and run a batch."""
    script.tables = {"shop.t": rule} if rule else {}
    script.send(*records)
    script.sync()


def version(script: Script) -> int:
    return DeltaTable(str(script.root / "shop" / "t")).version()


def lying(script: Script) -> list[dict[str, Any]]:
    """Return the rows that lie at the table's location, whatever its state."""
    return sorted(DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table().to_pylist(), key=str)


def question(script: Script) -> AskedChange:
    (item,) = script.waiting("t")
    return item


RULES: list[dict[str, Any]] = [
    HASHED,
    {"columns": {"exclude": ["name"]}},
    {"columns": {"rename": {"name": "nick"}}},
    {"columns": {"type": {"born": "string"}}},
    {"columns": {"add": {"x": "id + 1"}}},
    {"columns": {"metadata": {"op": "_op"}}},
    {"filter": "name IS NOT NULL"},
    {"mode": "soft_delete"},
    {"mode": "history"},
    {"mode": "append"},
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_table_stays_as_it_was_until_it_is_approved_and_others_go_on(
    script: Script, log: Log, lake: Path, rule: dict[str, Any]
) -> None:
    before, at = lying(script), version(script)
    more = row("c", "o", 52, {"id": 2}, key=("id",), time=52)
    change(script, rule, MORE, more)
    assert state_of(script, "t") == WAITS
    assert (lying(script), version(script)) == (before, at)
    assert script.rows("shop", "o") == {(1,): 1, (2,): 1}
    late = put(61, id=4, name="Dan", born=2, n="4.00")
    script.send(late)
    script.sync()
    assert version(script) == at
    assert question(script).policy == "on_rule_change"
    script.decide("t", Answer.APPLY)
    assert script.waiting("t") == []
    approved = stored(script)
    log.partitions.clear()
    fresh = Script(log, lake / "fresh", secrets=SALT, options=OPTIONS, tables={"shop.t": rule})
    fresh.send(*RECORDS, *OTHER, MORE, more, late)
    fresh.sync()
    assert approved == stored(fresh)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_that_is_taken_back_lets_the_table_go_on_by_itself(script: Script, rule: dict[str, Any]) -> None:
    change(script, rule, MORE)
    asked = question(script)
    change(script, {})
    assert [one["id"] for one in stored(script)] == [1, 2, 3]
    assert script.waiting("t") == []
    (item,) = newest_answers(script.asked)
    assert (item.id, item.answer) == (asked.id, Answer.WITHDRAWN)
    script.sync(approval=replace(asked, answer=Answer.APPLY, by="ann"))  # it was sent before
    change(script, rule)
    assert state_of(script, "t") == WAITS


@pytest.mark.parametrize("policy", ["pipeline", "table"])
def test_with_apply_it_goes_on_at_once(script: Script, policy: str) -> None:
    if policy == "pipeline":
        script.policy = {"on_rule_change": "apply"}
    change(script, HASHED if policy == "pipeline" else {**HASHED, "on_rule_change": "apply"}, MORE)
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None, digest("Cid")]
    assert script.asked == []


def test_apply_decides_what_waits(script: Script) -> None:
    change(script, HASHED)
    assert state_of(script, "t") == WAITS
    script.policy = {"on_rule_change": "apply"}
    script.sync()
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None]
    (item,) = newest_answers(script.asked)
    assert (item.answer, item.by) == (Answer.APPLY, "policy on_rule_change: apply")


def test_new_tables_and_tables_without_rows_are_not_asked_about(log: Log, lake: Path) -> None:
    script = Script(log, lake, secrets=SALT, options=OPTIONS, tables={"shop.t": HASHED})
    script.send(RECORDS[0])
    script.sync()
    change(script, {"columns": {"exclude": ["name"]}})
    assert state_of(script, "t") == ("ok", "")
    change(script, HASHED, *RECORDS[1:])
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None]
    assert script.asked == []
    truncated = row("t", "t", 60, None)
    change(script, HASHED, truncated)
    change(script, {})
    assert (state_of(script, "t"), script.asked) == (("ok", ""), [])


def test_the_question_names_each_rule_and_no_value(script: Script) -> None:
    columns = {
        "exclude": "born",
        "rename": {"name": "nick"},
        "mask": {"name": "hash"},
        "add": {"x": "CONCAT(name, 'secret 1')"},
        "metadata": {"op": "_op"},
    }
    change(script, {"columns": columns, "filter": "name <> 'secret 2'", "mode": "soft_delete"})
    expected = [
        "exclude of born: none -> left out",
        "rename of name: none -> nick",
        "mask of name: none -> hash",
        "add of x: none -> an expression",
        "metadata of op: none -> _op",
        "filter: none -> a condition",
        "mode: mirror -> soft_delete",
    ]
    assert sorted(question(script).statement.split("; ")) == sorted(expected)
    script.decide("t", Answer.APPLY)
    columns |= {"exclude": [], "add": {"x": "CONCAT(name, 'secret 3')"}, "mask": {"name": "truncate(1)"}}
    columns = {key: value for key, value in columns.items() if value}
    change(script, {"columns": columns, "filter": "name <> 'secret 4'"})
    expected = [
        "exclude of born: left out -> none",
        "mask of name: hash -> truncate(1)",
        "add of x: an expression -> another expression",
        "filter: a condition -> another condition",
        "mode: soft_delete -> mirror",
    ]
    item = question(script)
    assert sorted(item.statement.split("; ")) == sorted(expected)
    (reason,) = (state.reason for state in script.states.values() if state.table == "t")
    assert item.statement in reason
    assert f"`airflow-cdc approve PIPELINE.yaml shop.t --change {item.id}`" in reason
    assert "secret" not in reason + repr(script.asked)


def test_each_time_that_a_rule_changes_somebody_is_asked(script: Script) -> None:
    for rule, names in ((HASHED, [digest("Ann"), None]), ({}, ["Ann", None])) * 2:
        change(script, rule)
        assert state_of(script, "t") == WAITS
        script.decide("t", Answer.APPLY)
        assert [one["name"] for one in stored(script)] == names


def test_an_approval_is_of_the_rules_that_were_asked_about(script: Script) -> None:
    change(script, HASHED)
    hashed = question(script)
    script.tables = {"shop.t": {"columns": {"mask": {"born": "redact"}}}}
    script.sync(approval=replace(hashed, answer=Answer.APPLY, by="ann"))
    assert state_of(script, "t") == WAITS
    assert [one["name"] for one in lying(script)] == ["Ann", None]
    assert question(script).id != hashed.id
    change(script, HASHED)  # as it was approved
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None]
    assert script.waiting("t") == []


def test_a_batch_that_is_carried_out_again_has_the_approval(script: Script) -> None:
    change(script, HASHED, MORE)
    decide_twice(script, Answer.APPLY)
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None, digest("Cid")]


def test_rules_that_say_the_same_of_the_table_are_no_change_of_it(script: Script) -> None:
    change(script, {"columns": {"mask": {"name": "hash"}, "exclude": ["tmp_*"]}})
    script.decide("t", Answer.APPLY)
    at = version(script)
    change(script, {"columns": {"mask": {"na*": "hash", "email*": "redact"}}}, put(61, "u", BOB, **BOB))
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None]
    assert (script.waiting("t"), version(script)) == ([], at + 1)
    assert script.sync().tables == []


def test_a_rule_that_does_not_fit_is_not_asked_about(script: Script) -> None:
    change(script, {"columns": {"mask": {"nickname": "hash"}}})
    assert state_of(script, "t") == ("parked", "shape.column_unknown")
    assert script.asked == []


def test_another_salt_waits_too_and_with_the_old_one_the_table_goes_on(script: Script) -> None:
    script.policy = {"on_rule_change": "apply"}
    change(script, HASHED)
    script.policy = {}
    script.secrets = {"mask": {"salt": "sea"}}
    script.send(MORE)
    script.sync()
    assert state_of(script, "t") == WAITS
    assert question(script).statement == "mask_connection: another salt"
    script.secrets = SALT
    script.send(put(61, id=4, name="Ann", born=None, n="1.00"))
    script.sync()
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None, digest("Cid"), digest("Ann")]
    script.secrets = {"mask": {"salt": "sea"}}
    script.send(put(71, id=5, name="Ann", born=None, n="1.00"))
    script.sync()
    script.decide("t", Answer.APPLY)
    other = [hashlib.sha256(f"sea{name}".encode()).hexdigest() for name in ("Ann", "Cid")]
    assert [one["name"] for one in stored(script)] == [other[0], None, other[1], other[0], other[0]]


def test_a_table_that_takes_a_name_with_other_rules_waits(script: Script) -> None:
    script.tables = {"shop.u": HASHED}
    renamed = row("c", "u", 51, {"id": 3, "name": "Cid", "born": 1, "n": "3.00"}, key=("id",), time=51)
    script.send(statement("RENAME TABLE shop.t TO shop.u", 45), renamed)
    script.sync()
    assert state_of(script, "u") == WAITS
    assert [one["name"] for one in lying(script)] == ["Ann", None]
    script.decide("u", Answer.APPLY)
    rows = DeltaTable(str(script.root / "shop" / "u")).to_pyarrow_table().to_pylist()
    assert {one["name"] for one in rows} == {digest("Ann"), None, digest("Cid")}


@pytest.mark.parametrize("compared", [False, True])
def test_a_table_that_waits_is_neither_rebuilt_nor_compared(script: Script, compared: bool, tmp_path: Path) -> None:
    script.tables = {"shop.t": HASHED}
    order = Rebuild(["shop.t"], compared=compared)
    scratch = str(tmp_path / "scratch") if compared else ""
    result = sync(replace(script._job(script.ends), order=order, scratch=scratch), SALT, inline, lambda text: None)
    (line,) = result.tables
    assert line.reason.startswith("[shape.changed]")
    assert [one["name"] for one in lying(script)] == ["Ann", None]


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
