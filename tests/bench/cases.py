# SPDX-License-Identifier: Apache-2.0
"""The bench's cases: which records a broker holds, who reads them, and from what state."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.bench.contestants import (
    CLEARED,
    Afternoon,
    Arena,
    Bare,
    BareEnvelope,
    Contestant,
    Decode,
    Flink,
    FormatEnvelope,
    HandWritten,
    Inline,
    Land,
    OnCluster,
    Ours,
    Plain,
    clear,
)
from tests.bench.data import Feed, Record
from tests.bench.formats_data import TABLE, Orders, case_names, pipeline_of, records_of, typed, writer_of
from tests.bench.large_target import LAYOUT_CHANGES, Changes, LayoutChange, Snapshot
from tests.bench.modes import MODED, check
from tests.bench.producing import produce
from tests.bench.report import MODE_CASE, afternoon_case, say
from tests.bench.rounds import Rounds
from tests.bench.structure import SCHEMA_TOPIC
from tests.cross_format.writers import registry_of
from tests.services.broker import Broker
from tests.services.spark_cluster import SparkCluster

_MOST_TOPICS = 1_000  # more tables share one topic
_BEHIND_LAYOUT = 1_000  # changes after a change of the layout


class Cases:
    """The cases, one after the other; what they give is in `rounds`."""

    def __init__(
        self,
        options: argparse.Namespace,
        broker: Broker,
        folder: Path,
        rounds: Rounds,
        cluster: SparkCluster | None = None,
    ) -> None:
        self._options, self._broker, self._folder, self._rounds = options, broker, folder, rounds
        self._cluster = cluster

    def run(self) -> None:
        """Go through those that are wanted."""
        changes = self._options.changes
        for tables in self._options.tables:
            name = "one table" if tables == 1 else f"{tables} tables"
            if tables <= _MOST_TOPICS:
                self._scenario(name, changes, tables, partitions=2 if tables == 1 else 1)
            if tables > 1:
                self._scenario(f"{name} in one topic", changes, tables, one_topic=True, partitions=2)
        self._scenario("one table, plain", changes, 1, embedded=False, partitions=2)
        self._scenario("10 messages", 10, 1)
        self._scenario("10 000 changes", 10_000, 1)
        self._modes()

        self._sizes(sorted(self._options.sizes))
        for stored in self._options.stored:
            self._stored(f"{stored} stored rows, recent keys", stored, recent=True)
            self._stored(f"{stored} stored rows, random keys", stored, recent=False)
            for layout in LAYOUT_CHANGES:
                self._stored(f"{stored} stored rows, {layout.name}", stored, recent=True, layout=layout)
        if self._options.snapshot:
            self._snapshot(self._options.snapshot)
        for name in case_names():
            self._format(name, self._options.format_changes)
        for tables in self._options.tables:
            self._afternoon(tables, self._options.changes)

    # ---- rules and modes

    def _modes(self) -> None:
        """Measure the second batch into tables with rules and of each mode."""
        if not self._rounds.selects(MODE_CASE):
            return
        changes = self._options.changes
        feed = Feed(1, embedded=False, partitions=2)
        arena = self._arena(feed)
        with self._topics({**feed.topics, SCHEMA_TOPIC: 1}):
            produce(self._broker.bootstrap, feed.schema_records())
            arena.ranges = self._produce(MODE_CASE, feed.topics, feed.batch(changes))
            self._rounds.warm_up(Ours(arena))
            everybody = [who for who in (kind(arena) for kind in MODED) if self._rounds.fill(who)]
            arena.ranges = self._produce(MODE_CASE, feed.topics, feed.batch(changes), arena.ranges)
            truth = check(feed.expected())
            self._rounds.compete(MODE_CASE, everybody, changes, None, prepare=lambda who: who.restore(), check=truth)

    # ---- a large table

    def _stored(self, case: str, stored: int, recent: bool, layout: LayoutChange | None = None) -> None:
        """Measure changes of a table that many rows are stored in, next to the hand-written MERGE.

        layout: a change of its layout before them, which the hand-written job does not know.
        """
        if not self._rounds.selects(case):
            return
        changes = _BEHIND_LAYOUT if layout else min(100_000, self._options.changes)
        feed = Feed(1, embedded=False, partitions=2)
        arena = self._arena(feed)
        everybody: list[Contestant] = [Ours(arena), Inline(arena), *([] if layout else [HandWritten(arena)])]
        with self._topics({**feed.topics, SCHEMA_TOPIC: 1}):
            produce(self._broker.bootstrap, feed.schema_records())
            arena.ranges = self._produce(case, feed.topics, feed.batch(10))
            self._rounds.warm_up(Ours(arena))
            everybody = [who for who in everybody if self._rounds.fill(who, stored)]
            if layout:  # a change of the layout goes onto the version that the last batch left, so after the filling
                arena.ranges = self._produce(case, feed.topics, feed.batch(10), arena.ranges)
                everybody = [who for who in everybody if self._rounds.go_on(who)]
            of_keys = Changes(feed, stored, changes, recent, layout)
            arena.ranges = self._produce(case, feed.topics, of_keys.records(), arena.ranges)
            (table,) = feed.table_names
            self._rounds.compete(
                case,
                everybody,
                changes,
                None,
                prepare=lambda who: who.restore(),
                check=lambda who: of_keys.wrong(who.table(table)),
            )

    def _snapshot(self, rows: int) -> None:
        """Measure the batches that make a table from its initial snapshot."""
        case = f"snapshot of {rows} rows"
        if not self._rounds.selects(case):
            return
        feed = Feed(1, embedded=False, partitions=2)
        arena = self._arena(feed)
        snapshot = Snapshot(feed, rows)
        with self._topics({**feed.topics, SCHEMA_TOPIC: 1}):
            produce(self._broker.bootstrap, feed.schema_records())
            arena.ranges = self._produce(case, feed.topics, snapshot.records())
            self._rounds.warm_up(Ours(arena))
            (table,) = feed.table_names
            everybody = [Inline(arena), *self._on_spark(arena)]
            self._rounds.compete(case, everybody, rows, None, check=lambda who: snapshot.wrong(who.table(table)))

    def _sizes(self, sizes: list[int]) -> None:
        """Measure batches of more and more changes of one table."""
        cases = {size: f"{size} changes at once" for size in sizes}
        sizes = sizes[: max((n for n, size in enumerate(sizes, 1) if self._rounds.selects(cases[size])), default=0)]
        if not sizes:
            return
        feed = Feed(1, embedded=False, partitions=2)
        arena = self._arena(feed)
        with self._topics({**feed.topics, SCHEMA_TOPIC: 1}):
            produce(self._broker.bootstrap, feed.schema_records())
            for smaller, size in pairwise([0, *sizes]):
                self._produce(cases[size], feed.topics, feed.batch(size - smaller))
                arena.ranges = self._ranges(feed.topics)
                self._rounds.warm_up(Ours(arena))
                everybody = [Inline(arena), *self._on_spark(arena), HandWritten(arena)]
                self._rounds.compete(cases[size], everybody, size, feed.expected)

    def _arena(self, feed: Feed) -> Arena:
        return Arena(
            self._folder,
            self._broker.bootstrap,
            feed.table_names,
            embedded=feed.embedded,
            policy=self._options.policy,
            cluster=self._cluster,
        )

    def _on_spark(self, arena: Arena) -> list[Contestant]:
        return [Ours(arena), *([OnCluster(arena)] if arena.cluster else [])]

    # ---- one wire format

    def _format(self, name: str, changes: int) -> None:
        """Return the same orders as one tool writes them: its floors, landing, and the whole batch."""
        case = f"format {name}"
        if not self._rounds.selects(case):
            return
        orders, writer = Orders(), writer_of(name)
        rows = f"bench.{name}.rows"
        with self._topics({rows: 2, f"bench.{name}.schema": 1}), registry_of(writer) as registry:
            arena = Arena(
                self._folder,
                self._broker.bootstrap,
                [TABLE],
                pipeline=pipeline_of(name, writer),
                policy=self._options.policy,
                registry=registry.get("url"),
            )
            arena.ranges = self._produce(case, {rows: 2}, records_of(name, writer, orders, changes, 2))
            spark, inline = Ours(arena), Inline(arena)
            truth = {TABLE: typed(name, orders.content[TABLE])}
            self._rounds.warm_up(spark)
            self._rounds.compete(case, [spark, inline], changes, lambda: truth)
            self._rounds.compete(case, [Land(arena, inline), FormatEnvelope(arena)], changes, None)
            self._rounds.compete(case, [Decode(arena, inline), Plain(arena, inline)], changes, None)

    def _afternoon(self, tables: int, changes: int) -> None:
        """Measure Canal's flat JSON next to what is written for it in an afternoon."""
        case = afternoon_case(tables)
        if not self._rounds.selects(case):
            return
        name, names = "canal-json", [f"{TABLE}_{number:05d}" for number in range(1, tables + 1)]
        orders, writer, rows = Orders(names), writer_of(name), {f"bench.{name}.rows": 2}
        with self._topics(rows):
            arena = Arena(
                self._folder,
                self._broker.bootstrap,
                names,
                pipeline=pipeline_of(name, writer),
                policy=self._options.policy,
            )
            arena.ranges = self._produce(case, rows, records_of(name, writer, orders, changes, 2))
            truth = {table: typed(name, content) for table, content in orders.content.items()}
            self._rounds.warm_up(Ours(arena))
            others: list[Contestant] = [Afternoon(arena), *([Flink(arena)] if tables == 1 else [])]
            self._rounds.compete(case, [Inline(arena), *others], changes, lambda: truth)

    # ---- one source

    def _scenario(
        self, name: str, changes: int, tables: int, embedded: bool = True, one_topic: bool = False, partitions: int = 1
    ) -> None:
        big = changes > 10_000
        case = {
            "empty": f"{name}, empty" if big else name,
            "filled": f"{name}, filled",
            "double": f"{name}, twice as much",
            "repeat": f"{name}, ledger lost",
            "lost": f"{name}, ledger and result lost",
            "nothing": "nothing new",
        }
        if not any(self._rounds.selects(text) for text in case.values()):
            return
        feed = Feed(tables, embedded, one_topic, partitions)
        arena = self._arena(feed)
        spark, inline, hand = Ours(arena), Inline(arena), HandWritten(arena)
        everybody: list[Contestant] = [spark, inline, *([hand] if tables <= self._options.hand_tables else [])]
        with self._topics({**feed.topics, SCHEMA_TOPIC: 1}):
            produce(self._broker.bootstrap, feed.schema_records())
            arena.ranges = self._produce(name, feed.topics, feed.batch(changes))
            expected = feed.expected
            self._rounds.warm_up(spark)
            if self._rounds.selects(case["empty"]):
                extra: list[Contestant] = [Bare(arena), BareEnvelope(arena)] if big else []
                extra += self._on_spark(arena)[1:] if big else []
                self._rounds.compete(case["empty"], [*everybody, *extra], changes, expected)
                if big:
                    self._rounds.compete(case["empty"], [Land(arena, spark), Decode(arena, spark)], changes, None)
            if name == "one table" and (spark.root / "_cdc").exists():
                self._rounds.compete(case["repeat"], [spark], 0, expected, prepare=lambda c: c.forget())
                self._rounds.compete(case["lost"], [spark], 0, expected, prepare=lambda c: c.forget_result())
                self._rounds.compete(case["nothing"], [spark], 0, expected, prepare=lambda c: None)
            wants_more = [text for text in ("filled", "double") if self._rounds.selects(case[text])]
            if not big or not wants_more or tables > self._options.hand_tables:
                return
            if "filled" in wants_more:
                everybody = [who for who in everybody if self._rounds.fill(who)]
            arena.ranges = self._produce(name, feed.topics, feed.batch(changes), arena.ranges)
            if "filled" in wants_more:
                self._rounds.compete(case["filled"], everybody, changes, expected, prepare=lambda c: c.restore())
            if "double" in wants_more and tables == 1:
                arena.ranges = {t: {p: (0, end) for p, (_, end) in spans.items()} for t, spans in arena.ranges.items()}
                self._rounds.compete(case["double"], [spark, hand], 2 * changes, expected)

    @contextlib.contextmanager
    def _topics(self, topics: dict[str, int]) -> Iterator[None]:
        self._broker.create_topics(topics)
        try:
            yield
        finally:
            for future in self._broker.admin.delete_topics(list(topics), operation_timeout=60).values():
                future.result(120)
            for left in self._folder.iterdir():
                if left.name not in ("broker", "airflow", "pycache") and not left.name.startswith(CLEARED):
                    clear(left)
            time.sleep(3)  # the broker deletes in the background

    def _produce(self, name: str, topics: dict[str, int], records: Iterator[Record], before: Any = None) -> Any:
        begin = time.monotonic()
        count, size = produce(self._broker.bootstrap, records)
        say(f"{name}: {count} records, {size / 1e6:.0f} MB, produced in {time.monotonic() - begin:.0f} s")
        return self._ranges(topics, before)

    def _ranges(self, topics: dict[str, int], before: Any = None) -> Any:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self._broker.bootstrap, "group.id": "bench", "log_level": 3})
        ranges: dict[str, dict[int, tuple[int, int]]] = {}
        for topic, partitions in topics.items():
            for partition in range(partitions):
                end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1]
                start = before[topic][partition][1] if before else 0
                ranges.setdefault(topic, {})[partition] = (start, end)
        consumer.close()
        return ranges
