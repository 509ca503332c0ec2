# SPDX-License-Identifier: Apache-2.0
"""Read the quarantine from the lake, and carry out what an operator decided about it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_provider_cdc.core.apply.row_before import row_before
from airflow_provider_cdc.core.documents import Decision, DecisionAction, JobDocument, Look, QuarantineEntry, Result
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.common.clock_positions import clock_of
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.clock_position import is_clock_position
from airflow_provider_cdc.core.model.status import ResultStatus
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.generations import Generations
from spark_jobs.driver.left_out_rows import still_left_out
from spark_jobs.driver.repaired_generations import RepairedBegins, demand_one_log
from spark_jobs.driver.topic_tables import TopicTables
from spark_jobs.lake.folded_batches import folded_through
from spark_jobs.lake.layout import batch_document, batch_of, expired_file
from spark_jobs.lake.manifest import LandReport, Manifest, RowGroup, Settled, Unreadable
from spark_jobs.lake.row_groups import read_groups
from spark_jobs.lake.scratch import lake_of
from spark_jobs.lake.storage import Storage
from spark_jobs.lake.stored_result import StoredResult, UnfitRow
from spark_jobs.tasks.land import land_repaired

Secrets = dict[str, dict[str, str]]
_LOST = "record.lost"  # records before the entry's, which has rows of its own
_ERROR_COLUMNS = ["topic", "partition", "offset", "database", "table", "position", "error_code", "error", "raw"]
_ROW_COLUMNS = ["topic", "partition", "offset", "position", "op", "before", "after"]


def look(job: JobDocument, secrets: Secrets) -> Result:
    """Return the quarantine of the job's batches, with the records that operators decided about."""
    storage = lake_of(job, secrets)
    entries = read_entries(job, storage, contents=isinstance(job.order, Look) and job.order.contents, named=True)
    return Result(job.pipeline, job.seq, ResultStatus.DONE, entries=entries)


def read_entries(
    job: JobDocument, storage: Storage, *, contents: bool = False, named: bool = False
) -> list[QuarantineEntry]:
    """Return all that is or was in the quarantine, in the order of the batches ``job.earlier``.

    Of a table that is parked for its rows only those of the last attempt count: the next one sees all of them again.
    Rows that a table took in when it went back are there no more.

    :param contents: whether bytes and row images are read, too.
    :param named: whether records without a name get that of the one table whose topic they are in.
    """
    entries: list[QuarantineEntry] = []
    rows = _UnfitRows()
    settled: list[Settled] = []
    topics = TopicTables({}, open_format(job.format, job.format_options), job.schema_topic)
    unnamed: dict[tuple[int, str, int], Unreadable] = {}  # by batch and partition
    groups: dict[int, list[RowGroup]] = {}
    through = folded_through(storage, job.pipeline)  # of folded batches nothing waits, and no bytes are left
    for seq in (seq for seq in job.earlier if seq > through):
        landed = storage.read_unfinished(batch_document(job.pipeline, seq, "manifest"))
        if landed is None:
            continue
        manifest = Manifest.from_document(landed)
        settled += manifest.settled
        groups[seq] = [group for group in manifest.groups if batch_of(group.file) == seq]
        if storage.read_unfinished(expired_file(job.pipeline, seq)) is not None:
            groups[seq] = []  # nothing of it waits for a decision
        entries += _unreadable(storage, seq, groups[seq], contents)
        for item in manifest.unreadable:
            if not item.table:
                behind_rows = topics.stands_behind_rows(item, manifest)
                unnamed[seq, item.topic, item.partition] = replace(item, behind_rows=behind_rows)
        ended = storage.read_unfinished(batch_document(job.pipeline, seq, "result"))
        if ended is None:
            topics.add(manifest)
            continue
        stored = StoredResult.from_document(ended)
        topics = TopicTables(stored.topics, open_format(job.format, job.format_options), job.schema_topic)
        rows.add(seq, stored)
    entries += rows.waiting()
    for entry in (*entries, *rows.past):
        entry.decision = _decision(entry, settled)
    entries = _each_once([*entries, *(entry for entry in rows.past if entry.decision is not None)])
    if named:
        _name(entries, unnamed, topics)
    if contents:
        _fill_images(storage, open_format(job.format, job.format_options), groups, entries)
    return entries


class _UnfitRows:
    """Follow the rows that do not fit from batch to batch.

    :ivar past: those that wait no more: their table was tried again, or took them in.
    """

    def __init__(self) -> None:
        self.past: list[QuarantineEntry] = []
        self._left_out: list[tuple[int, UnfitRow]] = []
        self._refused: dict[str, list[QuarantineEntry]] = {}  # by table that is parked for them

    def add(self, seq: int, stored: StoredResult) -> None:
        """Take the result of the next batch."""
        for state in stored.result.states:
            self.past += self._refused.pop(state.table_id, [])
        before, self._left_out = self._left_out, still_left_out(self._left_out, stored.result, stored.unfit)
        self.past += [_unfit(*row) for row in before if row not in self._left_out]
        for row in stored.unfit:
            if row.parked:
                self._refused.setdefault(row.table_id, []).append(_unfit(seq, row))
            else:
                self._left_out.append((seq, row))

    def waiting(self) -> list[QuarantineEntry]:
        """Return those that wait after the last batch."""
        refused = [entry for rows in self._refused.values() for entry in rows]
        return [*(_unfit(*row) for row in self._left_out), *refused]


