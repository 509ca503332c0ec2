# SPDX-License-Identifier: Apache-2.0
"""Summarise what the records of a land task show of the source's log.

The records of each partition become **stretches**: placed records that follow each other, with their lowest and highest
position, newest source time and greatest GTIDs. They are small enough to be kept, and say enough to recognise a log
that began again without reading the records a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.formats.common.joined_partitions import partition_runs
from airflow_provider_cdc.core.model.gtid import parse_gtid
from airflow_provider_cdc.core.model.position import generation_of
from airflow_provider_cdc.core.model.position_columns import generation_text_of

_STRETCHES = 200  # of one partition that a task reports; all further records are reported as one
RECORD_COLUMNS = ("topic", "partition", "offset", "index", "op", "position", "source_time", "transaction_id")
_SEPARATOR = {"mysql": ":", "mariadb": "-"}


@dataclass(slots=True)
class Stretch:
    """Placed records of one partition that follow each other.

    :param start: offset of the first, ``end`` of the last.
    :param low: lowest position, ``high`` the highest.
    :param time: newest source time, microseconds since the epoch; None if a record has none.
    :param gtids: stream of GTIDs -> greatest number, and highest position.
    :param first_gtid: stream and number of the first GTID, with its position.
    :param falls: positions fall somewhere inside.
    """

    topic: str
    partition: int
    start: int
    end: int
    low: str
    high: str
    time: int | None = None
    gtids: dict[str, tuple[int, str]] = field(default_factory=dict)
    first_gtid: tuple[str, int, str] | None = None
    falls: bool = False

    @property
    def partition_key(self) -> str:
        """The partition as a key of documents."""
        return f"{self.topic}/{self.partition}"


class Stretches:
    """Collect what the records of one land task show of the source's log.

    :param own_ddl: whether the source itself writes its DDL into its log: then a row of it is read where the source is,
        also by a snapshot. A statement that a snapshot of a tool writes may stand at the position of an old offset.
    """

    def __init__(self, own_ddl: bool = False) -> None:
        self._own_ddl = own_ddl
        self._by_partition: dict[tuple[str, int], list[Stretch]] = {}
        self.statements: list[dict[str, Any]] = []  # ``describes`` is true where the place may be an old one

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the changes of some records of any partitions, each partition's in offset order."""
        whole = batch
        batch = batch.select(["kind", *RECORD_COLUMNS])  # the filters below would copy the images
        if "schema" in batch.column("kind").dictionary.to_pylist():
            is_ddl = pc.equal(batch.column("kind").cast(pa.string()), "schema")
            documents = record_documents(pa.Table.from_batches([batch.filter(is_ddl)]).select(RECORD_COLUMNS))
            times = whole.column("kafka_time").filter(is_ddl).cast(pa.int64())
            read = pc.equal(batch.column("op").cast(pa.string()), "snapshot").fill_null(False)
            described = pc.and_(pc.and_(read, is_ddl), not self._own_ddl)
            for one, sent, describes in zip(documents, times, described.filter(is_ddl), strict=True):
                self.statements.append({**one, "sent": sent.as_py(), "describes": describes.as_py()})
            batch = batch.filter(pc.invert(described))
        if batch.column("position").null_count:
            batch = batch.filter(pc.is_valid(batch.column("position")))
        for run in partition_runs(batch):
            self._add(run)

    def _add(self, batch: pa.RecordBatch) -> None:
        positions = batch.column("position")
        falls: Any = np.flatnonzero(pc.less(positions[1:], positions[:-1]).to_numpy(zero_copy_only=False)) + 1
        if len(falls) or generation_of(positions[0].as_py()) != generation_of(positions[-1].as_py()):
            generations = generation_text_of(positions)
            changed = pc.not_equal(generations[1:], generations[:-1]).to_numpy(zero_copy_only=False)
            falls = np.union1d(falls, np.flatnonzero(changed) + 1)
        stretches = self._by_partition.setdefault(
            (batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py()), []
        )
        if len(stretches) + len(falls) > _STRETCHES:
            self._append(stretches, _stretch(batch, falls=bool(len(falls))))
            return
        for start, end in zip([0, *falls], [*falls, len(batch)], strict=True):
            self._append(stretches, _stretch(batch.slice(start, end - start)))

    def _append(self, stretches: list[Stretch], new: Stretch) -> None:
        last = stretches[-1] if stretches else None
        follows = last is not None and new.low >= last.high and generation_of(new.low) == generation_of(last.high)
        if last is None or (not follows and len(stretches) < _STRETCHES):
            stretches.append(new)
            return
        last.falls = last.falls or new.falls or new.low < last.high
        last.start, last.end = min(last.start, new.start), max(last.end, new.end)
        last.low, last.high = min(last.low, new.low), max(last.high, new.high)
        last.time = None if last.time is None or new.time is None else max(last.time, new.time)
        _raise_to(last.gtids, new.gtids)

    def documents(self) -> list[dict[str, Any]]:
        """Return the stretches as plain JSON data."""
        return [asdict(stretch) for stretches in self._by_partition.values() for stretch in stretches]


