# SPDX-License-Identifier: Apache-2.0
"""Replays a history in random batches with crashes, and compares the lake with the model."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import traceback
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.commands.show import table_documents
from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument, Result, TableState
from airflow_provider_cdc.core.errors import CdcError, DataError
from airflow_provider_cdc.core.formats.common.record_groups import last_cut
from airflow_provider_cdc.core.formats.contract import Grouped
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.driver.approval import NewGenerationError
from spark_jobs.driver.run_batch import sync
from spark_jobs.driver.task_runner import Runner
from spark_jobs.sinks.contract import Sink, Stored
from tests.histories.alarms import Alarms
from tests.histories.comparison import unlike
from tests.histories.flaws import FILTERED, FILTERED_COLUMN, HIDDEN_HELPERS, REASONS, TYPED_NAMES, is_helper, unfiltered
from tests.histories.frames import CONNECTORS, registry_of
from tests.histories.log import Crash, CrashError, Log, Partitions
from tests.histories.neutral import Writer, creates
from tests.histories.redelivery import Sent, sent
from tests.histories.source import Content, Name, Picture, Statement
from tests.histories.tools import PREFIX, TOOLS, UNREAD, Style, Tool
from tests.locations import table_place
from tests.sinks.kinds import options_of, sink_of, type_of

_UNCLEAR = "source.generation_unclear"
_ENDING = {_UNCLEAR, "quarantine.generation_unclear"}  # codes with which a history ends before it is read whole
_VERIFY = ("touched", "all", "sample(0.5)")
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def inline(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Run tasks in this process."""
    return [function(item) for item in items]


_ROOTS = itertools.count(1)


@dataclass(frozen=True)
class Case:
    """Everything that decides a replay; equal cases run equally.

    :param batches: into how many the log is cut.
    :param ragged: chance that a batch cuts every partition elsewhere.
    :param late: batches by which the partition that has the statements is behind the others.
    :param restarts: how often the tool starts again from an older place.
    :param doubles: chance of a unit of records to be sent twice.
    :param replays: how often an old range is sent again, on any partition.
    :param crashes: chance that an attempt at a batch dies.
    :param repeats: chance that a done batch is run once more.
    :param losses: chance that the ledger is lost, or restored from a backup, before an attempt at a batch.
    :param recreated: chance, before a batch, of each topic that was read to its end to be made again.
    :param on_drop: ``policy.on_drop_table``.
    :param sink: kind of the tables: one of ``tests.sinks.kinds.OPTIONS``.
    :param ends: instead of ``batches`` and ``ragged``: per batch but the last the ends of partitions
        (``topic/partition`` without the topics' common prefix); others stay where they are.
    """

    seed: int
    statements: tuple[Statement, ...]
    style: Style = field(default_factory=Style)
    batches: int = 3
    ragged: float = 0.0
    late: int = 0
    restarts: int = 0
    doubles: float = 0.0
    replays: int = 0
    crashes: float = 0.0
    repeats: float = 0.0
    losses: float = 0.0
    recreated: float = 0.0
    on_drop: str = "keep"
    ends: tuple[dict[str, int], ...] = ()
    format: str = "debezium-json"
    sink: str = "delta"


