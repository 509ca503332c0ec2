# SPDX-License-Identifier: Apache-2.0
"""A table is not well while a record of it waits in the quarantine, wherever the batches end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import DataError
from tests.histories.debezium_records import TOPIC, ddl, row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

OK, PARKED, DROPPED, REFUSED = "ok", "parked", "dropped", "refused"


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


def create(table: str, pos: int) -> Record:
    columns = {"id": "int", "v": "varchar"}
    text = f"CREATE TABLE `{table}` (`id` int, `v` varchar(20), PRIMARY KEY (`id`))"
    return ddl(text, pos, time=pos, table=table, columns=columns, key=("id",))


def insert(table: str, number: int, pos: int) -> Record:
    return row("c", table, pos, {"id": number, "v": f"v{number}"}, key=("id",), time=pos)


def damaged(record: Record) -> Record:
    """Return a record that names its table and cannot be decoded."""
    value = record.value or b""
    changed = value.replace(b"mysql-bin.000001", b"mysql-bin.9223372036854775808")
    assert changed != value
    return replace(record, value=changed)


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


def outcome(script: Script) -> dict[str, str]:
    """Return the states of all tables that are not dropped."""
    return {s.table: str(s.state) for s in script.states.values() if s.state != DROPPED}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", STORIES)
def test_the_outcome_does_not_depend_on_where_batches_end(name: str, cut: str, log: Log, lake: Path) -> None:
    story = STORIES[name]
    try:
        script = carried_out(story, CUTS[cut](len(story.records)), log, lake)
    except DataError as error:
        assert (error.code, story.ends) == ("land.quarantine_exceeded", {REFUSED: REFUSED}), error
        return
    assert outcome(script) == story.ends
