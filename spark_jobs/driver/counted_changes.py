# SPDX-License-Identifier: Apache-2.0
"""Find tables that lack changes which the log itself counts: the end of a transaction says how many of each table.

Nothing orders the ends against the rows, which come on other partitions. So a transaction is looked at until its rows
are all there, or until each partition of the table's topics has shown a change from behind it: then all that was sent
of it is read. Rows that came again are more than were counted, and prove nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.errors import CHANGES_MISSING, SinkError
from airflow_provider_cdc.core.formats.contract import IdentifiesTables
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.relation import RelationChange, RelationEvent
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.plain_data import Document
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from spark_jobs.driver.batch_context import BatchContext
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.generations import Generations
from spark_jobs.driver.topic_tables import TopicTables
from spark_jobs.lake.manifest import Manifest, RowGroup

_MOST_BATCHES = 8  # earlier ones that may hold rows of a transaction whose end comes now
_MOST_OPEN = 1_000
_READ = ("snapshot", "incremental")  # rows that are of no transaction of the log
_REASON = (
    CHANGES_MISSING + ": the log counts {} of this table in the transaction {} that it does not have: a TRUNCATE "
    "that a transform swallows (ExtractNewRecordState), or lost records"
)


@dataclass(frozen=True, slots=True)
class OpenCommit(Document):
    """A transaction of which changes of one table have not come.

    :param number: of the transaction, as its rows have it.
    :param lsn: first number of the positions behind it.
    :param lacks: changes that have not come.
    """

    number: str
    lsn: int
    database: str
    table: str
    lacks: int


@dataclass(slots=True)
class OpenCommits(Document):
    """The transactions that lack changes so far.

    :param newest: first numbers of the positions behind the last two of all transactions.
    """

    newest: list[int] = field(default_factory=list)
    open: list[OpenCommit] = field(default_factory=list)


class Counted(NamedTuple):
    """Hold the outcome of comparing: what tables lack, and what may still come."""

    lost: list[SchemaChange]
    open: OpenCommits


def compare_counts(batch: BatchContext, landed: Manifest, generations: Generations) -> Counted:
    """Compare the changes that were read with the counts of the log."""
    job, history = batch.job, batch.history
    before = OpenCommits.from_document(history.commits())
    wire = open_format(job.format, job.format_options)
    if not isinstance(wire, IdentifiesTables) or "transaction_counts" not in wire.carries:
        return Counted([], OpenCommits())
    if landed.commits is None or generations.newest:
        return Counted([], OpenCommits())
    if not landed.commits and not before.open:
        return Counted([], before)
    topics = TopicTables(history.topics(), wire, job.schema_topic)
    topics.add(landed)
    compared = _Comparison(history, landed, job.marks, job.end, topics)
    lacking, newest = compared.of_new_ones(before.newest)
    lacking += compared.of_open_ones(before.open)
    lost = [one for one in lacking if compared.is_read_behind(one)]
    still = [one for one in lacking if one not in lost]
    parked = [one for one in lost if job.tables.policy(_name(one), job.policy).on_contradiction == "park"]
    return Counted([_change(one, job.marks, wire.dialect) for one in parked], OpenCommits(newest, still[-_MOST_OPEN:]))


@dataclass
class _Comparison:
    """Compare a batch, and what earlier ones have of its transactions.

    :param marks: newest position that each ``topic/partition`` has shown.
    :param ends: partitions that there are, by topic.
    """

    history: History
    landed: Manifest
    marks: Mapping[str, str]
    ends: Mapping[str, Mapping[str, int]]
    topics: TopicTables

    def of_new_ones(self, newest: Sequence[int]) -> tuple[list[OpenCommit], list[int]]:
        """Return what transactions lack whose ends the batch has, and the newest of their lsns.

        :param newest: lsns of the last transactions before. The rows of one stand behind the end of the one before
            it; those whose rows may stand anywhere are passed over.
        """
        commits = {(lsn, number): counts for number, lsn, counts in self.landed.commits or ()}
        lsns = sorted({*newest, *(lsn for lsn, _ in commits)})
        known = {".".join(name): TableName(*name) for names in self.topics.names.values() for name in names}
        lacking: list[OpenCommit] = []
        since = ""
        for (lsn, number), counts in sorted(commits.items()):
            index = bisect_left(lsns, lsn)
            if index >= 2 and (floor := self._position(lsns[index - 2])):
                since = min(since or floor, floor)
                lacking += [
                    OpenCommit(number, lsn, *known[name], count) for name, count in counts.items() if name in known
                ]
        lacking = _without(lacking, _counts(self.history, self.landed.groups, lacking))
        if lacking:
            lacking = self._not_in_earlier_ones(lacking, since)
        return self._unexplained(lacking, [self.landed]), lsns[-2:]

    def of_open_ones(self, open_ones: Sequence[OpenCommit]) -> list[OpenCommit]:
        """Return what transactions still lack whose ends earlier batches had."""
        lacking = _without(open_ones, _counts(self.history, self.landed.groups, open_ones))
        return self._unexplained(lacking, [self.landed])

    def is_read_behind(self, commit: OpenCommit) -> bool:
        """Return whether each partition that the table's rows come on has shown a change from behind a transaction."""
        name = [commit.database, commit.table]
        mine = {partition.rpartition("/")[0] for partition, names in self.topics.names.items() if name in names}
        if not mine or any(
            self.topics.is_full(partition) and partition.rpartition("/")[0] not in mine
            for partition in self.topics.names
        ):
            return False
        partitions = {partition for partition in self.marks if partition.rpartition("/")[0] in mine}
        partitions |= {f"{topic}/{partition}" for topic in mine for partition in self.ends.get(topic, ())}
        behind = self._position(commit.lsn)
        return all(self.marks.get(partition, "") >= behind for partition in partitions)

    def _not_in_earlier_ones(self, lacking: list[OpenCommit], since: str) -> list[OpenCommit]:
        """Return what is lacking without the rows of earlier batches; nothing where those are not all there."""
        seqs = self.history.since(since)
        if len(seqs) > _MOST_BATCHES:
            return []
        manifests = [self.history.manifest(seq) for seq in seqs]
        if any(one.groups and not one.changes for one in manifests):
            return []  # maintenance has folded it: its rows cannot be read
        try:
            earlier = _counts(self.history, [group for one in manifests for group in one.groups], lacking)
        except SinkError as error:
            if error.code != "retention.log_expired":
                raise
            return []
        return self._unexplained(_without(lacking, earlier), manifests)

    @staticmethod
    def _unexplained(lacking: list[OpenCommit], manifests: Iterable[Manifest]) -> list[OpenCommit]:
        """Return what is lacking and that no record which could not be read may have been."""
        unread = {TableName(one.database, one.table) for manifest in manifests for one in manifest.unreadable}
        if any(not name.table for name in unread):
            return []
        return [one for one in lacking if _name(one) not in unread]

    def _position(self, lsn: int) -> str:
        return _position(lsn, self.marks)


