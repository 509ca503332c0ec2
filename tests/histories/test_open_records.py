# SPDX-License-Identifier: Apache-2.0
"""A table is not well while a record of it waits in the quarantine, wherever the batches end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import Decision, DecisionAction, Rebuild
from airflow_provider_cdc.core.errors import DataError
from tests.histories.debezium_records import TOPIC, ddl, row
from tests.histories.log import Crash, CrashError, Log
from tests.histories.open_records import OK, PARKED, REFUSED, create, insert, outcome
from tests.histories.quarantined import cut_off, record_line, unfit
from tests.histories.records import Record
from tests.histories.scripted import Script


@dataclass(frozen=True)
class Story:
    """Records in the order of their sending, and how each name must end in every cut.

    :param ends: state by the last name of each table, of those that are not dropped; ``refused`` of the pipeline.
    """

    records: Sequence[Record]
    ends: dict[str, str]
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    format: str = "debezium-json"
    schema_topic: str | None = TOPIC


def damaged(record: Record) -> Record:
    """Return a record that names its table and cannot be decoded."""
    value = record.value or b""
    changed = value.replace(b"mysql-bin.000001", b"mysql-bin.9223372036854775808")
    assert changed != value
    return replace(record, value=changed)


def _on(topic: str, record: Record) -> Record:
    return replace(record, topic=topic)


TABLE = "CREATE TABLE `t` (`id` int, `v` varchar(20), PRIMARY KEY (`id`))"
REFUSED_ALL = {REFUSED: REFUSED}

FIRST = Story([create("t", 100), damaged(insert("t", 1, 200)), insert("t", 2, 300), insert("t", 3, 400)], {"t": PARKED})
OTHERS_GO_ON = Story(
    [create("t", 100), create("u", 110), insert("u", 1, 150), damaged(insert("t", 1, 200)), insert("u", 2, 300)],
    {"t": PARKED, "u": OK},
)
CREATE_IS_LATE = Story([damaged(insert("t", 1, 200)), create("t", 100), insert("t", 2, 300)], {"t": PARKED})
ONLY_BAD = Story([damaged(insert("t", 1, 200)), create("t", 100)], {"t": PARKED})
BEHIND_GOOD_ONES = Story(
    [create("t", 100), insert("t", 1, 150), damaged(insert("t", 2, 200)), insert("t", 3, 300)], {"t": PARKED}
)
RENAMED = Story(
    [
        create("t", 100),
        insert("t", 1, 150),
        damaged(insert("t", 2, 200)),
        ddl("RENAME TABLE `t` TO `u`", 250, time=250),
        insert("u", 3, 300),
    ],
    {"u": PARKED},
)
RENAMED_TWICE = Story(
    [
        create("t", 100),
        damaged(insert("t", 2, 200)),
        ddl("RENAME TABLE `t` TO `u`", 250, time=250),
        ddl("RENAME TABLE `u` TO `w`", 260, time=260),
        insert("w", 3, 300),
    ],
    {"w": PARKED},
)
NAME_TAKEN_BY_ANOTHER = Story(
    [
        create("t", 100),
        insert("t", 1, 150),
        damaged(insert("t", 2, 200)),
        ddl("RENAME TABLE `t` TO `u`", 250, time=250),
        create("t", 260),
        insert("t", 7, 300),
        insert("u", 3, 310),
    ],
    {"u": PARKED, "t": OK},
)
REPLACED = Story(
    [
        create("t", 100),
        insert("t", 1, 150),
        damaged(insert("t", 2, 200)),
        ddl("DROP TABLE `t`", 250, time=250),
        create("t", 260),
        insert("t", 7, 300),
    ],
    {"t": OK},
)
REPLACED_BEFORE = Story(
    [
        create("t", 100),
        insert("t", 1, 150),
        ddl("DROP TABLE `t`", 250, time=250),
        create("t", 260),
        damaged(insert("t", 2, 270)),
        insert("t", 7, 300),
    ],
    {"t": PARKED},
)
WITHIN_THE_LIMIT = replace(BEHIND_GOOD_ONES, ends={"t": OK}, tables={"shop.t": {"quarantine_limit": 1}})
ABOVE_THE_LIMIT = Story(
    [create("t", 100), damaged(insert("t", 1, 200)), insert("t", 2, 300), damaged(insert("t", 3, 400))],
    {"t": PARKED},
    {"shop.t": {"quarantine_limit": 1}},
)

ROWS_ABOVE_THE_LIMIT = Story(
    [create("t", 100), unfit(insert("t", 1, 200)), insert("t", 2, 300), unfit(insert("t", 3, 400))],
    {"t": PARKED},
    {"shop.t": {"quarantine_limit": 1}},
)
ROWS_WITHIN_THE_LIMIT = replace(ROWS_ABOVE_THE_LIMIT, ends={"t": OK}, tables={"shop.t": {"quarantine_limit": 2}})

UNREADABLE = Story(
    [create("t", 100), create("u", 110), insert("t", 1, 150), insert("u", 1, 160), cut_off(insert("t", 2, 200)),
     insert("t", 3, 300), insert("u", 2, 310)],
    {"t": PARKED, "u": OK},
)  # fmt: skip
UNREADABLE_FIRST = Story(
    [create("t", 100), create("u", 110), cut_off(insert("t", 1, 150)), insert("u", 1, 160), insert("t", 3, 300)],
    {"t": PARKED, "u": OK},
)
UNREADABLE_BEFORE_CREATE = Story([cut_off(insert("t", 1, 150)), create("t", 100), insert("t", 3, 300)], {"t": PARKED})
UNREADABLE_STATEMENT = Story([create("t", 100), insert("t", 1, 150), cut_off(create("u", 160))], REFUSED_ALL)
ON_A_TOPIC_OF_SEVERAL = Story(
    [_on("all", record) for record in (insert("t", 1, 150), cut_off(insert("t", 2, 160)), insert("u", 1, 170))],
    REFUSED_ALL, {"shop.t": {"create": TABLE}, "shop.u": {"create": TABLE.replace("`t`", "`u`")}},
)  # fmt: skip
ON_A_TOPIC_OF_ITS_OWN = Story(
    [_on("mine", record) for record in (insert("t", 1, 150), cut_off(insert("t", 2, 160)), insert("t", 3, 170))]
    + [_on("yours", insert("u", 1, 170))],
    {"t": PARKED, "u": OK}, {"shop.t": {"create": TABLE}, "shop.u": {"create": TABLE.replace("`t`", "`u`")}},
)  # fmt: skip
FIRST_ON_ITS_TOPIC = replace(ON_A_TOPIC_OF_ITS_OWN, records=ON_A_TOPIC_OF_ITS_OWN.records[1:], ends=REFUSED_ALL)
RENAMED_ON_ITS_TOPIC = Story(
    [create("t", 100), _on("mine", insert("t", 1, 150)), ddl("RENAME TABLE `t` TO `u`", 200, time=200),
     _on("mine", insert("u", 2, 250)), _on("mine", cut_off(insert("u", 3, 300))), _on("mine", insert("u", 4, 310))],
    {"u": PARKED},
)  # fmt: skip

STORIES = {name.lower(): story for name, story in list(globals().items()) if isinstance(story, Story)}
CUTS: dict[str, Callable[[int], Iterable[int]]] = {
    "one": lambda count: [count],
    "halves": lambda count: [count // 2, count],
    "each": lambda count: range(1, count + 1),
}


def carried_out(story: Story, ends: Iterable[int], log: Log, lake: Path) -> Script:
    """Sync a story's records in batches that end behind so many of them."""
    script = Script(log, lake, story.format, story.schema_topic, policy=story.policy, tables=story.tables)
    sent = 0
    for end in ends:
        script.send(*story.records[sent:end])
        sent = end
        script.sync()
    return script


