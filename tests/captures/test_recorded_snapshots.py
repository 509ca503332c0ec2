"""Recorded snapshots of Debezium 3.5: what they write describes the tables, and replaces content only with rows.

The records are read from memory: the broker has its part in ``test_captures.py``.
"""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.storage import table_location
from spark_jobs.writers.delta_location import DeltaLocation
from tests.captures.truth import differing, load
from tests.histories.log import Log
from tests.histories.records import Record as LogRecord
from tests.histories.scripted import Script
from tests.stack.capture import Record, read

DATA = Path(__file__).parent / "data"
RECOVERY, INCREMENTAL = "public-recovery-my8", "public-incremental-my8"
# rows left these two without row events: a foreign key's cascade and DROP PARTITION
NOT_DERIVABLE = {(INCREMENTAL, "shop.child"), (INCREMENTAL, "shop.part")}
Ends = dict[tuple[str, int], int]


@cache
def records(name: str) -> list[Record]:
    return sorted(read(DATA / name), key=lambda record: (record.topic, record.partition, record.offset))


def checkpoints(name: str) -> Iterator[tuple[Path, Ends]]:
    """Return the recorded points: the source's content, and the end offsets of all partitions then."""
    for truth in sorted((DATA / name / "source_at").iterdir()):
        with lzma.open(truth, "rt") as lines:
            told = json.loads(next(lines))["end_offsets"]
        yield truth, {(topic, part): end for topic, ends in told.items() for part, end in enumerate(ends)}


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    log = Log()
    log.install(monkeypatch)
    return log


def pipeline(name: str, log: Log, root: Path, **policy: Any) -> Script:
    for record in records(name):
        partition = log.partitions.setdefault((record.topic, record.partition), [])
        assert record.offset == len(partition)
        partition.append(LogRecord(record.topic, record.partition, record.timestamp, record.key, record.value))
    return Script(log, root, schema_topic=name.replace("-", "_"), policy=policy)


def rising(ends: Ends, done: Ends) -> Ends:
    return {where: max(end, done.get(where, 0)) for where, end in ends.items()}


def compare(name: str, script: Script, truth: Path) -> None:
    wrong = []
    for table in load(truth):
        full = f"{table.database}.{table.table}"
        if (name, full) in NOT_DERIVABLE:
            continue
        states = [state for state in script.states_of(table.database, table.table) if state != "dropped"]
        if states != ["ok"]:
            wrong.append(f"{full} is {states}")
            continue
        place = DeltaLocation(table_location(str(script.root), table.database, table.table), {})
        wrong += [f"{full}: {text}" for text in differing(table, place.rows(), set()) if not _written_otherwise(text)]
    assert not wrong, "\n".join([truth.name, *wrong[:20]])


def _written_otherwise(problem: str) -> bool:
    """Say whether a cell differs only as snapshots write it: spaces in JSON, six digits of a FLOAT (specs B3, B9)."""
    found, differs, wanted = problem.partition('"}: ')[2].partition(" instead of ")
    if not differs:
        return False
    if found.startswith("'{"):
        return bool(json.loads(found.strip("'")) == json.loads(wanted.strip("'")))
    return found.replace(".", "").isdigit() and f"{float(found):.6g}" == f"{float(wanted):.6g}"


@pytest.mark.parametrize("on_drop_table", ["keep", "apply"])
def test_snapshots_without_rows_change_no_table(on_drop_table: str, log: Log, tmp_path: Path) -> None:
    script = pipeline(RECOVERY, log, tmp_path, on_drop_table=on_drop_table)
    for truth, ends in checkpoints(RECOVERY):
        script.sync(ends)
        compare(RECOVERY, script, truth)


@pytest.mark.parametrize("cuts", [1, 3, 12])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", [RECOVERY, INCREMENTAL])
def test_snapshots_cut_anywhere_give_the_final_content(
    name: str, seed: int, cuts: int, log: Log, tmp_path: Path
) -> None:
    script = pipeline(name, log, tmp_path)
    chance = random.Random(f"{seed} {cuts}")
    for number in range(1, cuts):
        ends = {where: chance.randint(0, len(all_) * number // cuts + 3) for where, all_ in log.partitions.items()}
        script.sync(rising({where: min(end, len(log.partitions[where])) for where, end in ends.items()}, script.ends))
    script.sync()
    compare(name, script, DATA / name / "source_final.jsonl.xz")


@pytest.mark.parametrize("first", ["ddl", "rows"])
def test_a_batch_may_end_between_a_snapshots_ddl_and_its_rows(first: str, log: Log, tmp_path: Path) -> None:
    script = pipeline(RECOVERY, log, tmp_path)
    topic = script.schema_topic
    for truth, ends in checkpoints(RECOVERY):
        part = {where: end for where, end in ends.items() if (where[0] == topic) == (first == "ddl")}
        script.sync(part)
        script.sync(ends)
        compare(RECOVERY, script, truth)


def test_ad_hoc_snapshots_of_a_table_without_key_add_no_rows(log: Log, tmp_path: Path) -> None:
    script = pipeline(INCREMENTAL, log, tmp_path)
    passed_over = 0
    for truth, ends in checkpoints(INCREMENTAL):
        result = script.sync(ends)
        passed_over += result.lossy.get("keyless_snapshot_row", 0)
        compare(INCREMENTAL, script, truth)
    assert passed_over == 4  # one for each chunk, as the capture's own account says
    assert script.states_of("shop", "part") == ["parked"]
