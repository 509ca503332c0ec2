# SPDX-License-Identifier: Apache-2.0
"""A recorded PostgreSQL whose event triggers wrote its DDL: its tables are equal, or not, with reasons of a list."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.sinks.delta.table import DeltaLocation
from tests.captures.in_memory import DATA, Ends, checkpoints, records, rising
from tests.captures.postgres_truth import differing, load
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.locations import table_location
from tests.sample import ALL

NAME = "public-postgres-ddllog-15"
# the recorded triggers were made after the tables, and describe one first where it changes
NOT_DESCRIBED = "rows arrived but no CREATE TABLE"
RANDOM = "each stored row got a value of its own in r"
CONVERTED = "a column was converted: the log does not have what the values became"
OF_PARTITIONS = "its rows come under the names of its partitions"
# by point: the tables that are not equal, and why
SET_ASIDE = {
    0: {"app.products": NOT_DESCRIBED, "app.prices": NOT_DESCRIBED, "app.ratings": NOT_DESCRIBED},
    1: {"app.products": RANDOM, "app.prices": NOT_DESCRIBED, "app.ratings": NOT_DESCRIBED},
    2: {"app.products": RANDOM, "app.prices": CONVERTED, "app.ratings": NOT_DESCRIBED},
    3: {"app.products": RANDOM, "app.prices": CONVERTED, "app.events": OF_PARTITIONS},
    4: {"app.products": RANDOM, "app.tariffs": CONVERTED, "app.events": OF_PARTITIONS},
}
EQUAL = {
    0: set(),
    1: set(),
    2: set(),
    3: {"app.made", "app.p2", "app.renamed"},
    4: {"app.made", "app.p2", "app.renamed"},
}


def script(log: Log, root: Path) -> Script:
    for record in records(NAME):
        partition = log.partitions.setdefault((record.topic, record.partition), [])
        assert record.offset == len(partition)
        partition.append(Record(record.topic, record.partition, record.timestamp, record.key, record.value))
    options = {"connector": "postgresql", "decimal.handling.mode": "string"}
    tables = {"exclude": ["ctl.*"]}
    return Script(log, root, schema_topic="pgdp.ctl.ddl_log", options=options, tables=tables)


def check(script: Script, truth: Path) -> None:
    """Compare each table with the database's own content: it is equal, or not made with the reason of the list."""
    point, equal, aside = int(truth.name.split(".")[0]), set(), {}
    for table in load(truth):
        if table.schema == "ctl":
            continue
        states = [s for s in script.states.values() if (s.database, s.table) == (table.schema, table.table)]
        (state,) = [s for s in states if s.state != "dropped"] or [None]
        if state is None:
            assert _has_partitions(truth, table.name), table.name
            aside[table.name] = OF_PARTITIONS
        elif state.state == "ok":
            location = DeltaLocation(table_location(str(script.root), table.schema, table.table), {})
            assert differing(table, location.rows()) == [], table.name
            equal.add(table.name)
        else:
            reason = state.reason.removeprefix("needs rebuild: ")
            aside[table.name] = next((said for said in SET_ASIDE[point].values() if reason.startswith(said)), reason)
    assert (equal, aside) == (EQUAL[point], SET_ASIDE[point])


def _has_partitions(truth: Path, name: str) -> bool:
    with lzma.open(truth, "rt") as lines:
        next(lines)
        described = [json.loads(line) for line in lines]
    return any(f"{one['schema']}.{one['table']}" == name and one["kind"] == "p" for one in described)


def points() -> Iterator[tuple[Path, Ends]]:
    return checkpoints(NAME)


def test_each_recorded_point(log: Log, tmp_path: Path) -> None:
    pipeline = script(log, tmp_path)
    for truth, ends in points():
        pipeline.sync(rising(ends, pipeline.ends))
        check(pipeline, truth)


@pytest.mark.parametrize(("batches", "seed"), [(1, 1), (3, 1), (12, 1)] + [(12, 2)] * ALL)
def test_any_cuts_come_to_the_same_tables(batches: int, seed: int, log: Log, tmp_path: Path) -> None:
    pipeline, chance = script(log, tmp_path), random.Random(seed)
    full = {where: len(part) for where, part in log.partitions.items()}
    cuts = {w: [*sorted(chance.randint(0, end) for _ in range(batches - 1)), end] for w, end in full.items()}
    for batch in range(batches):
        assert pipeline.sync({where: cuts[where][batch] for where in full}).contradictions == []
    *_, (truth, _) = points()
    check(pipeline, truth)


def test_ddl_that_comes_after_all_rows_is_applied_before_those_that_depend_on_it(log: Log, tmp_path: Path) -> None:
    pipeline = script(log, tmp_path)
    late = {where for where in log.partitions if where[0] == "pgdp.ctl.ddl_log"}
    pipeline.sync({where: len(part) for where, part in log.partitions.items() if where not in late})
    for where in sorted(late):
        pipeline.sync({**pipeline.ends, where: len(log.partitions[where])})
    *_, (truth, _) = points()
    check(pipeline, truth)


def test_a_row_of_the_log_that_cannot_be_read_stops_the_batch_rather_than_a_table(log: Log, tmp_path: Path) -> None:
    pipeline = script(log, tmp_path)
    part = log.partitions["pgdp.ctl.ddl_log", 0]
    damaged = json.loads(part[1].value or b"")
    damaged["after"]["columns"] = "[{}]"
    part[1] = replace(part[1], value=json.dumps(damaged).encode())
    with pytest.raises(Exception, match=r"record\.malformed"):
        pipeline.sync()


def test_the_records_are_there() -> None:
    assert len(records(NAME)) == 296
    assert (DATA / NAME / "README.md").is_file()
