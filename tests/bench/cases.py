# SPDX-License-Identifier: Apache-2.0
"""The bench's cases: which records a broker holds, who reads them, and from what state."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.formats.registry import format_names
from tests.bench.contestants import (
    Arena,
    Bare,
    BareEnvelope,
    Contestant,
    Decode,
    FormatEnvelope,
    HandWritten,
    Inline,
    Land,
    Ours,
    Plain,
)
from tests.bench.data import Feed
from tests.bench.formats_data import TABLE, Orders, pipeline_of, records_of, typed
from tests.bench.large_target import Changes
from tests.bench.producing import produce
from tests.bench.report import say
from tests.bench.rounds import Rounds
from tests.bench.structure import SCHEMA_TOPIC
from tests.services.broker import Broker


class Cases:
    """The cases, one after the other; what they give is in `rounds`."""

    def __init__(self, options: argparse.Namespace, broker: Broker, folder: Path, rounds: Rounds) -> None:
        self._options, self._broker, self._folder, self._rounds = options, broker, folder, rounds

    def run(self) -> None:
        """Go through those that are wanted."""
        changes = self._options.changes
        for tables in self._options.tables:
            name = "one table" if tables == 1 else f"{tables} tables"
            self._scenario(name, changes, tables, partitions=2 if tables == 1 else 1)
            if tables > 1:
                self._scenario(f"{name} in one topic", changes, tables, one_topic=True, partitions=2)
        self._scenario("one table, plain", changes, 1, embedded=False, partitions=2)
        self._scenario("10 messages", 10, 1)
        self._scenario("10 000 changes", 10_000, 1)

        for recent in (True, False):
            self._large_target(recent)
        for wire in format_names():
            self._format(wire, self._options.format_changes)

    # ---- a large table

    def _large_target(self, recent: bool) -> None:
        """Measure 100 000 changes of a table that many rows are stored in, next to the hand-written MERGE."""
        stored, changes = self._options.stored, min(100_000, self._options.changes)
        case = f"{stored} stored rows, {'recent' if recent else 'random'} keys"
        if not self._rounds.selects(case):
            return
        feed = Feed(1, embedded=False, partitions=2)
        arena = Arena(
            self._folder, self._broker.bootstrap, feed.table_names, embedded=False, policy=self._options.policy
        )
        everybody: list[Contestant] = [Ours(arena), Inline(arena), HandWritten(arena)]
        with self._topics({**feed.topics, SCHEMA_TOPIC: 1}):
            produce(self._broker.bootstrap, feed.schema_records())
            arena.ranges = self._produce(case, feed, 10)
            self._rounds.warm_up(Ours(arena))
            everybody = [who for who in everybody if self._rounds.fill(who, stored)]
            of_keys = Changes(feed, stored, changes, recent)
            produce(self._broker.bootstrap, of_keys.records())
            arena.ranges = self._ranges(feed.topics, arena.ranges)
            (table,) = feed.table_names
            self._rounds.compete(
                case,
                everybody,
                changes,
                None,
                prepare=lambda who: who.restore(),
                check=lambda who: of_keys.wrong(who.table(table)),
            )

    # ---- one wire format

    def _format(self, wire: str, changes: int) -> None:
        """Return the same orders as one tool writes them: its floors, landing, and the whole batch."""
        case = f"format {wire}"
        if not self._rounds.selects(case):
            return
        orders = Orders()
        arena = Arena(
            self._folder, self._broker.bootstrap, [TABLE], pipeline=pipeline_of(wire), policy=self._options.policy
        )
        rows = f"bench.{wire}.rows"
        with self._topics({rows: 2, f"bench.{wire}.schema": 1}):
            begin = time.monotonic()
            count, size = produce(self._broker.bootstrap, records_of(wire, orders, changes, 2))
            say(f"{case}: {count} records, {size / 1e6:.0f} MB, produced in {time.monotonic() - begin:.0f} s")
            arena.ranges = self._ranges({rows: 2})
            spark, inline = Ours(arena), Inline(arena)
            truth = {TABLE: typed(orders.content)}
            self._rounds.warm_up(spark)
            self._rounds.compete(case, [spark, inline], changes, lambda: truth)
            self._rounds.compete(case, [Land(arena, inline), FormatEnvelope(arena)], changes, None)
            self._rounds.compete(case, [Decode(arena, inline), Plain(arena, inline)], changes, None)

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
        arena = Arena(
            self._folder, self._broker.bootstrap, feed.table_names, embedded=embedded, policy=self._options.policy
        )
        spark, inline, hand = Ours(arena), Inline(arena), HandWritten(arena)
        everybody: list[Contestant] = [spark, inline, *([hand] if tables <= self._options.hand_tables else [])]
        with self._topics({**feed.topics, SCHEMA_TOPIC: 1}):
            produce(self._broker.bootstrap, feed.schema_records())
            arena.ranges = self._produce(name, feed, changes)
            expected = feed.expected
            self._rounds.warm_up(spark)
            if self._rounds.selects(case["empty"]):
                extra: list[Contestant] = [Bare(arena), BareEnvelope(arena)] if big else []
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
            arena.ranges = self._produce(name, feed, changes, arena.ranges)
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
                if left.name not in ("broker", "airflow", "pycache"):
                    shutil.rmtree(left, ignore_errors=True)
            time.sleep(3)  # the broker deletes in the background

    def _produce(self, name: str, feed: Feed, changes: int, before: Any = None) -> Any:
        begin = time.monotonic()
        count, size = produce(self._broker.bootstrap, feed.batch(changes))
        say(f"{name}: {count} records, {size / 1e6:.0f} MB, produced in {time.monotonic() - begin:.0f} s")
        return self._ranges(feed.topics, before)

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
