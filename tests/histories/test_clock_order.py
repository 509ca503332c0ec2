# SPDX-License-Identifier: Apache-2.0
"""Random histories as Canal's flat JSON: nothing but the tool's clock orders partitions, and no table is ever wrong."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import spark_jobs.tasks.land
from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.driver.run_batch import sync
from tests.histories.canal_messages import Batch, Canal, batches
from tests.histories.comparison import expected_value, stored_values
from tests.histories.generate import THEMES, history
from tests.histories.log import reader
from tests.histories.records import Record
from tests.histories.run import inline
from tests.histories.source import Content, Name, Picture
from tests.locations import table_location
from tests.sample import amount

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
SEEDS = range(amount(1, 2))  # of each theme and case
# why a table may be parked: the last is not about order, the model puts columns AFTER one that the ALTER renames
KNOWN = ("apply.order_unknown", "apply.schema_missing", "rows arrived but no CREATE TABLE", "ddl.column_unknown")


@dataclass(frozen=True)
class Cuts:
    """Cut a log into batches.

    :param ragged: whether each partition ends elsewhere, also inside of what Canal sent at once.
    :param late: by how many batches the partitions that DDL is on come late.
    """

    count: int = 4
    ragged: bool = True
    late: int = 0


@dataclass
class Run:
    """A history on its way to the lake."""

    root: Path
    sent: list[Batch]
    cuts: Cuts
    rnd: random.Random
    resends: bool = False
    partitions: dict[tuple[str, int], list[Record]] = field(default_factory=dict)
    states: dict[str, TableState] = field(default_factory=dict)
    schema: list[dict[str, Any]] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)

    def run(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Run all batches; return what is wrong at the end without a word of it."""
        shutil.rmtree(self.root, ignore_errors=True)
        ends: dict[tuple[str, int], list[int]] = {}
        for number, batch in enumerate(self.sent):
            for record in batch.records:
                partition = (record.topic, record.partition)
                self.partitions.setdefault(partition, []).append(record)
                ends.setdefault(partition, []).append(number)
        monkeypatch.setattr(spark_jobs.tasks.land, "read_chunks", reader(self.partitions))
        done = dict.fromkeys(ends, 0)
        for number in range(1, self.cuts.count + 1):
            starts = dict(done)
            for partition, numbers in ends.items():
                done[partition] = max(done[partition], self._end(partition, numbers, number))
            chunks = [
                OffsetRange(*partition, starts[partition], end)
                for partition, end in done.items()
                if end > starts[partition]
            ]
            if chunks:
                self._batch(number, chunks)
        return problems(self.root, self.states, self.sent[-1].picture, keyed_only=self.resends)

    def _end(self, partition: tuple[str, int], numbers: Sequence[int], number: int) -> int:
        if number == self.cuts.count:
            return len(numbers)
        if partition[1] == 0:
            number = max(0, number - self.cuts.late)
        target = len(self.sent) * number // self.cuts.count
        if not self.cuts.ragged:
            return sum(one < target for one in numbers)
        width = max(1, len(self.sent) // self.cuts.count)
        middle = sum(one < target + self.rnd.randint(-width, width) for one in numbers)
        return min(len(numbers), max(0, middle + self.rnd.randint(-2, 2)))

    def _batch(self, number: int, chunks: list[OffsetRange]) -> None:
        job = JobDocument(
            "clock",
            number,
            (_BEGIN + timedelta(minutes=number)).isoformat(),
            str(self.root),
            "canal-json",
            {},
            None,
            {},
            chunks,
            RunPolicy(on_drop_table="apply"),
            TableRules(),
            list(self.seqs),
            self.schema,
            list(self.states.values()),
        )
        result = sync(JobDocument.from_document(json.loads(json.dumps(job.document()))), {}, inline, lambda line: None)
        self.schema = self.schema + result.new_schema_changes
        self.states |= {state.table_id: state for state in result.states}
        self.seqs.append(number)


def problems(root: Path, states: dict[str, TableState], picture: Picture, *, keyed_only: bool = False) -> list[str]:
    """Return what is not as in the source, of tables that do not say so themselves.

    :param keyed_only: leave out tables without key: they count rows twice that were sent again.
    """
    wrong = []
    said = {(s.database, s.table) for s in states.values() if s.state in ("parked", "waiting")}
    for state in states.values():
        if state.state in ("parked", "waiting") and not any(reason in state.reason for reason in KNOWN):
            wrong.append(f"{state.database}.{state.table} is {state.state}: {state.reason}")
    alive = {(s.database, s.table) for s in states.values() if s.state == "ok"}
    for name, content in picture.tables.items():
        if name not in said and (content.structure.key or not keyed_only):
            wrong += [f"{'.'.join(name)}: {problem}" for problem in differences(root, name, content)]
    wrong += [f"{'.'.join(name)} is there and not in the source" for name in alive - picture.tables.keys() - said]
    return wrong


def differences(root: Path, name: Name, content: Content) -> list[str]:
    """Return in what a table of the lake differs from the source's."""
    location = Path(table_location(str(root), *name))
    if not (location / "_delta_log").is_dir():
        return ["there is no table"]
    lake = DeltaTable(str(location)).to_pyarrow_table()
    columns = content.structure.columns
    if lake.column_names != [column.name for column in columns]:
        return [f"columns {lake.column_names} instead of {[column.name for column in columns]}"]
    rows = Counter(zip(*(stored_values(lake.column(i), c.kind) for i, c in enumerate(columns)), strict=True))
    expected = Counter(tuple(expected_value(row[c.name], c.kind) for c in columns) for row in content.rows)
    wrong = []
    for sign, more in (("too much", rows - expected), ("missing", expected - rows)):
        wrong += [f"{sign} ({count} x) {str(row)[:200]}" for row, count in list(more.items())[:4]]
    return wrong


def case(theme: str, seed: int, canal: Canal, cuts: Cuts, root: Path) -> Run:
    """Return the run of a seed, always the same."""
    statements = history(THEMES[theme], random.Random(f"{theme} {seed}"))
    sent = batches(canal, statements, random.Random(f"{theme} {seed} canal"))
    return Run(root, sent, cuts, random.Random(f"{theme} {seed} cuts"), canal.resends > 0)


CASES = {
    "one-partition-aligned": (Canal(1), Cuts(ragged=False)),
    "one-partition-ragged": (Canal(1), Cuts()),
    "three-partitions-aligned": (Canal(3), Cuts(ragged=False)),
    "three-partitions-one-batch": (Canal(3), Cuts(1)),
    "three-partitions-ragged": (Canal(3), Cuts(5)),
    "three-partitions-late-ddl": (Canal(3), Cuts(5, late=2)),
    "three-partitions-sent-again": (Canal(3, resends=0.3), Cuts(5)),
    "topic-per-table-sent-again": (Canal(3, topic_per_table=True, resends=0.3), Cuts(3)),
    "topic-per-table-ragged": (Canal(3, topic_per_table=True), Cuts(5)),
    "topic-per-table-late-ddl": (Canal(3, topic_per_table=True), Cuts(5, late=2)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("theme", THEMES)
def test_no_table_is_wrong_without_saying_so(
    theme: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canal, cuts = CASES[name]
    wrong = {}
    for seed in SEEDS:
        differing = case(theme, seed, canal, cuts, tmp_path / "lake").run(monkeypatch)
        if differing:
            wrong[seed] = differing
    assert not wrong, "\n".join(f"{seed}: {text}" for seed, differing in wrong.items() for text in differing[:3])