def _stretch(batch: pa.RecordBatch, *, falls: bool = False) -> Stretch:
    offsets, positions, times = (batch.column(name) for name in ("offset", "position", "source_time"))
    span = pc.min_max(positions).as_py() if falls else {"min": positions[0].as_py(), "max": positions[-1].as_py()}
    return Stretch(
        batch.column("topic")[0].as_py(),
        batch.column("partition")[0].as_py(),
        offsets[0].as_py(),
        offsets[-1].as_py(),
        span["min"],
        span["max"],
        None if times.null_count else pc.max(times.cast(pa.int64())).as_py(),
        greatest_gtids(batch.column("transaction_id"), positions, span["max"]),
        _first_gtid(batch),
        falls,
    )


def _first_gtid(batch: pa.RecordBatch) -> tuple[str, int, str] | None:
    transactions = batch.column("transaction_id")
    if transactions.null_count == len(transactions):
        return None
    index = pc.index(pc.is_valid(transactions), True).as_py()
    gtid = parse_gtid(transactions[index].as_py())
    return None if gtid is None else (gtid.stream, gtid.number, batch.column("position")[index].as_py())


def greatest_gtids(transactions: pa.StringArray, positions: pa.StringArray, highest: str) -> dict[str, tuple[int, str]]:
    """Return the greatest number of each stream of GTIDs with its highest position; other texts do not count.

    :param highest: the highest position of all.
    """
    texts = transactions.drop_null()
    first = parse_gtid(texts[0].as_py()) if len(texts) else None
    if first is None:
        return {}
    prefix = texts[0].as_py().removesuffix(texts[0].as_py().rpartition(_SEPARATOR[first.flavour])[2])
    if pc.all(pc.starts_with(texts, prefix)).as_py():  # one server: a few passes over the column
        try:
            numbers = pc.utf8_slice_codeunits(texts, len(prefix)).cast(pa.int64())
            return {first.stream: (max(0, pc.max(numbers).as_py()), highest)}
        except pa.ArrowInvalid:
            pass
    newest = pa.table({"text": transactions, "position": positions}).group_by("text").aggregate([("position", "max")])
    result: dict[str, tuple[int, str]] = {}
    for text, position in zip(*(newest.column(name).to_pylist() for name in ("text", "position_max")), strict=True):
        if (gtid := parse_gtid(text)) is not None:
            _raise_to(result, {gtid.stream: (gtid.number, position)})
    return result


def record_documents(rows: pa.Table) -> list[dict[str, Any]]:
    """Return changes as plain JSON data, source times in microseconds since the epoch."""
    column = rows.schema.get_field_index("source_time")
    rows = rows.set_column(column, "source_time", _micros(rows))
    return rows.to_pylist()  # type: ignore[no-any-return]


def _micros(rows: pa.Table) -> pa.ChunkedArray:
    return rows.column("source_time").cast(pa.int64())


def _newest(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _raise_to(gtids: dict[str, tuple[int, str]], others: Mapping[str, tuple[int, str]]) -> None:
    for stream, (number, position) in others.items():
        known = gtids.get(stream, (number, position))
        gtids[stream] = max(number, known[0]), max(position, known[1])
