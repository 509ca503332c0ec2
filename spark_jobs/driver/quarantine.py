# SPDX-License-Identifier: Apache-2.0
"""Records that could not be decoded: each counts against its table's limit, and parks only that table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from airflow_provider_cdc.core.config import TableRules
from airflow_provider_cdc.core.documents import DecisionAction, JobDocument, TableState
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline, Timeline
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.left_out_rows import unsettled
from spark_jobs.driver.record_owners import RecordOwners
from spark_jobs.driver.topic_tables import TopicTables
from spark_jobs.lake.manifest import Manifest, Settled, Unreadable

EXCEEDED = "land.quarantine_exceeded"
_WAYS_OUT = (
    "correct source.format or its options if they are wrong and run again; replay or discard records with "
    "`airflow-cdc quarantine PIPELINE.yaml`"
)


class Quarantine:
    """Finds the tables of which more undecodable records wait for a decision than they may leave out.

    All batches count: a table stands until its limit allows the records or an operator settles them.

    :ivar settled: all records that operators settled, in this batch or before.
    :ivar waiting: undecodable records, of this batch and all before, that no operator settled.
    """

    def __init__(
        self,
        job: JobDocument,
        rules: TableRules,
        now: Timeline,
        changes: Sequence[SchemaChange],
        manifest: Manifest,
        history: History,
    ) -> None:
        """Find whose the records are.

        :param changes: all that the timeline is built from.
        """
        self._job, self._rules, self._manifest = job, rules, manifest
        self.settled = [*(Settled(**one) for one in history.settled()), *manifest.settled]
        self.topics = TopicTables(history.topics(), open_format(job.format, job.format_options), job.schema_topic)
        self.waiting = without_settled([*history.unreadable(), *read_now(manifest, self.topics)], self.settled)
        self.topics.add(manifest)
        self._left_out = unsettled(history.left_out(), self.settled)
        self._owners = RecordOwners(now, changes)
        self._of_table: dict[str, list[Unreadable]] = {}
        self._of_name: dict[TableName, list[Unreadable]] = {}
        self._unknown: list[Unreadable] = []
        for item in self.waiting:
            names = [TableName(item.database, item.table)] if item.table else self.topics.names_of(item)
            owners = self._owners.of(names[0], item) if len(names) == 1 else self._owners.single(names)
            for table_id in owners:
                self._of_table.setdefault(table_id, []).append(item)
            if not owners and len(names) == 1:
                self._of_name.setdefault(names[0], []).append(item)
            elif not owners:
                self._unknown.append(item)

    def unknown(self) -> DataError | None:
        """Return why no table can go on: more records wait of which each may be of any table; None where they can."""
        limit = self._job.policy.quarantine_limit
        ways_out = "or raise the limit; nothing was applied"
        return _exceeded("an unknown table", self._unknown, limit, "policy.quarantine_limit", ways_out)

    def exceeded(self, timeline: TableTimeline) -> DataError | None:
        """Return why a table cannot go on, None where it can."""
        return self._error(timeline.last_name, self._of_table.get(timeline.table_id, []))

    def exceeded_by_name(self, name: TableName) -> DataError | None:
        """Return the same for a name that no table is known to have had when its records were read."""
        return self._error(name, self._of_name.get(name, []))

    def left_out(self, table_id: str, base: TableState | None) -> int:
        """Return how many rows a table's state lacks because they do not fit, and wait for a decision."""
        if base is None:
            return 0
        return sum(row.table_id == table_id and seq <= base.applied_seq for seq, row in self._left_out)

    def unread(self, timeline: TableTimeline) -> int:
        """Return how many undecodable records that may be of a table wait for a decision."""
        mine = [*self._of_table.get(timeline.table_id, []), *self._of_name.get(timeline.last_name, []), *self._unknown]
        return sum(item.count for item in mine)

    def discarded(self, timeline: TableTimeline, base: TableState | None) -> int:
        """Return how many records of a table operators discarded since it was built from elsewhere.

        A record that names no table is of it where its topic has had the rows of no other.
        """
        from_elsewhere = base is not None and (base.snapshot_position or base.provided is not None)
        since = base.rebuilt_seq if base is not None and from_elsewhere else 0
        names = {name for _, name in timeline.names if name is not None}
        count = 0
        for one in {one.record: one for one in self.settled}.values():  # the newest decision about each
            if one.action == DecisionAction.DISCARD and not one.rows_stay and one.seq > since:
                whose = {TableName(one.database, one.table)} if one.table else self.topics.tables_in(one.topic)
                count += bool(whose) and whose <= names
        return count

    def settles(self, timeline: TableTimeline) -> bool:
        """Return whether operators settle records of a table in this batch: it may go on then."""
        names = {name for _, name in timeline.names if name is not None}
        return any(TableName(one.database, one.table) in names for one in self._manifest.settled)

    def unowned(self) -> Iterator[TableName]:
        """Yield the names of undecodable records that no table had when they were read."""
        yield from self._of_name

    def _error(self, name: TableName, items: Sequence[Unreadable]) -> DataError | None:
        limit = self._rules.policy(name, self._job.policy).quarantine_limit
        ways_out = f"or let the table go on without them: tables.{name}.quarantine_limit"
        return _exceeded("the table", items, limit, "its quarantine_limit", ways_out)


