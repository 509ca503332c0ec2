# SPDX-License-Identifier: Apache-2.0
"""A history as Canal's flat JSON, with the clocks and batches of a Canal server (docs/wire/canal.md 5.2, 5.3).

A batch's records of one topic are built one after the other, mostly several in a millisecond; those of several topics
side by side. The next batch is built once the one before is sent.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from typing import Any

from tests.cross_format.canal_values import java_hash
from tests.histories.ddl_statements import Alter, Drop, Rename
from tests.histories.kinds import Kind, moment_text, time_text, utc
from tests.histories.records import Record
from tests.histories.source import Event, Name, Picture, Row, RowEvent, Source, Statement, Structure

START = 1_700_000_000  # seconds since 1970 at which histories begin
_TYPES = {"c": "INSERT", "u": "UPDATE", "k": "UPDATE", "d": "DELETE"}


@dataclass(frozen=True)
class Canal:
    """Set up a Canal server and how it fares.

    :param partitions: of every topic, rows hashed over them by key.
    :param topic_per_table: whether each table has its own topic (dynamicTopic), else all are in one.
    :param resends: chance of a batch to be sent again, since the broker did not answer in time.
    """

    partitions: int = 3
    topic_per_table: bool = False
    resends: float = 0.0


@dataclass(frozen=True)
class Batch:
    """Hold what Canal sends at once.

    :param records: in the order of sending, each with its ``time`` as Canal's clock showed it.
    :param picture: what the source holds after it.
    """

    records: list[Record]
    picture: Picture


@dataclass
class _Message:
    """One record to be; those that Canal split off one entry, by partition, have one time.

    :param entry: the event that it comes from.
    """

    topic: str
    partition: int
    members: dict[str, Any]
    entry: object


def batches(canal: Canal, statements: Sequence[Statement], rnd: random.Random) -> list[Batch]:
    """Return everything that Canal sends of these statements."""
    source, second, clock, number, sent = Source(), START, START * 1000, 0, []
    held: list[_Message] = []
    for index, statement in enumerate(statements):
        second += rnd.choice((0, 0, 0, 1, 7))
        held += _messages(canal, statement, source.run(statement), second)
        if not held or (rnd.random() < 0.6 and index + 1 < len(statements)):
            continue
        for _ in range(2 if rnd.random() < canal.resends else 1):
            number += 1
            clock = max(clock, second * 1000) + rnd.randint(1, 300)
            records = _built(held, number, clock, rnd)
            clock = max(record.time for record in records)
            sent.append(Batch(records, source.picture()))
        held = []
    return sent


def _built(messages: Sequence[_Message], number: int, clock: int, rnd: random.Random) -> list[Record]:
    """Return the records of one batch, topics side by side, in the order of their times."""
    records = []
    for _, mine in groupby(sorted(messages, key=lambda one: one.topic), key=lambda one: one.topic):
        time = clock + rnd.choice((0, 0, 1, 3, 50))
        for _, parts in groupby(mine, key=lambda one: id(one.entry)):
            time += rnd.choice((0, 0, 0, 0, 1))
            records += [_record(part, number, time) for part in parts]
    return sorted(records, key=lambda record: record.time)


def _record(message: _Message, number: int, time: int) -> Record:
    members = {**message.members, "id": number, "ts": time}
    text = json.dumps(dict(sorted(members.items())), ensure_ascii=False)
    return Record(message.topic, message.partition, time, None, text.encode())


def _messages(canal: Canal, statement: Statement, events: Sequence[Event], second: int) -> list[_Message]:
    if not events:
        return []
    if isinstance(events[0], RowEvent):
        return _together([replace(_row(canal, event, second), entry=events) for event in events])
    text = events[0].records[0][1] if isinstance(statement, Alter) else statement.sql()
    name = _names(statement)[0]
    kind = {"DROP": "ERASE"}.get(text.split()[0], text.split()[0])
    members = _members(name, kind, second) | {"isDdl": True, "sql": text}
    return [_Message(_topic(canal, name), 0, members, events)]


def _names(statement: Any) -> list[Name]:
    """Return the tables that a statement names first."""
    if isinstance(statement, Rename):
        return [old for old, _ in statement.pairs]
    return list(statement.names) if isinstance(statement, Drop) else [statement.name]


def _topic(canal: Canal, name: Name) -> str:
    return re.sub(r"[^a-z0-9._-]", "_", f"{name[0]}_{name[1]}".lower()) if canal.topic_per_table else "canal"


def _members(name: Name, kind: str, second: int) -> dict[str, Any]:
    empty = dict.fromkeys(("data", "mysqlType", "old", "pkNames", "sqlType"))
    return {
        **empty,
        "database": name[0],
        "table": name[1],
        "type": kind,
        "es": second * 1000,
        "isDdl": False,
        "sql": "",
    }


def _row(canal: Canal, event: RowEvent, second: int) -> _Message:
    shown = event.before if event.after is None else event.after
    assert shown is not None
    data = _image(event.structure, shown)
    old = None
    if event.before is not None and event.after is not None:
        before = _image(event.structure, event.before)
        old = [{name: value for name, value in before.items() if value != data[name]}]
    keys = [data[name] or "" for name in event.structure.key]
    mixed = reduce(lambda x, key: x ^ java_hash(key), keys, java_hash(event.name[0]))
    members = _members(event.name, _TYPES[event.op], second) | {
        "data": [data],
        "old": old,
        "pkNames": list(event.structure.key) or None,
        "mysqlType": {column.name: column.kind.sql().lower() for column in event.structure.columns},
        "sqlType": {column.name: 12 for column in event.structure.columns},
    }
    return _Message(_topic(canal, event.name), abs(mixed) % canal.partitions, members, event)


def _together(messages: Sequence[_Message]) -> list[_Message]:
    """Return one message a partition for the rows of one event, as Canal splits it."""
    result: list[_Message] = []
    for one in messages:
        alike = [m for m in result if m.partition == one.partition and m.members["type"] == one.members["type"]]
        if alike:
            members = alike[0].members
            members["data"] = members["data"] + one.members["data"]
            members["old"] = None if members["old"] is None else members["old"] + one.members["old"]
        else:
            result.append(replace(one))
    return result


def _image(structure: Structure, row: Row) -> dict[str, str | None]:
    return {column.name: _text(row[column.name], column.kind) for column in structure.columns}


def _text(value: Any, kind: Kind) -> str | None:
    if value is None:
        return None
    match kind.name:
        case "blob":
            return bytes(value).decode("latin-1")
        case "enum":
            return str(kind.labels.index(value) + 1)
        case "date":
            return str(utc(value * 86_400_000_000).date())
        case "datetime" | "timestamp":
            return moment_text(value, kind.length or 0, " ")
        case "time":
            return time_text(value, kind.length or 0)
        case "decimal":
            return format(value, "f")
    return str(value)