def _each_once(entries: Sequence[QuarantineEntry]) -> list[QuarantineEntry]:
    """Return entries in the order of batches, each row once.

    A row that later batches looked at again is that of the first, until it was replayed: then it may wait again.
    """
    first: dict[tuple[Any, ...], QuarantineEntry] = {}
    for entry in sorted(entries, key=lambda entry: (entry.seq, entry.record)):
        decided = 0 if entry.decision is None else entry.decision["seq"]
        first.setdefault((entry.kind, entry.record, entry.seq if entry.kind == "record" else decided), entry)
    return list(first.values())


def _name(
    entries: Sequence[QuarantineEntry], unnamed: Mapping[tuple[int, str, int], Unreadable], topics: TopicTables
) -> None:
    """Name the tables of records whose topic shows them.

    :param unnamed: records without a name, by batch and partition.
    """
    for entry in entries:
        item = unnamed.get((entry.seq, entry.topic, entry.partition))
        if entry.kind == "record" and not entry.table and item is not None:
            names = topics.names_of(item)
            if len(names) == 1:
                entry.database, entry.table = names[0]


def _unreadable(storage: Storage, seq: int, groups: Sequence[RowGroup], contents: bool) -> Iterable[QuarantineEntry]:
    errors = [group for group in groups if not group.database]
    for row in read_groups(storage, errors, _ERROR_COLUMNS).to_pylist() if errors else ():
        raw = row["raw"]
        yield QuarantineEntry(
            "record",
            seq,
            row["topic"],
            row["partition"],
            row["offset"],
            row["database"] or "",
            row["table"] or "",
            row["error_code"],
            row["error"],
            row["position"],
            None if raw is None else len(raw),
            base64.b64encode(raw).decode() if contents and raw is not None else None,
        )


def _unfit(seq: int, row: UnfitRow) -> QuarantineEntry:
    origin = (row.topic, row.partition, row.offset, row.database, row.table)
    return QuarantineEntry("row", seq, *origin, row.reason, f"column {row.column}" if row.column else "")


def _decision(entry: QuarantineEntry, settled: Sequence[Settled]) -> dict[str, Any] | None:
    """Return what an operator decided about an entry; a repaired record may be in the quarantine again."""
    for one in reversed(settled):
        if one.record == entry.record and one.kind == entry.kind and (one.seq > entry.seq or one.of == entry.seq):
            return {"action": one.action, "by": one.by, "why": one.why, "at": one.at, "seq": one.seq}
    return None


def _fill_images(
    storage: Storage, wire: Format, groups: dict[int, list[RowGroup]], entries: Sequence[QuarantineEntry]
) -> None:
    """Read the images of rows that do not fit; of several batches with the record the newest one counts."""
    rows: dict[tuple[str, int, int], list[QuarantineEntry]] = {}
    for entry in entries:
        if entry.kind == "row":
            rows.setdefault(entry.record, []).append(entry)
    names = {(entry.database, entry.table) for same in rows.values() for entry in same}
    newest = max((entry.seq for same in rows.values() for entry in same), default=0)
    batches = [[group for group in groups[seq] if group.database] for seq in sorted(groups) if seq <= newest]
    _fill(storage, wire, [[g for g in batch if (g.database, g.table) in names] for batch in batches], rows)
    # a table that was renamed since has its rows under another name
    unnamed = {record: same for record, same in rows.items() if same[0].position is None}
    _fill(storage, wire, [[g for g in batch if (g.database, g.table) not in names] for batch in batches], unnamed)


def _fill(
    storage: Storage,
    wire: Format,
    batches: Sequence[Sequence[RowGroup]],
    rows: Mapping[tuple[str, int, int], Sequence[QuarantineEntry]],
) -> None:
    """Read the images of some rows, by record, from groups by batch."""
    for groups in batches if rows else ():
        for row in read_groups(storage, groups, _ROW_COLUMNS).to_pylist() if groups else ():
            for entry in rows.get((row["topic"], row["partition"], row["offset"]), ()):
                entry.position, entry.after = row["position"], row["after"]
                entry.before = row_before(wire, row["op"], row["before"], row["after"])


