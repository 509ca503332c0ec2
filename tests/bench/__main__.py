"""`make bench`: speed and memory of whole processes, beside the Spark job a skilled user would write by hand.

Everything runs on this machine against one broker started for it. Compare ratios of one run; each figure is the
least of its rounds, and the load of other processes stands beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
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
from tests.bench.data import Feed, differences
from tests.bench.formats_data import TABLE, Orders, pipeline_of, records_of, typed
from tests.bench.measure import Measured, measure
from tests.bench.producing import produce
from tests.bench.report import Cell, Figures, table, targets
from tests.bench.structure import SCHEMA_TOPIC
from tests.stack.broker import Broker

RESULT = Path(__file__).parents[2] / "build" / "bench" / "bench.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the options choose; 1 if something failed or gave other tables, whatever the speed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--changes", type=int, default=500_000, help="changes of one batch (default 500000)")
    parser.add_argument("--tables", type=_numbers, default=[1, 100, 1000], help="numbers (default 1,100,1000)")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each figure (default 2)")
    parser.add_argument("--hand-tables", type=int, default=100, help="most tables the hand-written job is run with")
    parser.add_argument("--only", default="", help="only cases that have this text in their name; several apart by ;")
    parser.add_argument(
        "--who", default="", help="only contestants that have this text in their name; several apart by ;"
    )
    parser.add_argument("--format-changes", type=int, default=500_000, help="changes of each format (default 500000)")
    parser.add_argument("--quick", action="store_true", help="50000 changes, 1 and 20 tables, one round")
    parser.add_argument("--json", type=Path, default=RESULT, help=f"where the figures go (default {RESULT.name})")
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder, removed at the end)")
    parser.add_argument("--lock", type=Path, help="file to lock while Spark runs, where others use this machine too")
    given = parser.parse_args(arguments)
    if given.quick:
        given.changes, given.tables, given.rounds = min(given.changes, 50_000), [1, 20], 1
        given.format_changes = min(given.format_changes, 20_000)
    given.folder and given.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="cdc-bench-", dir=given.folder))
    bench = None
    try:
        say(f"broker, in {folder}")
        with Broker(folder / "broker") as broker:
            bench = Bench(given, broker, folder)
            bench.run()
    except KeyboardInterrupt:
        say("interrupted; what was measured until here follows")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if bench is None else bench.tell()


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def say(text: str) -> None:
    print(f"[{time.monotonic() - _BEGIN:6.0f} s] {text}", file=sys.stderr, flush=True)


_BEGIN = time.monotonic()


class Bench:
    """The cases, one after the other, and what they gave."""

    def __init__(self, given: argparse.Namespace, broker: Broker, folder: Path) -> None:
        self._given, self._broker, self._folder = given, broker, folder
        self.cells: list[Cell] = []
        self._warm = False

    def run(self) -> None:
        changes = self._given.changes
        for tables in self._given.tables:
            name = "one table" if tables == 1 else f"{tables} tables"
            self._scenario(name, changes, tables, partitions=2 if tables == 1 else 1)
            if tables > 1:
                self._scenario(f"{name} in one topic", changes, tables, one_topic=True, partitions=2)
        self._scenario("one table, plain", changes, 1, embedded=False, partitions=2)
        self._scenario("10 messages", 10, 1)
        self._scenario("10 000 changes", 10_000, 1)

        for wire in format_names():
            self._format(wire, self._given.format_changes)

    # ---- one wire format

    def _format(self, wire: str, changes: int) -> None:
        """The same orders as one tool writes them: its floors, landing, and the whole batch."""
        case = f"format {wire}"
        if not self._wanted(case):
            return
        orders = Orders()
        arena = Arena(self._folder, self._broker.bootstrap, [TABLE], pipeline=pipeline_of(wire))
        rows = f"bench.{wire}.rows"
        with self._topics({rows: 2, f"bench.{wire}.schema": 1}):
            begin = time.monotonic()
            count, size = produce(self._broker.bootstrap, records_of(wire, orders, changes, 2))
            say(f"{case}: {count} records, {size / 1e6:.0f} MB, produced in {time.monotonic() - begin:.0f} s")
            arena.ranges = self._ranges({rows: 2})
            spark, inline = Ours(arena), Inline(arena)
            truth = {TABLE: typed(orders.content)}
            self._warm_up(spark)
            self._round(case, [spark, inline], changes, lambda: truth)
            self._round(case, [Land(arena, inline), FormatEnvelope(arena)], changes, None)
            self._round(case, [Decode(arena, inline), Plain(arena, inline)], changes, None)

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
        if not any(self._wanted(text) for text in case.values()):
            return
        feed = Feed(tables, embedded, one_topic, partitions)
        arena = Arena(self._folder, self._broker.bootstrap, feed.table_names, embedded=embedded)
        spark, inline, hand = Ours(arena), Inline(arena), HandWritten(arena)
        everybody: list[Contestant] = [spark, inline, *([hand] if tables <= self._given.hand_tables else [])]
        with self._topics({**feed.topics, SCHEMA_TOPIC: 1}):
            produce(self._broker.bootstrap, feed.schema_records())
            arena.ranges = self._produce(name, feed, changes)
            expected = feed.expected
            self._warm_up(spark)
            if self._wanted(case["empty"]):
                extra: list[Contestant] = [Bare(arena), BareEnvelope(arena)] if big else []
                self._round(case["empty"], [*everybody, *extra], changes, expected)
                if big:
                    self._round(case["empty"], [Land(arena, spark), Decode(arena, spark)], changes, None)
            if name == "one table" and (spark.root / "_cdc").exists():
                self._round(case["repeat"], [spark], 0, expected, prepare=lambda c: c.forget())
                self._round(case["lost"], [spark], 0, expected, prepare=lambda c: c.forget_result())
                self._round(case["nothing"], [spark], 0, expected, prepare=lambda c: None)
            wants_more = [text for text in ("filled", "double") if self._wanted(case[text])]
            if not big or not wants_more or tables > self._given.hand_tables:
                return
            if "filled" in wants_more:
                everybody = [who for who in everybody if self._fill(who)]
            arena.ranges = self._produce(name, feed, changes, arena.ranges)
            if "filled" in wants_more:
                self._round(case["filled"], everybody, changes, expected, prepare=lambda c: c.restore())
            if "double" in wants_more and tables == 1:
                arena.ranges = {t: {p: (0, end) for p, (_, end) in spans.items()} for t, spans in arena.ranges.items()}
                self._round(case["double"], [spark, hand], 2 * changes, expected)

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

    def _warm_up(self, spark: Ours) -> None:
        """Once, unmeasured: what an installation pays only the first time: payload, compiled modules, disk cache."""
        if self._warm:
            return
        self._warm = True
        say("warm-up, not measured")
        imports = "import confluent_kafka, delta.tables, msgspec, pyspark.daemon, pyspark.sql.functions, pyspark.worker"
        self._run([sys.executable, "-c", imports], {})
        for who in (spark, spark, Inline(spark.arena)):  # the second start of Spark keeps its classes
            if not self._chosen(who):
                continue
            who.fresh()
            with self._turn(who.spark):
                run = self._measure(who)
            if run.code:
                say(f"warm-up failed with code {run.code}:\n" + _tail(run))

    def _fill(self, who: Contestant) -> bool:
        """Let a contestant hold the first batch; False when it cannot."""
        if not self._chosen(who):
            return False
        if not any(self.cells_of(who)) or not who.root.exists():
            who.fresh()
            with self._turn(who.spark):
                if self._measure(who).code:
                    return False
        who.save()
        return True

    def cells_of(self, who: Contestant) -> Iterator[Cell]:
        """What a contestant gave in the case that went last."""
        last = self.cells[-1]["case"].split(",")[0] if self.cells else ""
        return (cell for cell in self.cells if cell["who"] == who.name and cell["case"].split(",")[0] == last)

    # ---- one figure

    def _round(
        self,
        case: str,
        everybody: Sequence[Contestant],
        changes: int,
        expected: Callable[[], Any] | None,
        prepare: Callable[[Any], None] = lambda who: who.fresh(),
    ) -> None:
        everybody = [who for who in everybody if self._chosen(who) and self._wanted(case)]
        truth = expected() if expected and everybody else None
        runs: dict[str, list[Measured]] = {who.name: [] for who in everybody}
        equal: dict[str, bool | None] = {who.name: None for who in everybody}
        failed: dict[str, str] = {}
        with self._turn(any(who.spark for who in everybody)):
            for number in range(self._given.rounds):
                for who in everybody if number % 2 == 0 else everybody[::-1]:
                    if who.name in failed:
                        continue
                    prepare(who)
                    run = self._measure(who)
                    runs[who.name].append(run)
                    if run.code:
                        failed[who.name] = f"exit code {run.code}"
                        say(f"{case}: {who.name} failed with code {run.code}\n{_tail(run)}")
                        continue
                    wrong = "" if truth is None or isinstance(who, Bare) else self._wrong(who, truth)
                    if truth is not None and not isinstance(who, Bare):
                        equal[who.name] = not wrong and equal[who.name] is not False
                    say(
                        f"{case}: {who.name} {run.wall:.2f} s, {run.cpu:.2f} CPU-s, {run.peak / 1e9:.2f} GB, "
                        f"{run.foreign:.1f} foreign CPUs {wrong}"
                    )
        for who in everybody:
            if runs[who.name]:
                self.cells.append(_cell(case, who, changes, runs[who.name], equal[who.name], failed.get(who.name, "")))
        self._write()

    def _measure(self, who: Contestant) -> Measured:
        return self._run(who.command(), who.environment())

    def _run(self, command: list[str], environment: dict[str, str]) -> Measured:
        # compiled modules lie in a folder of the bench's own, so that no installation is changed or favoured
        cache = {"PYTHONPYCACHEPREFIX": str(self._folder / "pycache")}
        return measure(command, {**environment, **cache}, known=self._broker_processes())

    @contextlib.contextmanager
    def _turn(self, spark: bool) -> Iterator[None]:
        if not spark or self._given.lock is None:
            yield
            return
        with self._given.lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _broker_processes(self) -> list[int]:
        return [self._broker._server._process.pid]

    @staticmethod
    def _wrong(who: Contestant, truth: dict[str, Any]) -> str:
        from deltalake import DeltaTable, QueryBuilder

        for name, rows in truth.items():
            try:
                target = DeltaTable(str(who.table(name)))
                found = QueryBuilder().register("t", target).execute("SELECT * FROM t").read_all()
                import pyarrow as pa

                wrong = differences(rows, pa.table(found))
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            if wrong:
                return f"WRONG {name}: {wrong}"
        return ""

    def _wanted(self, case: str) -> bool:
        parts = [part.strip() for part in self._given.only.split(";") if part.strip()]
        return not parts or any(part in case for part in parts)

    def _chosen(self, who: Contestant) -> bool:
        parts = [part.strip() for part in self._given.who.split(";") if part.strip()]
        return not parts or any(part in who.name for part in parts)

    # ---- the end

    def _write(self) -> None:
        given = {name: value for name, value in vars(self._given).items() if isinstance(value, int | str | list)}
        machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}
        found = [target.document() for target in targets(Figures(self.cells))]
        document = {"options": given, "machine": machine, "cells": self.cells, "targets": found}
        self._given.json.parent.mkdir(parents=True, exist_ok=True)
        self._given.json.write_text(json.dumps(document, indent=1, ensure_ascii=False))

    def tell(self) -> int:
        if not self.cells:
            say("nothing was measured")
            return 1
        print(table(self.cells))
        print("\nTargets (ratios within this run; least of the rounds):")
        for target in targets(Figures(self.cells)):
            print(target.line())
        print(f"\nFigures: {self._given.json}")
        return int(any(cell["failed"] or cell["equal"] is False for cell in self.cells))


def _cell(case: str, who: Contestant, changes: int, runs: list[Measured], equal: bool | None, failed: str) -> Cell:
    good = [run for run in runs if not run.code] or runs
    least = min(good, key=lambda run: run.wall)
    cell: Cell = {
        "case": case,
        "who": who.name,
        "changes": changes,
        "wall": least.wall,
        "cpu": min(run.cpu for run in good),
        "peak": min(run.peak for run in good),
        "foreign": least.foreign,
        "equal": equal,
        "failed": failed,
        "note": "",
        "runs": [{**asdict(run), "lines": run.lines[-40:], "output": run.output[-2000:]} for run in runs],
    }
    if isinstance(who, Ours):
        cell.update(_phases(least))
        if "start" in cell:
            cell["note"] = f"until the engine works {cell['start']:.2f} s"
        if "land" in cell:
            cell["note"] += f", land {cell['land']:.2f}, apply and the end {cell['apply']:.2f}"
    if isinstance(who, (Decode, Plain)):
        told = [json.loads(run.output) for run in good if run.output.strip()]
        if told:
            cell["microseconds"] = min(item["microseconds"] for item in told)
            cell["note"] = f"{cell['microseconds']:.1f} µs CPU a record"
    return cell


def _phases(run: Measured) -> dict[str, float]:
    """Read off when the engine began, when land was done, and what came after, by the lines it wrote."""
    starts = [at for at, line in run.lines if line.startswith(("land:", "done before:"))]
    if not starts:
        return {}
    phases = {"start": starts[0], "after_start": round(run.wall - starts[0], 3)}
    if len(starts) > 1:
        phases |= {"land": round(starts[1] - starts[0], 3), "apply": round(run.wall - starts[1], 3)}
    return phases


def _tail(run: Measured) -> str:
    return "\n".join(["    " + line for _, line in run.lines[-15:]] + ["    " + run.output[-500:]])


if __name__ == "__main__":
    sys.exit(main())