@pytest.mark.sampled
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", STORIES)
def test_the_outcome_does_not_depend_on_where_batches_end(name: str, cut: str, log: Log, lake: Path) -> None:
    story = STORIES[name]
    try:
        script = carried_out(story, CUTS[cut](len(story.records)), log, lake)
    except DataError as error:
        assert (error.code, story.ends) == ("land.quarantine_exceeded", REFUSED_ALL), error
        return
    assert outcome(script) == story.ends


def _wrong_format(log: Log, lake: Path, format_name: str) -> Script:
    """Return a pipeline of seven rows that was run once with another format than that of its records."""
    script = Script(log, lake, format_name, TOPIC)
    script.send(create("t", 100), *(insert("t", number, 100 + 10 * number) for number in range(1, 8)))
    return script


def test_a_batch_of_which_nothing_was_applied_is_landed_again_with_the_corrected_format(log: Log, lake: Path) -> None:
    script = _wrong_format(log, lake, "canal-json")
    for _ in range(2):
        with pytest.raises(DataError, match=r"land\.quarantine_exceeded.*quarantine PIPELINE\.yaml"):
            script.sync()
    script.format = "debezium-json"
    assert script.sync().status == "done"
    assert script.states_of("shop", "t") == [OK]
    assert script.rows("shop", "t") == {(number, f"v{number}"): 1 for number in range(1, 8)}
    assert script.open_records() == []