def _exceeded(whose: str, items: Sequence[Unreadable], limit: int, named: str, ways_out: str) -> DataError | None:
    """Return the error of more undecodable records than a limit, None where there are no more.

    :param whose: records, in words.
    :param named: the limit's name.
    :param ways_out: what the operator can do, in addition to what helps always.
    """
    count = sum(item.count for item in items)
    if count <= limit:
        return None
    first = items[0]
    return DataError(
        "land.quarantine_exceeded",
        f"{count} records of {whose} could not be decoded ({first.error_code}: {first.error}), {named} is {limit}",
        where=_where(first),
        hint=f"{_WAYS_OUT}; {ways_out}",
    )


def read_now(manifest: Manifest, topics: TopicTables) -> list[Unreadable]:
    """Return the undecodable records of a batch, with what it shows of the position and the partition of each.

    :param topics: of the batches before.
    """
    # in formats without positions the statements themselves have Kafka's time
    timed = [one for one in (*manifest.statements, *manifest.schema_changes) if one.get("sent") is not None]
    sent = [(one["sent"], one["position"]) for one in timed if one["position"] is not None]
    return [
        replace(
            item,
            seq=manifest.seq,
            between=_between(item, sent),
            behind_rows=topics.stands_behind_rows(item, manifest),
        )
        for item in manifest.unreadable
    ]


def _between(item: Unreadable, statements: Sequence[tuple[int, str]]) -> list[str]:
    """Return the positions of the statements that were sent last before and first after some records.

    :param statements: Kafka's time and position of each.
    """
    if not item.sent:
        return []
    first, last = item.sent
    before = max((position for time, position in statements if time < first), default="")
    return [before, min((position for time, position in statements if time > last), default="~")]


def without_settled(items: Sequence[Unreadable], settled: Sequence[Settled]) -> list[Unreadable]:
    """Return undecodable records without those that operators settled, maybe several times."""
    # a record may have several errors, all of which a decision settles
    times = Counter((one.of, one.counted_with, one.record, one.seq) for one in settled if one.kind == "record")
    errors: dict[tuple[Any, ...], int] = {}
    for (*record, _), count in times.items():
        errors[tuple(record)] = max(count, errors.get(tuple(record), 0))
    counts: Counter[tuple[Any, ...]] = Counter()
    for (of, mark, _), count in errors.items():
        counts[of, mark] += count
    left = [replace(item, count=item.count - counts[item.seq, item.counted_with]) for item in items]
    return [item for item in left if item.count > 0]


def _where(item: Unreadable) -> dict[str, Any]:
    return {"topic": item.topic, "partition": item.partition, "offset": item.offset}
