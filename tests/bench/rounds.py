# SPDX-License-Identifier: Apache-2.0
"""Each contestant of a case is measured in every round; the least of its figures are kept, and its tables compared."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench import results
from tests.bench.contestants import Bare, Contestant, Decode, Inline, Ours, Plain
from tests.bench.data import differences
from tests.bench.large_target import fill
from tests.bench.measure import Measured, measure
from tests.bench.report import Cell, Figures, marginals, said, say, table, targets


class Rounds:
    """Collect the figures of contestants, case by case.

    known: processes whose CPU time is neither a contestant's nor foreign: the broker.
    """

    def __init__(self, options: argparse.Namespace, folder: Path, known: Sequence[int]) -> None:
        self._options, self._folder, self._known = options, folder, known
        self.cells: list[Cell] = []
        self._stamp = results.stamp()
        self._warm = False

    def selects(self, case: str) -> bool:
        """Return whether the options select a case."""
        parts = [part.strip() for part in self._options.only.split(";") if part.strip()]
        return not parts or any(part in case for part in parts)

    def _takes(self, who: Contestant) -> bool:
        parts = [part.strip() for part in self._options.who.split(";") if part.strip()]
        return not parts or any(part in who.name for part in parts)

    def warm_up(self, spark: Ours) -> None:
        """Once, unmeasured: what an installation pays only the first time: payload, compiled modules, disk cache."""
        if self._warm:
            return
        self._warm = True
        say("warm-up, not measured")
        imports = "import confluent_kafka, msgspec, pyspark.daemon, pyspark.sql.functions, pyspark.worker"
        self._run([sys.executable, "-c", imports], {})
        for who in (spark, spark, Inline(spark.arena)):  # the second start of Spark keeps its classes
            if not self._takes(who):
                continue
            who.fresh()
            with self._turn(who.spark):
                run = self._measure(who)
            if run.code:
                say(f"warm-up failed with code {run.code}:\n" + _tail(run))

    def fill(self, who: Contestant, stored: int = 0) -> bool:
        """Let a contestant hold the first batch; False when it cannot.

        stored: rows that its only table gets in addition.
        """
        if not self._takes(who):
            return False
        if not any(self.cells_of(who)) or not who.root.exists():
            who.fresh()
            if not self._succeeds(who):
                return False
        if stored:
            fill(who.table(who.arena.tables[0]), stored)
        who.save()
        return True

    def go_on(self, who: Contestant) -> bool:
        """Let a contestant take another batch, unmeasured; False when it cannot."""
        done = self._succeeds(who)
        who.save()
        return done

    def _succeeds(self, who: Contestant) -> bool:
        with self._turn(who.spark):
            run = self._measure(who)
        if run.code:
            say(f"{who.name} failed with code {run.code}\n{_tail(run)}")
        return not run.code

    def cells_of(self, who: Contestant) -> Iterator[Cell]:
        """Return what a contestant gave in the case that went last."""
        last = self.cells[-1]["case"].split(",")[0] if self.cells else ""
        return (cell for cell in self.cells if cell["who"] == who.name and cell["case"].split(",")[0] == last)

    def compete(
        self,
        case: str,
        everybody: Sequence[Contestant],
        changes: int,
        expected: Callable[[], Any] | None,
        prepare: Callable[[Any], None] = lambda who: who.fresh(),
        check: Callable[[Contestant], str] | None = None,
    ) -> None:
        """Measure contestants in all rounds of a case.

        expected: the tables that they must leave, None where they make none.
        prepare: brings a contestant into the state that the case begins with.
        check: compares a contestant's tables in another way than by all their rows; says what is wrong.
        """
        everybody = [who for who in everybody if self._takes(who) and self.selects(case)]
        truth = expected() if expected and everybody else None
        runs: dict[str, list[Measured]] = {who.name: [] for who in everybody}
        equal: dict[str, bool | None] = {who.name: None for who in everybody}
        failed: dict[str, str] = {}
        with self._turn(any(who.spark for who in everybody)):
            for number in range(self._options.rounds):
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
                    judged = (truth is not None or check is not None) and not isinstance(who, Bare)
                    wrong = "" if not judged else check(who) if check else self._wrong(who, truth or {})
                    if judged:
                        equal[who.name] = not wrong and equal[who.name] is not False
                    say(
                        f"{case}: {who.name} {run.wall:.2f} s, {run.cpu:.2f} CPU-s, {run.peak / 1e9:.2f} GB, "
                        f"{run.read / 1e6:.0f} MB read, {run.written / 1e6:.0f} MB written, "
                        f"{run.foreign:.1f} foreign CPUs {wrong}"
                    )
        for who in everybody:
            if runs[who.name]:
                cell = _cell(case, who, changes, runs[who.name], equal[who.name], failed.get(who.name, ""))
                self.cells.append({**cell, **self._stamp})
        self._write()

    def _measure(self, who: Contestant) -> Measured:
        return self._run(who.command(), who.environment(), who.servers())

    def _run(self, command: list[str], environment: dict[str, str], servers: Sequence[int] = ()) -> Measured:
        # compiled modules lie in a folder of the bench's own, so that no installation is changed or favoured
        cache = {"PYTHONPYCACHEPREFIX": str(self._folder / "pycache")}
        return measure(command, {**environment, **cache}, known=self._known, servers=servers)

    @contextlib.contextmanager
    def _turn(self, spark: bool) -> Iterator[None]:
        if not spark or self._options.lock is None:
            yield
            return
        with self._options.lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @staticmethod
    def _wrong(who: Contestant, truth: dict[str, Any]) -> str:
        for name, rows in truth.items():
            try:
                wrong = differences(rows, who.rows(name))
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            if wrong:
                return f"WRONG {name}: {wrong}"
        return ""

    def _write(self) -> None:
        """Put the figures into the file, each with its commit; what was measured before and not now stays."""
        options = {name: value for name, value in vars(self._options).items() if isinstance(value, int | str | list)}
        results.add(self._options.json, options=options, cells=self.cells)

    def report(self) -> int:
        """Print what was measured; 1 if that is nothing, or something failed or gave other tables."""
        if not self.cells:
            say("nothing was measured")
            return 1
        print(table(self.cells))
        for line in map(said, marginals(self.cells)):
            print(line)
        print("\nTargets (ratios within this run; least of the rounds):")
        for target in targets(Figures(self.cells)):
            print(target.line())
        print(f"\nFigures: {self._options.json}")
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
        "largest": min(run.largest for run in good),
        "read": min(run.read for run in good),
        "written": min(run.written for run in good),
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
        reported = [json.loads(run.output) for run in good if run.output.strip()]
        if reported:
            cell["microseconds"] = min(item["microseconds"] for item in reported)
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