def _name(commit: OpenCommit) -> TableName:
    return TableName(commit.database, commit.table)


def _position(lsn: int, marks: Mapping[str, str]) -> str:
    """Return the first position with a first number; empty where nothing shows how wide positions are."""
    generation, first, *rest = next((mark for mark in marks.values() if mark), "").split(".") if marks else ("", "")
    return ".".join([generation, f"{lsn:0{len(first)}d}", *("0" * len(part) for part in rest)]) if rest else ""


def _counts(history: History, groups: Sequence[RowGroup], commits: Collection[OpenCommit]) -> Counter[tuple[str, ...]]:
    """Return how many changes row groups have of each table in each of some transactions."""
    numbers = pa.array(sorted({one.number for one in commits}), pa.string())
    counts: Counter[tuple[str, ...]] = Counter()
    for name in sorted({_name(one) for one in commits}):
        mine = [group for group in groups if (group.database, group.table) == name]
        if not mine:
            continue
        rows = history.rows(mine, ("transaction_id", "op"))
        streamed = pc.invert(pc.is_in(rows.column("op").cast(pa.string()), pa.array(_READ)))
        ids = rows.column("transaction_id").cast(pa.string())
        ids = ids.filter(pc.and_(streamed, pc.is_in(ids, numbers)))
        for item in pc.value_counts(ids).to_pylist():
            counts[item["values"], *name] += item["counts"]
    return counts


def _without(lacking: Sequence[OpenCommit], counts: Counter[tuple[str, ...]]) -> list[OpenCommit]:
    """Return what is lacking after some changes were read."""
    left = ((one, one.lacks - counts[one.number, one.database, one.table]) for one in lacking)
    return [replace(one, lacks=lacks) for one, lacks in left if lacks > 0]


def _change(commit: OpenCommit, marks: Mapping[str, str], dialect: str | None) -> SchemaChange:
    """Return the change after which a table's rows are unknown."""
    what = "1 change" if commit.lacks == 1 else f"{commit.lacks} changes"
    text = _REASON.format(what, commit.number)
    relation = RelationChange(RelationEvent.LACKING, 0, "", None, commit.database, commit.table, text=text)
    statement = f"-- {what} of {_name(commit)} in the transaction {commit.number} did not come"
    return SchemaChange(_position(commit.lsn, marks), 0, commit.database, statement, relation=relation, dialect=dialect)
