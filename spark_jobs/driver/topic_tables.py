# SPDX-License-Identifier: Apache-2.0
"""Find whose an undecodable record is by its topic: a topic that holds the rows of one table."""

from __future__ import annotations

from airflow_provider_cdc.core.formats.contract import Format, NamesTopics
from airflow_provider_cdc.core.model.schema import TableName
from spark_jobs.lake.manifest import LandReport, Unreadable

TopicNames = dict[str, list[list[str]]]
"""Database and table of the tables whose rows each partition had, by ``topic/partition``."""

_SEVERAL = 9  # names of a partition that are noted: one table that is renamed has fewer


class TopicTables:
    """Knows the tables whose rows each topic had so far.

    :param before: what the batches before noted.
    """

    def __init__(self, before: TopicNames, wire: Format, schema_topic: str | None) -> None:
        self._wire, self._schema_topic = wire, schema_topic
        self.names: TopicNames = {partition: [*names] for partition, names in before.items()}

    def add(self, landed: LandReport) -> None:
        """Take the tables whose rows a batch landed."""
        for partition, tables in landed.topics.items():
            names = self.names.setdefault(partition, [])
            names += [name for *name, _ in tables if name not in names]
            del names[_SEVERAL:]

    def is_full(self, partition: str) -> bool:
        """Return whether a partition may have had rows of tables that are not noted."""
        return len(self.names.get(partition, ())) >= _SEVERAL

    def stands_behind_rows(self, item: Unreadable, landed: LandReport) -> bool:
        """Return whether a row stands before records in their partition.

        :param landed: the batch that has them, which is not added yet.
        """
        partition = f"{item.topic}/{item.partition}"
        first = min((offset for *_, offset in landed.topics.get(partition, ())), default=item.offset)
        return bool(self.names.get(partition)) or first < item.offset

    def names_of(self, item: Unreadable) -> list[TableName]:
        """Return the names that the table of some records had so far; empty where nothing shows whose they are.

        A topic says so if it is named after a table, or if a row stands before the records: rows behind them would show
        it in some batches and not in others.
        """
        if item.topic == self._schema_topic:
            return []
        named = None
        if isinstance(self._wire, NamesTopics):
            named = self._wire.table_of_topic(item.topic, self._schema_topic)
        if named is None and not item.behind_rows:
            return []
        rows = self.tables_in(item.topic)
        if len(rows) >= _SEVERAL:
            return []
        return sorted(rows) if rows or named is None else [TableName(*named)]

    def tables_in(self, topic: str) -> set[TableName]:
        """Return the names of the tables whose rows a topic had so far, as far as they are noted."""
        mine = (names for key, names in self.names.items() if key.rpartition("/")[0] == topic)
        return {TableName(*name) for names in mine for name in names}