def test_a_batch_that_began_to_apply_is_never_landed_again(log: Log, lake: Path) -> None:
    script = Script(log, lake, schema_topic=TOPIC)
    script.send(create("t", 100), insert("t", 1, 110), replace(cut_off(insert("t", 2, 120)), topic="src.other"))
    with pytest.raises(DataError):
        script.sync()
    script.policy = {"quarantine_limit": 1}
    log.arm(Crash("commit", after=True))
    with pytest.raises(CrashError):
        script.sync()
    log.arm(None)
    (manifest,) = lake.glob("_cdc/*/log/00000001/manifest.json")
    landed = json.loads(manifest.read_text())
    script.format, script.policy = "canal-json", {}
    with pytest.raises(DataError):
        script.sync()
    assert json.loads(manifest.read_text())["groups"] == landed["groups"]


def test_a_table_of_a_wrong_format_that_names_it_waits_for_a_replay(log: Log, lake: Path) -> None:
    script = _wrong_format(log, lake, "dtle-json")
    script.policy = {"quarantine_limit": 1}
    assert script.sync().status == "parked"
    script.format = "debezium-json"
    script.send(insert("t", 8, 200))
    assert script.sync().status == "parked"
    waiting = script.open_records()
    lines = [record_line(e.record, log.partitions[e.topic, e.partition][e.offset]) for e in waiting]
    script.sync(decision=Decision(DecisionAction.REPLAY, [list(entry.record) for entry in waiting], lines))
    assert script.rows("shop", "t") == {(number, f"v{number}"): 1 for number in range(1, 9)}
    assert (outcome(script), script.open_records()) == ({"t": OK}, [])


def test_a_table_whose_first_rows_come_with_the_corrected_format_goes_on(log: Log, lake: Path) -> None:
    script = _wrong_format(log, lake, "dtle-json")
    script.policy = {"quarantine_limit": 1}
    script.sync()
    script.format = "debezium-json"
    script.send(create("u", 200), insert("u", 1, 210))
    script.sync()
    assert outcome(script)["u"] == OK
    assert script.rows("shop", "u") == {(1, "v1"): 1}


def _healed(log: Log, lake: Path) -> Script:
    """Return a pipeline that left rows out until the statement came that widens their column."""
    script = Script(log, lake, policy={"quarantine_limit": 3}, schema_topic=TOPIC)
    columns = {"id": "int", "v": "int"}
    make = "CREATE TABLE `t` (`id` int, `v` int, PRIMARY KEY (`id`))"
    script.send(ddl(make, 100, table="t", columns=columns, key=("id",)), _valued(1, 5, 110))
    script.send(_valued(2, "seven", 210), _valued(3, "abc", 220))
    assert script.sync().quarantined == 2
    text = "ALTER TABLE `t` MODIFY `v` varchar(20)"
    script.send(ddl(text, 200, table="t", columns={"id": "int", "v": "varchar"}, key=("id",)))
    script.sync()
    assert script.rows("shop", "t") == HEALED
    return script


HEALED = {(1, "5"): 1, (2, "seven"): 1, (3, "abc"): 1}


def _valued(number: int, value: Any, pos: int) -> Record:
    return row("c", "t", pos, {"id": number, "v": value}, key=("id",), time=pos)


def test_rows_that_fit_after_a_late_statement_wait_no_more(log: Log, lake: Path) -> None:
    script = _healed(log, lake)
    assert script.open_records() == []
    name = ["src.shop.t", 0, 1]
    with pytest.raises(DataError, match=r"quarantine\.not_there"):
        script.sync(decision=Decision(DecisionAction.DISCARD, [name], why="an old list"))
    script.sync(rebuild=Rebuild(["shop.t"]))
    assert script.rows("shop", "t") == HEALED


