# SPDX-License-Identifier: Apache-2.0
"""Losses that were silent once because a table's rows, its key or its log were taken for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from airflow_provider_cdc.core.apply import record_keys, resolve, resolve_together
from airflow_provider_cdc.core.timeline.builder import TimelineBuilder
from spark_jobs.driver import land_step
from spark_jobs.driver.read_rows import ReadRows
from spark_jobs.driver.unowned_names import UnownedNames
from spark_jobs.lake.tombstones import Tombstones
from tests.histories.debezium_records import ddl
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.histories.silent_case import (
    COLUMNS,
    CREATE,
    KEY,
    Noticed,
    Silent,
    Truth,
    Unswitched,
    holds,
    insert,
    of_public_case,
    update,
)
from tests.histories.silent_records import changed, following, made, said, settings_of, written


def _begun_empty(patch: pytest.MonkeyPatch) -> None:
    """Let a table that a RENAME brings in begin empty, as far as the tool states its columns."""
    patch.setattr(
        TimelineBuilder, "_bring_in", lambda self, change, old, new, *, if_exists: self._discover(change, new)
    )


def _renamed_by(*statements: Record) -> Callable[[Script], Iterator[Truth]]:
    """Return a history in which statements replace a table that has rows by a helper of which the log has none."""

    def history(script: Script) -> Iterator[Truth]:
        script.send(CREATE, insert(1, 110), insert(2, 120))
        yield holds((1, 1), (2, 2))
        script.send(*statements, insert(3, 230))
        yield holds((1, 1), (2, 2), (3, 3))
        script.send(update(1, 300))
        yield holds((1, 10), (2, 2), (3, 3))

    return history


def _said(text: str, pos: int, table: str = "t") -> Record:
    return ddl(text, pos, table=table, columns=COLUMNS, key=KEY)


_SWAP = "RENAME TABLE t TO _t_del, _t_gho TO t"
_helper_unknown = _renamed_by(_said(_SWAP, 200))
_half_a_rename = _renamed_by(_said("RENAME TABLE _t_gho TO t", 200))
_helper_without_rows = _renamed_by(
    _said("CREATE TABLE _t_gho LIKE t", 200, "_t_gho"),
    _said("ALTER TABLE _t_gho ENGINE=InnoDB", 210, "_t_gho"),
    _said(_SWAP, 220),
)


def _without_blocks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReadRows, "blocks", lambda self, timeline, *, is_ok: [])


def _recovered(script: Script) -> Iterator[Truth]:
    back = said("RECOVER TABLE BY JOB 53", kind="CREATE")
    parts = [made("t"), changed("insert", 1), said("DROP TABLE t", gone=True), back, changed("insert", 2)]
    script.send(*written("canal-json", *parts))
    yield holds((1, 1), (2, 2))
    script.send(*written("canal-json", changed("update", 1), first=6))
    yield holds((1, 10), (2, 2))


def _moved_in(script: Script) -> Iterator[Truth]:
    """Rename a table with the row 5 in from a database that is not read, to a name that is free."""
    script.send(*written("canal-protobuf", made("t"), changed("insert", 1), said("DROP TABLE t", gone=True)))
    yield {}
    script.send(*written("canal-protobuf", changed("insert", 6), first=5))
    yield holds((5, 5), (6, 6))
    script.send(*written("canal-protobuf", changed("update", 5), first=6))
    yield holds((5, 50), (6, 6))


def _flashed_back(script: Script) -> Iterator[Truth]:
    name = script.format
    back = said("FLASHBACK TABLE t TO t2", "t2", kind="CREATE")
    parts = [made("t"), changed("insert", 1), said("TRUNCATE TABLE t"), back, changed("insert", 2, "t2")]
    script.send(*written(name, *parts))
    yield holds((1, 1), (2, 2), table="shop.t2")
    script.send(*written(name, changed("update", 1, "t2"), first=6))
    yield holds((1, 10), (2, 2), table="shop.t2")


def _vanishing(patch: pytest.MonkeyPatch) -> None:
    """Pass a statement over that brings a table back, and the rows behind it."""
    patch.setattr(TimelineBuilder, "_restore", lambda self, change, item: None)
    patch.setattr(TimelineBuilder, "_go_on_without_create", lambda self, change, name, known: None)
    patch.setattr(UnownedNames, "_without_table", lambda self, name, groups: [])


def _inferred(patch: pytest.MonkeyPatch) -> None:
    """Let rows of a name that a statement freed make a new table."""
    patch.setattr(TimelineBuilder, "_restore", lambda self, change, item: None)
    patch.setattr(
        TimelineBuilder, "_go_on_without_create", lambda self, change, name, known: self._discover(change, name)
    )


def _keyed_by_choice(script: Script) -> Iterator[Truth]:
    first, second = of_public_case("message-key-columns")
    script.send(first, second)
    yield holds((1, 7, "a"), (2, 7, "b"))
    script.send(following(first, "u", {"v": "c"}, 400))
    yield holds((1, 7, "c"), (2, 7, "b"))


def _proven_keys(patch: pytest.MonkeyPatch) -> None:
    """Take each record's key for the table's."""
    for module in (record_keys, resolve, resolve_together):
        patch.setattr(module, "is_unproven", lambda timeline, wire: False)


def _compacted(script: Script) -> Iterator[Truth]:
    """Let compaction take the delete of the row 1 away and leave its tombstone; later the row comes again."""
    first = insert(1, 110)
    script.send(CREATE, first, insert(2, 120))
    yield holds((1, 1), (2, 2))
    script.send(replace(first, value=None))
    yield holds((2, 2))
    script.send(insert(1, 300))
    yield holds((1, 1), (2, 2))


def _compacted_for_ever(script: Script) -> Iterator[Truth]:
    """Let compaction take it away of a row that never comes again."""
    first = insert(1, 110)
    script.send(CREATE, first, insert(2, 120))
    yield holds((1, 1), (2, 2))
    script.send(replace(first, value=None))
    yield holds((2, 2))
    script.send(update(2, 300))
    yield holds((2, 20))


def _without_tombstones(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Tombstones, "_alone", lambda self, records: [])


def _two_shards(script: Script) -> Iterator[Truth]:
    records = of_public_case("two-connectors-one-pipeline")
    script.send(*records)
    yield holds((1, "s1b"), (1, "s2"))
    script.send(following(next(r for r in records if r.topic == "s2.shop.t"), "u", {"v": "s2b"}, 400))
    yield holds((1, "s1b"), (1, "s2b"))


def _any_log(patch: pytest.MonkeyPatch) -> None:
    _proven_keys(patch)
    patch.setattr(land_step, "demand_one_log", lambda job, read, known: None)


_WITHOUT_SCHEMA_TOPIC = {"schema_topic": None}
_BEGUN_BY_ROWS = "an older row is changed; not parked, because a table without CREATE TABLE may lack rows"

CASES: tuple[Silent | Unswitched, ...] = (
    Silent(
        "K1a",
        "gh-ost's cut-over with a helper table that is not in the log: older rows were missing",
        _helper_unknown,
        _begun_empty,
        "parked",
        Noticed.LATER,
        "a row of the helper table is changed",
        "key_missing, parked",
    ),
    Silent(
        "K1b",
        "gh-ost's cut-over with a helper table of which the log has statements, not rows: older rows were missing",
        _helper_without_rows,
        _without_blocks,
        "parked",
        Noticed.LATER,
        "a row of the helper table is changed",
        "key_missing, parked",
    ),
    Silent(
        "K1c",
        "gh-ost's cut-over of which the log has the second half of the RENAME only: older rows were missing",
        _half_a_rename,
        _begun_empty,
        "waiting, parked",
        Noticed.LATER,
        "a row of the helper table is changed",
        "key_missing, parked",
    ),
    Silent(
        "K2a",
        "TiCDC, RECOVER TABLE in the batch of the DROP TABLE: all rows were missing",
        _recovered,
        _vanishing,
        "parked",
        Noticed.NEVER,
        "the changes behind the statement are passed over with it",
        silent=1,
        pipeline=settings_of("canal-json"),
    ),
    Silent(
        "K2b",
        "Canal, a table of an unread database takes a free name: its older rows were missing",
        _moved_in,
        _inferred,
        "parked",
        Noticed.LATER,
        _BEGUN_BY_ROWS,
        "key_missing, counted",
        pipeline=settings_of("canal-protobuf"),
    ),
    Silent(
        "K2c",
        "TiCDC, FLASHBACK TABLE to a new name: its older rows were missing",
        _flashed_back,
        _inferred,
        "parked",
        Noticed.LATER,
        "an older row is changed; not parked, because a clock orders the changes",
        "key_missing, counted",
        silent=1,
        pipeline=settings_of("canal-json"),
    ),
    Silent(
        "K2c",
        "OMS, FLASHBACK TABLE to a new name: its older rows were missing",
        _flashed_back,
        _inferred,
        "parked",
        Noticed.LATER,
        _BEGUN_BY_ROWS,
        "key_missing, counted",
        silent=1,
        pipeline=settings_of("oms-default-extended"),
    ),
    Silent(
        "K3",
        "keys of records that are not the table's (`message.key.columns`): rows with one of them replaced each other",
        _keyed_by_choice,
        _proven_keys,
        "apply.key_unproven",
        Noticed.SAME,
        "the second row has a key that is there; not parked, because rows with one key are compared apart",
        "key_there, counted",
        silent=1,
        pipeline=_WITHOUT_SCHEMA_TOPIC,
    ),
    Silent(
        "K8",
        "a delete that compaction took away, of a key that comes again: the row stayed",
        _compacted,
        _without_tombstones,
        "land.quarantine_exceeded",
        Noticed.LATER,
        "the key is inserted again",
        "key_there, parked",
    ),
    Silent(
        "K8",
        "a delete that compaction took away, of a key that never comes again: the row stayed",
        _compacted_for_ever,
        _without_tombstones,
        "land.quarantine_exceeded",
        Noticed.NEVER,
        "no record but the tombstone names the row",
    ),
    Silent(
        "K10",
        "two connectors with one table's name in one pipeline: rows with one key replaced each other",
        _two_shards,
        _any_log,
        "source.second_log",
        Noticed.LATER,
        "the stored row is the other server's; before, the partition that is read less far may explain it",
        "row_differs, parked",
        silent=1,
        pipeline=_WITHOUT_SCHEMA_TOPIC,
    ),
    Unswitched(
        "K13",
        "`tables.<name>.create` states another table's columns: rows have other types",
        "it is refused where a pipeline is read, before any history; values are equal, so nothing contradicts them",
    ),
)
