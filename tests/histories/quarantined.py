# SPDX-License-Identifier: Apache-2.0
"""Random histories with records that cannot be carried, which operators repair and replay, or discard, later on."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from airflow_provider_cdc.core.documents import Decision, DecisionAction, JobDocument, Look, QuarantineEntry, Result
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.contract import Grouped
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.driver.quarantine_entries import look
from tests.histories.records import Record
from tests.histories.run import Replay
from tests.histories.source import Picture

RecordId = tuple[str, int, int]
_AT = "2026-01-01T00:00:00+00:00"
_MANY = 1_000  # as quarantine_limit: no history has so many records
UNCLEAR = "quarantine.generation_unclear"  # the first records of a new log are broken, and no others are read
_TORN = "record.slices_missing"  # behind a record that cannot be read; so is record.lost
_BINLOG = re.compile(rb'"mysql-bin\.\d+"')


class WithQuarantine(Replay):
    """Breaks records before a batch reads them; operators replay them as they were.

    Between the records there are damaged copies of some, which operators discard: the source knows nothing of them.

    :cvar chances: of a record to be broken, of which each history has one.
    :ivar broken: records as they were, by topic, partition and offset, until they are replayed.
    :ivar settled: records that operators decided about.
    """

    chances: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3)

    def __post_init__(self) -> None:
        super().__post_init__()
        case = self.case
        self.broken: dict[RecordId, Record] = {}
        self.settled = 0
        self._copies: set[RecordId] = set()
        self._damage_of = damage = random.Random(f"{case.seed} damage")
        self._limit = damage.choice((0, _MANY))
        # a repaired record has the clock that its partition showed before it (docs/concepts/quarantine.md): that orders
        # it among the records of this partition alone, and among no copies of it
        scattered = len(self.log.partitions) > 1 or case.restarts or case.doubles or case.replays
        # a slice is decoded with the others of its group, so that it is not repaired alone
        sliced = any(
            not self._stands_alone(record) for part in self.log.partitions.values() for record in part if record.value
        )
        excluded = sliced or case.recreated or (self._tool.by_clock and scattered)
        self._breaks = 0.0 if excluded else damage.choice(self.chances)
        # two rows of one position with other images make the row before a partial image unknown
        repeats = case.restarts or case.doubles or case.replays
        of_rows = () if case.style.minimal and repeats else (unfit, partial(unfit, which=-1))
        self._damages = (cut_off, _misplaced, *of_rows)
        if self._breaks:
            self._insert_copies(damage)

    def _insert_copies(self, damage: random.Random) -> None:
        """Insert damaged copies in front of some records."""
        for where, records in self.log.partitions.items():
            orders = self._orders[where]
            copied: list[tuple[Record, int]] = []
            for record, order in zip(records, orders, strict=True):
                if damage.random() < 0.05 and self._stands_alone(record):
                    self._copies.add((*where, len(copied)))
                    copied.append((cut_off(record), order))
                copied.append((record, order))
            self.log.partitions[where] = [record for record, _ in copied]
            self._orders[where] = [order for _, order in copied]

    def _stands_alone(self, record: Record) -> bool:
        """Return whether a record can be decoded, and so broken, by itself."""
        if not record.value:
            return False
        part = self._format.part_of(record.value, record.headers) if isinstance(self._format, Grouped) else None
        return part is None or part.total == 1

    def _loses(self) -> bool:
        """Return also whether records are broken: their changes lack until they are repaired."""
        return super()._loses() or self._breaks > 0

    def _broken_chunks(self, chunks: list[OffsetRange]) -> list[OffsetRange]:
        """Break some of the records that a batch is about to read; return its chunks."""
        for chunk in chunks:
            records = self.log.partitions[chunk.topic, chunk.partition]
            for offset in range(chunk.start, chunk.end):
                name = (chunk.topic, chunk.partition, offset)
                record = records[offset]
                if name in self._copies or not self._stands_alone(record) or self._damage_of.random() >= self._breaks:
                    continue
                records[offset] = self._damage_of.choice(self._damages)(record)
                if records[offset] != record:
                    self.broken[name] = record
                    self.story.append(f"    {name} is broken: {(records[offset].value or b'')[:60]!r}")
        return chunks

    def _job(self, number: int, chunks: list[OffsetRange]) -> JobDocument:
        job = super()._job(number, chunks)
        return replace(job, policy=replace(job.policy, quarantine_limit=self._limit))

    def _sync(self, job: JobDocument) -> Result:
        """Carry out a job; settle the records of unknown tables that it is refused for."""
        try:
            return super()._sync(job)
        except DataError as error:
            if error.code != "land.quarantine_exceeded":
                raise
        waiting = [entry for entry in self._waiting(job) if not entry.table]
        assert waiting
        return self._sync(replace(job, order=self._decision(waiting)))

    def _waiting(self, job: JobDocument) -> list[QuarantineEntry]:
        """Return what waits for a decision, also of the batch of this job."""
        asked = replace(job, earlier=sorted({*job.earlier, job.seq}), order=Look())
        return [entry for entry in look(asked, {}).entries if entry.decision is None]

    def _decision(self, waiting: Sequence[QuarantineEntry]) -> Decision:
        """Return what operators decide about some entries, about those that somebody broke first."""
        names = {entry.record for entry in waiting}
        # without a statement that is broken, whole rows do not fit either
        strange = {
            entry.record for entry in waiting if entry.code not in ("record.lost", _TORN) and entry.kind != "row"
        }
        strange -= self.broken.keys() | self._copies
        assert not strange, f"in the quarantine, and nobody broke it: {strange}"
        torn = {entry.record for entry in waiting if entry.code == _TORN} - self.broken.keys()
        replayed = names & self.broken.keys() or names - self._copies - torn
        selected = sorted(replayed or names)
        action = DecisionAction.REPLAY if replayed else DecisionAction.DISCARD
        self.story.append(f"    {action} of {selected}")
        self.settled += len(selected)
        lines = [record_line(name, self._as_written(name)) for name in selected] if replayed else []
        return Decision(
            action, [list(name) for name in selected], lines, "ann", "a history", "2026-01-01T00:00:00+00:00"
        )

    def _as_written(self, name: RecordId) -> Record:
        topic, partition, offset = name
        return self.broken.get(name, self.log.partitions[topic, partition][offset])

    def _settle(self, operator: random.Random, seq: int, *, everything: bool = False) -> bool:
        """Settle some of what waits, or one kind of it; return whether anything did.

        :param everything: settle all of one kind.
        """
        self.log.arm(None)
        job = self._job(seq, [])
        waiting = self._waiting(job)
        if waiting and not everything:
            waiting = operator.sample(waiting, operator.randint(1, len(waiting)))
        if not waiting:
            return False
        decided = replace(job, order=self._decision(waiting))
        result = self._sync(JobDocument.from_document(json.loads(json.dumps(decided.document()))))
        self._take_over(seq, result.document())
        self._backups.append((self._seqs, self._schema, self.states))
        return True

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        problems = Replay._batch(self, 6 * number, self._broken_chunks(chunks), None)
        if self._is_unclear(problems):
            return []
        if problems or not self._seqs:
            return problems
        operator = random.Random(f"{self.case.seed} {number} repairs")
        last = self._is_last()
        for seq in range(6 * number + 1, 6 * number + 6):
            try:
                if (last or operator.random() < 0.5) and not self._settle(operator, seq, everything=last):
                    break
            except DataError as error:
                if not self._is_unclear([str(error)]):
                    raise
                return []
        return [] if picture is None or self._waiting(self._job(6 * number + 6, [])) else self._differences(picture)

    def _is_unclear(self, problems: Sequence[str]) -> bool:
        """Return whether nothing shows of which log of the source a record is; the history ends there."""
        if not self.case.style.log_restarts or not any(UNCLEAR in problem for problem in problems):
            return False
        self.parked["the pipeline"] = UNCLEAR
        return True

    def _is_last(self) -> bool:
        return self._done == {where: len(orders) for where, orders in self._orders.items()}


def repair(*records: tuple[str, int, int, Record]) -> Decision:
    """Return the decision to replay records as they were, of topic, partition and offset."""
    names = [list(record[:3]) for record in records]
    lines = [record_line(record[:3], record[3]) for record in records]
    return Decision(DecisionAction.REPLAY, names, lines)


def record_line(name: RecordId, record: Record) -> dict[str, Any]:
    """Return a record in the form that ``decode`` reads."""
    topic, partition, offset = name
    headers = [[key, _text(value)] for key, value in record.headers]
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "timestamp": record.time,
        "key": _text(record.key),
        "value": _text(record.value),
        **({"headers": headers} if headers else {}),
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _is_json(record: Record) -> bool:
    return (record.value or b"")[:1] in (b"{", b"[")


def cut_off(record: Record) -> Record:
    """Return a record whose bytes are no message: nothing shows whose they were."""
    value = record.value or b""
    return replace(record, value=value[: max(1, len(value) // 2)] if _is_json(record) else b"\xff" * 20)


def _misplaced(record: Record) -> Record:
    """Return a record whose position in the source's log is none, but which names its table; the same without one."""
    value = record.value or b""
    return replace(record, value=_BINLOG.sub(b'"mysql-bin.9223372036854775808"', value)) if _is_json(record) else record


def unfit(record: Record, which: int = 0) -> Record:
    """Return a record with a word for a number in a row image; the same where there is no number.

    :param which: index of the number among those of the image.
    """
    if not _is_json(record):
        return record
    document = json.loads(record.value or b"{}")
    payload = document.get("payload", document) or {}
    if isinstance(payload.get("data"), list) and payload.get("mysqlType"):
        image = payload["data"][0]
        numbers = [name for name, kind in payload["mysqlType"].items() if "int" in kind and image.get(name)]
    elif "source" in payload and isinstance(payload.get("after"), dict):
        image = payload["after"]
        numbers = [name for name, value in image.items() if type(value) is int]
    else:
        return record
    if not numbers:
        return record
    image[numbers[which]] = "no number"
    return replace(record, value=json.dumps(document).encode())
