"""Sudden ends: which process dies at which moment of a batch, and what the batch had reached by then."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.system import processes
from tests.system.site import Running, Site
from tests.system.verdict import versions

MOMENTS = ("planning", "starting", "landing", "between", "applying", "committing", "publishing")
# seconds that a kill waits at most after its moment began, so that it falls anywhere inside it
_JITTER = {
    "inline": (0.5, 0.4, 0.3, 0.004, 0.1, 0.8, 0.02),
    "spark": (0.5, 5.0, 0.6, 0.004, 0.3, 0.8, 0.02),
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
    """What a kill met.

    :param reached: how far the batch was, told by what it left on disk.
    :param exit: the command's exit code.
    :param orphans: processes of the killed run that would not go.
    """

    phase: int
    kill: Kill
    reached: str
    exit: int
    orphans: list[str]


def kills(engine: str, count: int, seed: int) -> list[Kill]:
    """Return kills in random order, all moments about equally often and every process that lives then."""
    chance = random.Random(seed)
    moments = [MOMENTS[place % len(MOMENTS)] for place in range(count)]
    chance.shuffle(moments)
    found = []
    for moment in moments:
        longest = _JITTER[engine][MOMENTS.index(moment)]
        found.append(Kill(moment, chance.choice(_targets(engine, moment)), chance.uniform(0, longest)))
    return found


def _targets(engine: str, moment: str) -> Sequence[str]:
    if moment in ("planning", "publishing"):
        return ("command",)
    if engine == "inline":
        return ("command", "engine")
    if moment == "starting":
        return ("command", "jvm")
    # workers live only while there are tasks
    return (
        "command",
        "jvm",
        "driver",
        *(("worker", "worker") if moment in ("landing", "applying", "committing") else ()),
    )


class Executioner:
    """Runs one batch of a site and ends it as told."""

    def __init__(self, site: Site, phase: int) -> None:
        self._site, self._seq, self._phase = site, site.next_seq(), phase
        self._before = versions(site.lake)

    def carry_out(self, kill: Kill) -> Hit | None:
        """Start the command and kill; None when it was done before the moment came."""
        running = self._site.launch()
        if not running.until(self._moment(kill.moment)):
            running.answer()
            return None
        time.sleep(kill.delay)
        struck = self._strike(running, kill.target)
        if not struck or (kill.target == "command" and running.process.wait(60) != -9):
            assert running.answer().code in (0, 5)
            return None
        answer = running.answer()
        # told right away: what an orphan still does afterwards must do no harm
        return Hit(self._phase, kill, self._reached(running), answer.code, [])

    def _strike(self, running: Running, target: str) -> bool:
        if target == "command":
            return processes.kill(running.process.pid)
        deadline = time.monotonic() + 20
        while running.going and time.monotonic() < deadline:
            for pid in _found(running.watch(), target):
                if processes.kill(pid):
                    return True
            time.sleep(0.001)
        return False

    def _moment(self, name: str) -> Callable[[Running], bool]:
        """Return what tells that a moment of the batch began."""
        site, seq = self._site, self._seq
        result = site.log(seq) / "result.json"
        return {
            "planning": lambda run: True,
            "starting": lambda run: bool(processes.descendants(run.process.pid)),
            "landing": lambda run: run.said("land: up to"),
            "between": lambda run: (site.log(seq) / "manifest.json").exists(),
            "applying": lambda run: run.said("apply: "),
            "committing": lambda run: result.exists() or versions(site.lake) != self._before,
            "publishing": lambda run: result.exists(),
        }[name]

    def _reached(self, running: Running) -> str:
        site, seq = self._site, self._seq
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
        return "starting" if (site.job(seq) / "job.json").exists() else "planning"


def _found(present: dict[int, str], target: str) -> list[int]:
    """Return the processes that play a part."""
    daemons = [pid for pid, line in present.items() if "pyspark.daemon" in line]
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