def test_a_row_that_does_not_fit_after_a_late_statement_either_still_waits(log: Log, lake: Path) -> None:
    script = Script(log, lake, policy={"quarantine_limit": 3}, schema_topic=TOPIC)
    columns = {"id": "int", "v": "int"}
    make = "CREATE TABLE `t` (`id` int, `v` int, PRIMARY KEY (`id`))"
    script.send(ddl(make, 100, table="t", columns=columns, key=("id",)))
    script.send(_valued(1, "one", 210), _valued(2, 1 << 40, 220))
    script.sync()
    text = "ALTER TABLE `t` MODIFY `v` bigint"
    late = ddl(text, 200, table="t", columns=columns, key=("id",))
    script.send(replace(late, value=(late.value or b"").replace(b'"INT"', b'"BIGINT"')))
    script.sync()
    assert script.rows("shop", "t") == {(2, 1 << 40): 1}
    assert [(entry.seq, entry.record) for entry in script.open_records()] == [(1, ("src.shop.t", 0, 0))]


def test_a_replayed_record_is_not_discarded_by_an_old_list(log: Log, lake: Path) -> None:
    script = Script(log, lake, schema_topic=TOPIC)
    broken = insert("t", 1, 110)
    script.send(create("t", 100), damaged(broken))
    script.sync()
    (entry,) = script.open_records()
    names = [list(entry.record)]
    script.sync(decision=Decision(DecisionAction.REPLAY, names, [record_line(entry.record, broken)]))
    with pytest.raises(DataError, match=r"quarantine\.not_there"):
        script.sync(decision=Decision(DecisionAction.DISCARD, names, why="an old list"))
    script.refused = {}
    script.sync(rebuild=Rebuild(["shop.t"]))
    assert script.rows("shop", "t") == {(1, "v1"): 1}


def test_a_decision_that_died_is_carried_out_once(log: Log, lake: Path) -> None:
    script = Script(log, lake, schema_topic=TOPIC)
    broken = insert("t", 1, 110)
    script.send(create("t", 100), damaged(broken))
    script.sync()
    (entry,) = script.open_records()
    decision = Decision(DecisionAction.REPLAY, [list(entry.record)], [record_line(entry.record, broken)])
    log.arm(Crash("commit"))
    with pytest.raises(CrashError):
        script.sync(decision=decision)
    log.arm(None)
    script.sync(decision=decision)
    assert script.rows("shop", "t") == {(1, "v1"): 1}
    assert script.open_records() == []


def test_a_record_is_listed_under_the_table_of_its_topic_and_a_decision_about_it_frees_the_table(
    log: Log, lake: Path
) -> None:
    script = carried_out(UNREADABLE, [len(UNREADABLE.records)], log, lake)
    (entry,) = script.open_records()
    assert (entry.database, entry.table, entry.record) == ("shop", "t", ("src.shop.t", 0, 1))
    script.sync(decision=Decision(DecisionAction.DISCARD, [list(entry.record)], why="a test"))
    assert (outcome(script), script.open_records()) == ({"t": OK, "u": OK}, [])
    assert script.rows("shop", "t") == {(1, "v1"): 1, (3, "v3"): 1}


def test_a_canal_record_is_of_the_one_table_of_its_topic(log: Log, lake: Path) -> None:
    value = {"id": "1", "v": "one"}
    script = Script(log, lake, "canal-json", None)
    good = [
        Record("canal", 0, number, None, json.dumps(_canal(number, value)).encode()) for number in (1_000, 2_000, 3_000)
    ]
    script.send(good[0], cut_off(good[1]), good[2])
    script.sync()
    assert outcome(script) == {"t": PARKED}


def _canal(time: int, row: dict[str, str]) -> dict[str, Any]:
    return {
        "data": [row], "database": "shop", "es": time, "id": time, "isDdl": False, "pkNames": ["id"], "sql": "",
        "mysqlType": {"id": "int", "v": "varchar(20)"}, "sqlType": {"id": 4, "v": 12}, "old": None, "table": "t",
        "ts": time, "type": "INSERT",
    }  # fmt: skip
