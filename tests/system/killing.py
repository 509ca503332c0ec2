# SPDX-License-Identifier: Apache-2.0
"""Sudden ends: which process dies at which moment of a batch, and what the batch had reached by then."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.sample import ALL
from tests.system import processes
from tests.system.site import TIMEOUT, Running, Site
from tests.system.verdict import versions

MOMENTS = ("planning", "starting", "landing", "between", "applying", "committing", "publishing")
# seconds that a kill waits at most after its moment began, so that it falls anywhere inside it
_JITTER = {
    "planning": 0.5,
    "starting": 0.3,
    "landing": 0.2,
    "between": 0.004,
    "applying": 0.05,
    "committing": 0.15,
    "publishing": 0.02,
}


@dataclass(frozen=True)
class Kill:
    """One kill.

    :param moment: when it is to happen.
    :param target: ``command``, ``engine`` (inline's process), ``jvm``, ``driver`` or ``worker`` (Spark's Python).
    :param delay: seconds after the moment began.
    """

    moment: str
    target: str
    delay: float


@dataclass(frozen=True)
class Hit:
    """Report what a kill met.

    :param reached: how far the batch was, by what it left on disk.
    :param exit: the command's exit code.
    """

    phase: int
    kill: Kill
    reached: str
    exit: int


def inline_kills(count: int, seed: int) -> list[Kill]:
    """Return kills in random order, all moments about equally often, of the command and of its engine in turn."""
    chance = random.Random(seed)
    kills = []
    for number in range(count):
        moment = MOMENTS[number % len(MOMENTS)]
        both = moment not in ("planning", "publishing")  # an engine runs
        target = "engine" if both and (number + seed) % 2 else "command"
        kills.append(Kill(moment, target, chance.uniform(0, _JITTER[moment])))
    chance.shuffle(kills)
    return kills


def spark_kills(seed: int) -> list[Kill]:
    """Return two kills, with CDC_SEEDS=2 seven: every process of a Spark application is among these."""
    chance = random.Random(seed)
    kills = [
        Kill("applying", "driver", chance.uniform(0, 0.1)),
        Kill("applying", "worker", chance.uniform(0, 0.1)),
    ]
    if ALL:
        kills += [
            Kill("starting", "jvm", chance.uniform(0, 4)),
            Kill("between", "command", chance.uniform(0, 0.004)),
            Kill("landing", "worker", chance.uniform(0, 0.2)),
            Kill("committing", "worker", chance.uniform(0, 0.1)),
            Kill("committing", "jvm", chance.uniform(0, 0.15)),
        ]
        chance.shuffle(kills)
    return kills


def staged_kills(seed: int) -> list[Kill]:
    """Return kills while tables are staged for the Spark writer, and while it merges them one after the other."""
    chance = random.Random(seed)
    return [
        Kill("staged", "jvm", 0.0),
        Kill("staged", "driver", chance.uniform(0, 1)),
        Kill("staged", "command", chance.uniform(0, 0.5)),
        Kill("committing", "jvm", 0.0),
    ]


class Executioner:
    """Run one batch of a site and kill it as the plan says."""

    def __init__(self, site: Site, phase: int) -> None:
        self._site, self._seq, self._phase = site, site.next_seq(), phase
        self._before = versions(site.lake)
        self._staged = self._staged_files()  # of those that were killed before

    def carry_out(self, kill: Kill) -> Hit | None:
        """Start the command and kill; None when the batch was done all the same."""
        running = self._site.launch()
        while not running.until(self._moment(kill.moment)):
            if running.answer().code != 5:
                return None
            self._site.await_lease(time.monotonic() + TIMEOUT)
            running = self._site.launch()  # the one killed before still holds the lease
        time.sleep(kill.delay)
        struck = self._strike(running, kill.target)
        if not struck or (kill.target == "command" and running.process.wait(60) != -9):
            assert running.answer().code in (0, 5)
            return None
        answer = running.answer()
        if answer.code == 0:  # what died had done its part
            return None
        # without waiting for what may still run: an orphan must do no harm
        return Hit(self._phase, kill, self._reached(running), answer.code)

    def _strike(self, running: Running, target: str) -> bool:
        if target == "command":
            return processes.kill(running.process.pid)
        deadline = time.monotonic() + 60
        while running.going and time.monotonic() < deadline:
            # of the workers all: Spark does without one that has no task
            if any([processes.kill(pid) for pid in _pids_of(running.watch(), target)]):
                return True
            time.sleep(0.001)
        return False

    def _moment(self, name: str) -> Callable[[Running], bool]:
        """Return what shows that a moment of the batch began."""
        site, seq = self._site, self._seq
        result = site.log(seq) / "result.json"
        return {
            "planning": lambda run: True,
            "starting": lambda run: bool(processes.descendants(run.process.pid)),
            "landing": lambda run: run.said("land: up to"),
            "between": lambda run: (site.log(seq) / "manifest.json").exists(),
            "applying": lambda run: run.said("apply: "),
            "staged": lambda run: bool(self._staged_files() - self._staged),
            "committing": lambda run: result.exists() or versions(site.lake) != self._before,
            "publishing": lambda run: result.exists(),
        }[name]

    def _staged_files(self) -> set[tuple[Path, int]]:
        """Return what is staged and when it was written: a repeat writes the same files again."""
        staged = set()
        for file in (self._site.log(self._seq) / "staged").rglob("*.parquet"):
            with contextlib.suppress(FileNotFoundError):  # committed meanwhile
                staged.add((file, file.stat().st_mtime_ns))
        return staged

    def _reached(self, running: Running) -> str:
        site, seq = self._site, self._seq
        if not running.said("up to"):  # it has not even printed what it is about to read
            return "planning"
        if (site.log(seq) / "result.json").exists():
            return "publishing"
        if versions(site.lake) != self._before:
            return "committing"
        if running.said("apply: "):
            return "applying"
        if (site.log(seq) / "manifest.json").exists():
            return "between"
        if running.said("land: up to"):
            return "landing"
        return "starting"


def _pids_of(present: dict[int, str], target: str) -> list[int]:
    """Return the processes that play a part."""
    daemons = [pid for pid, line in present.items() if "-m spark_jobs.workers.daemon" in line]
    match target:
        case "engine" | "driver":
            return [
                pid for pid, line in present.items() if "launch/run.py" in line and "java" not in line.split(" ")[0]
            ]
        case "jvm":
            return [pid for pid, line in present.items() if "SparkSubmit" in line and "java" in line.split()[0]]
        case "worker":
            return [pid for daemon in daemons for pid in processes.descendants(daemon)]
    raise ValueError(target)