def carry_out(
    job: JobDocument,
    decision: Decision,
    landed: Manifest,
    history: History,
    generations: Generations,
    storage: Storage,
    secrets: Secrets,
    say: Callable[[str], None],
) -> Manifest:
    """Return what a batch landed with the records of a decision settled, and what was decoded of repaired ones.

    :param history: of the batches before.
    :param generations: of the source's log, with all that was read so far.
    :raises DataError: ``quarantine.not_there``, a record is not in the quarantine; ``quarantine.unreadable``, a
        repaired one cannot be decoded either; ``quarantine.generation_unclear``, it does not show of which log it is.
        Nothing is changed.
    """
    if _is_carried_out(decision, landed, job.seq):
        return landed
    every = read_entries(
        replace(job, earlier=sorted({*job.earlier, job.seq})),
        storage,
        contents=decision.action == DecisionAction.REPLAY and bool(job.clocks),
    )
    entries = _demand(every, decision)
    report = LandReport()
    if decision.action == DecisionAction.REPLAY:
        report = _decode(job, decision, entries, generations, secrets)
        demand_one_log(report, min(entry.seq for entry in entries), landed, history, storage)
    settled = _settled(decision, entries, report, job.seq)
    say(f"quarantine: {decision.action} of {len(decision.records)} records")
    changes = dict(landed.changes)
    for name, count in report.changes.items():
        changes[name] = changes.get(name, 0) + count
    return replace(
        landed,
        groups=[*landed.groups, *report.groups],
        schema_changes=[*landed.schema_changes, *report.schema_changes],
        descriptions=[*landed.descriptions, *report.descriptions],
        # what they show of the source's log tells the records of the next one apart
        stretches=[*landed.stretches, *report.stretches],
        statements=[*landed.statements, *report.statements],
        records=landed.records + report.records,
        changes=changes,
        settled=[*landed.settled, *settled],
    )


def _settled(decision: Decision, entries: Sequence[QuarantineEntry], report: LandReport, seq: int) -> list[Settled]:
    """Return the entries of a decision as settled by a batch, with the files of what was decoded of them."""
    files, settled = sorted({group.file for group in report.groups}), list[Settled]()
    for entry in entries:
        where = entry.topic, entry.partition, entry.offset, entry.database, entry.table
        lost = decision.action == DecisionAction.DISCARD and entry.code == _LOST
        by = decision.action, decision.by, decision.why, decision.at
        settled.append(Settled(entry.kind, entry.seq, seq, *where, *by, files=files, rows_stay=lost))
    return settled


def _is_carried_out(decision: Decision, landed: Manifest, seq: int) -> bool:
    """Return whether an attempt before carried a decision out in this batch."""
    done = {one.record for one in landed.settled if one.seq == seq and one.action == decision.action}
    return {(topic, partition, offset) for topic, partition, offset in decision.records} <= done


def _demand(every: Sequence[QuarantineEntry], decision: Decision) -> list[QuarantineEntry]:
    """Return the entries of the decision's records: one record may have several.

    What was replayed is decided, and so is what was discarded, unless it is replayed all the same.
    """
    every = [entry for entry in every if entry.decision is None or _may_follow(decision, entry.decision)]
    known = {entry.record for entry in every}
    asked = [(topic, partition, offset) for topic, partition, offset in decision.records]
    for topic, partition, offset in asked:
        if (topic, partition, offset) not in known:
            raise DataError(
                "quarantine.not_there",
                "a record is not in the quarantine",
                where={"topic": topic, "partition": partition, "offset": offset},
                hint="`airflow-cdc quarantine PIPELINE.yaml list` names the records",
            )
    return [entry for entry in every if entry.record in set(asked)]


def _may_follow(decision: Decision, before: dict[str, Any]) -> bool:
    return decision.action == DecisionAction.REPLAY and before["action"] == DecisionAction.DISCARD


def _decode(
    job: JobDocument,
    decision: Decision,
    entries: Sequence[QuarantineEntry],
    generations: Generations,
    secrets: Secrets,
) -> LandReport:
    """Decode repaired records into the change log.

    :raises DataError: ``quarantine.unreadable``; ``retention.log_expired``, the clock of one is not known any more.
    """
    clocks = {e.record: clock_of(e.position) for e in entries if e.position and is_clock_position(e.position)}
    unplaced = [entry for entry in entries if job.clocks and entry.record not in clocks]
    if unplaced:
        topic, partition, offset = unplaced[0].record
        raise DataError(
            "retention.log_expired",
            "maintenance removed the rows of a record from the change log: its place in the order is not known",
            where={"topic": topic, "partition": partition, "offset": offset},
            hint="discard it, and take a new snapshot of its table",
        )
    # a row that a repaired record brought back has a later entry
    seqs = {entry.record: entry.seq for entry in sorted(entries, key=lambda entry: -entry.seq)}
    report = land_repaired(job, decision.repaired, secrets, clocks, RepairedBegins(generations), seqs)
    if report.unreadable:
        first = report.unreadable[0]
        raise DataError(
            "quarantine.unreadable",
            f"a repaired record cannot be decoded either ({first.error_code}: {first.error}); nothing is changed",
            where={"topic": first.topic, "partition": first.partition, "offset": first.offset},
            hint="look at it with `airflow-cdc decode`, correct the file and run again",
        )
    return report