@dataclass
class Replay:
    """One case on its way.

    :param root: an empty folder for the lake.
    """

    case: Case
    log: Log
    root: Path
    run_tasks: Runner = inline
    before_run: Callable[[Partitions], None] | None = None
    story: list[str] = field(default_factory=list)
    states: dict[str, TableState] = field(default_factory=dict)
    parked: dict[str, str] = field(default_factory=dict)  # table -> code that its format's page names
    agreed: int = 0  # rows before changes that had the values that the log says
    contradictions: list[dict[str, Any]] = field(default_factory=list)
    alarms: Alarms = field(default_factory=Alarms)
    quarantined: int = 0

    def __post_init__(self) -> None:
        case = self.case
        if case.sink != "delta":  # a catalog keeps its connections: each case has its own
            self.root = self.root / str(next(_ROOTS))
        self._sink_options = options_of(case.sink, self.root)
        self._rnd = random.Random(f"{case.seed} batches")
        self._secrets: dict[str, dict[str, str]] = {}
        self._tool = self._chosen_tool()
        self._sent = self._records()
        self._format = open_format(case.format, self._tool.options)
        self.log.partitions.clear()
        self._orders: dict[tuple[str, int], list[int]] = {}  # place in the order of sending of each record
        for order, item in enumerate(self._sent):
            where = (item.record.topic, item.record.partition)
            self.log.partitions.setdefault(where, []).append(item.record)
            self._orders.setdefault(where, []).append(order)
        self._done = dict.fromkeys(self._orders, 0)
        self._gone = -1  # newest record, in the order of sending, that was read of topics made again since
        self._schema: list[dict[str, Any]] = []
        self._seqs: list[int] = []
        self._backups = [(self._seqs, self._schema, self.states)]
        self._ledger = random.Random(f"{case.seed} ledger")
        self._topics = random.Random(f"{case.seed} topics")
        self._asked: list[str] = []
        self._approved: list[str] = []

    def _chosen_tool(self) -> Tool:
        return TOOLS[self.case.format]

    def _records(self) -> Sequence[Sent]:
        """Return everything that the tool sends, in its order."""
        case, tool = self.case, self._tool
        wire, again = random.Random(f"{case.seed} wire"), random.Random(f"{case.seed} again")
        connector = CONNECTORS.get(case.format)
        writer = Writer(tool, case.style, wire, again) if connector is None else connector(case.style, wire, again)
        units = list(writer.units(case.statements))
        counts = {"restarts": case.restarts, "replays": case.replays}
        return sent(units, again, doubles=case.doubles, by_clock=tool.by_clock, **counts)

    def run(self) -> list[str]:
        """Run all batches; return what differs, in words: empty when all is well."""
        self._clear()
        if self.before_run is not None:
            self.before_run(self.log.partitions)
        if not self._sent:
            return []
        count = len(self.case.ends) + 1 if self.case.ends else self.case.batches
        for number in range(1, count + 1):
            picture = self._cut(number, count)
            problems = self._batch(number, self._chunks(), picture)
            if _ENDING & set(self.parked.values()):
                return []
            if problems:
                return [f"batch {number} of {count}: {problem}" for problem in problems]
        return []

    def _clear(self) -> None:
        """Remove what an earlier case left."""
        shutil.rmtree(self.root if self.case.sink == "delta" else self.root.parent, ignore_errors=True)
        self.root.mkdir(parents=True)

    def _cut(self, number: int, count: int) -> Picture | None:
        """Move the ends on; return what the lake must hold there, None where partitions end at different moments."""
        self._recreate()
        self._starts = dict(self._done)
        if number == count:
            self._done = {where: len(orders) for where, orders in self._orders.items()}
            self.story.append(f"batch {number}: everything")
            return self._sent[-1].picture
        if self.case.ends:
            stated_ends = self.case.ends[number - 1]
            names = {where: f"{where[0].removeprefix(PREFIX)}/{where[1]}" for where in self._done}
            self._done = {where: stated_ends.get(names[where], end) for where, end in self._done.items()}
            self.story.append(f"batch {number}: {stated_ends}")
            return None
        moment = self._moment(number, count)
        if moment is None:
            ends, picture = self._ragged(number, count), None
        else:
            ends, picture = self._ends(moment), self._sent[moment].picture
        held = {where: self._held_back(where, number, count, end) for where, end in ends.items()}
        self._done = {where: self._between_groups(where, end) for where, end in held.items()}
        self.story.append(f"batch {number}: { {f'{topic}/{part}': end for (topic, part), end in self._done.items()} }")
        return picture if self._done == ends else None

    def _recreate(self) -> None:
        """Make topics again: their offsets begin at 0, and what was read is gone."""
        topics = self._topics
        for topic in sorted({topic for topic, _ in self._done}):
            if topics.random() < self.case.recreated:
                self.story.append(f"    topic {topic} is made again")
                for where in [where for where in self._done if where[0] == topic]:
                    read, self._done[where] = self._done[where], 0
                    self._gone = max([self._gone, *self._orders[where][:read]])
                    self.log.partitions[where] = self.log.partitions[where][read:]
                    self._orders[where] = self._orders[where][read:]

    def _ends(self, moment: int) -> dict[tuple[str, int], int]:
        """Return the ends of all partitions once the record of this number was sent."""
        return {where: bisect_right(orders, moment) for where, orders in self._orders.items()}

    def _moment(self, number: int, count: int) -> int | None:
        """Return the record that a batch ends with in all partitions, None where it is to end raggedly."""
        everything = len(self._sent)
        newest = max([self._gone, *(self._orders[where][end - 1] for where, end in self._done.items() if end)])
        target = everything * number // count
        candidates = [i for i in range(max(newest, 0), everything) if self._sent[i].picture is not None]
        if self._rnd.random() < self.case.ragged:
            return None
        return min(candidates, key=lambda i: abs(i - target)) if candidates else max(newest, target)

    def _ragged(self, number: int, count: int) -> dict[tuple[str, int], int]:
        everything = len(self._sent)
        width = max(2, everything // count)
        ends = {}
        for where, orders in self._orders.items():
            rnd = random.Random(f"{self.case.seed} {number} {where}")
            moment = everything * number // count + rnd.randint(-width, width)
            ends[where] = max(self._done[where], bisect_right(orders, moment))
        return ends

    def _held_back(self, where: tuple[str, int], number: int, count: int, end: int) -> int:
        """Return where a partition ends whose statements come late."""
        apart = self._tool.schema_topic
        if not self.case.late or (where[0] != apart if apart else where[1] != 0):
            return end
        moment = len(self._sent) * (number - self.case.late) // count
        return min(end, max(self._done[where], bisect_right(self._orders[where], moment)))

    def _between_groups(self, where: tuple[str, int], end: int) -> int:
        """Return the last place up to an end where no group of records is open, as the planner does."""
        if not isinstance(self._format, Grouped):
            return end
        records = self.log.partitions[where][:end]
        return last_cut([self._format.part_of(r.value, r.headers) for r in records], from_start=True) or 0

    def _chunks(self) -> list[OffsetRange]:
        chunks = []
        for where, end in self._done.items():
            start = self._starts[where]
            middle = self._rnd.randint(start, end)
            split = self._rnd.random() < 0.2 and self._format.splits_partitions
            cuts = [start, middle, end] if split else [start, end]
            chunks += [OffsetRange(*where, a, b) for a, b in pairwise(cuts) if a < b]
        return chunks

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        if chunks:
            try:
                self._crash(self._known_job(number, chunks))
                self.log.arm(None)
                job = self._known_job(number, chunks)
                result = self._sync(job)
            except DataError as error:
                if error.code != _UNCLEAR or not self.case.style.log_restarts:
                    return [f"the batch failed: {error}"]
                self.parked["the pipeline"] = error.code
                return []
            except Exception as error:  # whatever it is, a history must not end a batch
                return [f"the batch failed: {error if isinstance(error, CdcError) else traceback.format_exc()}"]
            if self._rnd.random() < self.case.repeats and (problems := self._repeat(job, result)):
                return problems
            # a batch without records starts no engine and leaves nothing in the change log
            self._take_over(number, result.document())
            self._backups.append((self._seqs, self._schema, self.states))
        return [] if picture is None else self._differences(picture)

    def _known_job(self, number: int, chunks: list[OffsetRange]) -> JobDocument:
        """Return the job of a batch; a ledger that was lost takes over what the lake holds first."""
        if self._ledger.random() >= self.case.losses:
            return self._job(number, chunks)
        backup = self._ledger.choice((0, self._ledger.randrange(len(self._backups))))
        self._seqs, self._schema, self.states = self._backups[backup]
        self.story.append(f"    the ledger knows the first {backup} batches that had records")
        self.log.arm(None)
        result = self._sync(self._job(number, chunks))
        for batch in result.lake_batches:
            if batch["result"] is not None:
                self._take_over(batch["seq"], batch["result"])
        return self._job(number, chunks)

    def _take_over(self, seq: int, result: Mapping[str, Any]) -> None:
        """Note what came of a batch, as the ledger does."""
        self.agreed += sum(line.get("agreed", 0) for line in result.get("tables", ()))
        self.contradictions += result.get("contradictions", ())
        self.alarms.take(result)
        self.quarantined += result.get("quarantined", 0)
        self._seqs = [*self._seqs, seq]
        self._schema = self._schema + result["new_schema_changes"]
        states = self.states | {state["table_id"]: TableState.from_document(state) for state in result["states"]}
        gone = result.get("removed", ())
        self.states = {table_id: state for table_id, state in states.items() if table_id not in gone}

    def _job(self, number: int, chunks: list[OffsetRange]) -> JobDocument:
        job = JobDocument(
            "histories",
            number,
            (_BEGIN + timedelta(minutes=number)).isoformat(),
            str(self.root),
            self.case.format,
            self._options(),
            self._tool.schema_topic,
            {},
            chunks,
            RunPolicy(on_drop_table=self.case.on_drop, verify=_VERIFY[self.case.seed % len(_VERIFY)]),
            TableRules.from_document(self._rules()),
            list(self._seqs),
            self._schema,
            list(self.states.values()),
            end=self._ends_document(),
            lake_root=f"{self.root}/.log" if self.case.seed % 2 else "",
            sink_type=type_of(self.case.sink),
            sink_options=self._sink_options,
            registry=registry_of(self.case.format),
        )
        return JobDocument.from_document(json.loads(json.dumps(job.document())))

    def _ends_document(self) -> dict[str, dict[str, int]]:
        """Return the ends of all partitions, as a batch's range has them."""
        ends: dict[str, dict[str, int]] = {}
        for (topic, partition), end in self._done.items():
            ends.setdefault(topic, {})[str(partition)] = end
        return ends

    def _options(self) -> dict[str, str]:
        """Return ``source.options``."""
        style, options = self.case.style, {"explicit_defaults_for_timestamp": "true"}  # as the model has it
        if style.server:
            options["server"] = style.server
        if style.minimal and self._tool.partial == "minimal":
            options["binlog_row_image"] = "minimal"
        if TYPED_NAMES in style.flaws:
            options["lower_case_table_names"] = "1"
        return {**self._tool.options, **options}

    def _rules(self) -> dict[str, Any]:
        """Return ``tables``."""
        style, rules = self.case.style, {}
        filters = {"exclude_columns": [FILTERED_COLUMN]} if FILTERED in style.flaws and style.states_filter else {}
        if filters:
            rules["*.*"] = filters
        stated = creates(self.case.statements) if self._tool.states_creates else {}
        return {**rules, **{name: {**rule, **filters} for name, rule in stated.items()}}

    def _sync(self, job: JobDocument) -> Result:
        """Carry out a job; approve each new log that it asks for, once, where the source began logs."""
        while True:
            job = replace(job, new_generation=self._approved[-1] if self._approved else "")
            try:
                return sync(job, self._secrets, self.run_tasks, lambda line: None)
            except NewGenerationError as error:
                name = f"{job.seq} {error.begins[0].name}"
                if not self._begins_logs() or name in self._asked:
                    raise
                self._asked.append(name)
                self._approved.append(error.begins[0].name)
                self.story.append(f"    approved: {name}")

    def _begins_logs(self) -> bool:
        return bool(self.case.style.log_restarts)

    def _crash(self, job: JobDocument) -> None:
        """Let attempts die."""
        for _ in range(2):
            if self._rnd.random() >= self.case.crashes:
                return
            what = self._rnd.choice(("land", "manifest", "commit", "commit", "result"))
            crash = Crash(what, self._rnd.randint(1, 3) if what in ("land", "commit") else 1, self._rnd.random() < 0.5)
            self.log.arm(crash)
            try:
                self._sync(job)
            except CrashError:
                self.story.append(f"    an attempt died: {crash}")

    def _repeat(self, job: JobDocument, result: Result) -> list[str]:
        before, commits = self._versions(), self.log.commits
        again = self._sync(job)
        if json.dumps(again.document()) != json.dumps(result.document()):
            return ["the repeat of a done batch gave another result"]
        if self._versions() != before or self.log.commits != commits:
            return ["the repeat of a done batch made commits"]
        return []

    def _versions(self) -> dict[str, int | None]:
        locations = {state.location for state in self.states.values() if state.location}
        return {location: self._sink.open(f"{self.root}/{location}").version for location in locations}

    def _differences(self, picture: Picture) -> list[str]:
        flaws = self.case.style.flaws
        problems, excused = [], {name for name in picture.tables if HIDDEN_HELPERS in flaws and is_helper(name)}
        of_flaws = [reason for flaw in flaws for reason in REASONS.get(flaw, ())]
        reasons = (*self._tool.parks, *UNREAD, *self._further_reasons, *of_flaws)
        for state in self.states.values():
            code = next((code for code in reasons if code in state.reason), None)
            if state.state in ("parked", *(["waiting"] if flaws else [])) and code is not None:
                self.parked[state.table_id] = code
                excused.add((state.database, state.table))
            elif state.state not in ("ok", "dropped"):
                problems.append(f"{state.database}.{state.table} is {state.state}: {state.reason}")
        for name, content in picture.tables.items():
            if name not in excused:
                problems += [f"{'.'.join(name)}: {problem}" for problem in self._compare(name, content)]
        marked = {(state.database, state.table) for state in self.states.values() if state.state == "dropped"}
        alive = {(state.database, state.table) for state in self.states.values() if state.state == "ok"}
        problems += [
            f"{'.'.join(name)} was dropped and is not marked so" for name in picture.dropped - marked - excused
        ]
        alive -= picture.tables.keys()
        if not self._tool.states_creates:  # else the pipeline knows tables before the source creates them
            problems += [f"{'.'.join(name)} has a state but no table" for name in alive]
        if not self._loses():
            problems += self.alarms.false()
        return [*problems, *self._leftovers(picture, excused), *self._shared_locations()]

    @property
    def _further_reasons(self) -> tuple[str, ...]:
        """Codes with which a table may be parked for what operators did or state."""
        return ()

    def _loses(self) -> bool:
        """Return whether the log lacks changes at times, so that it contradicts the tables."""
        return bool(self.case.style.flaws)

    def _leftovers(self, picture: Picture, excused: set[Name]) -> list[str]:
        """Return which names that no table has any more hold rows."""
        dropped = {state.location for state in self.states.values() if state.state == "dropped"}
        gone = set(picture.renamed_away)
        if self.case.on_drop == "keep":
            # what a dropped table leaves is kept, at its name's location
            gone = {name for name in gone if self._path(name) not in dropped}
        else:
            gone |= picture.dropped
        # a parked table that was renamed stays where it is until it goes on
        stays = {state.location for state in self.states.values() if state.table_id in self.parked}
        excused = {*excused, *(name for name in gone if self._path(name) in stays)}
        problems = []
        for name in gone - excused:
            rows = self._rows(name)
            if rows is not None and rows.num_rows:
                problems.append(f"{'.'.join(name)} is gone and its location holds {rows.num_rows} rows")
        return problems

    def _shared_locations(self) -> list[str]:
        """Return the locations that the command ``tables`` shows for two tables."""
        shown = table_documents(self.states.values())
        alive = Counter(table["location"] for table in shown if table["state"] != "dropped" and table["location"])
        return [f"two tables are shown at {Path(location).name}" for location, count in alive.items() if count > 1]

    def _path(self, name: Name) -> str:
        """Return where the table of a name lies below the root."""
        return table_place(*name)

    def _rows(self, name: Name) -> pa.Table | None:
        stored = self._sink.open(f"{self.root}/{self._path(name)}")
        return stored.rows() if stored.exists else None

    @property
    def _sink(self) -> Sink[Stored]:
        return sink_of(self.case.sink, self.root)

    def _compare(self, name: Name, content: Content) -> list[str]:
        lake = self._rows(name)
        if lake is None:
            untold = self._tool.states_creates and not content.rows  # no record ever named it
            return [] if untold else ["there is no table"]
        columns = content.structure.columns
        # where nobody states it, nothing shows it before there is a row
        if FILTERED in self.case.style.flaws and (self.case.style.states_filter or content.rows):
            columns = unfiltered(content.structure).columns
        return unlike(lake, columns, content.rows)


_CHANCES = ("batches", "ragged", "late", "restarts", "doubles", "replays", "crashes", "repeats", "losses", "recreated")


def described(case: Case, story: Sequence[str], problems: Sequence[str]) -> str:
    """Return a failure for people: the history as SQL, the cuts, what differs."""
    lines = [f"{case.format} seed {case.seed}: {case.style}"]
    lines.append(", ".join(f"{name}={getattr(case, name)}" for name in _CHANCES))
    lines.append("history:")
    for number, statement in enumerate(case.statements):
        mark = " (before the snapshot)" if number < case.style.snapshot_after else ""
        lines.append(f"  {number}{mark}: {statement.sql()}")
    return "\n".join([*lines, *story, "problems:", *(f"  {problem}" for problem in problems)])
