# SPDX-License-Identifier: Apache-2.0
"""Measures whole processes: a command with all that it starts, until the last of it is gone.

The command runs below a small process of its own that adopts whatever its descendants leave behind (Spark's Python
daemon outlives the JVM for a moment), so that the kernel adds the CPU time of every one of them to what it says of our
children. Of processes whose parent ignores that its children end (that daemon's workers) the kernel forgets it; theirs
is sampled.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

INTERVAL = 0.05  # seconds between two looks at the processes
_MEMORY_EVERY = 4  # looks between two at the memory, which costs more
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PR_SET_CHILD_SUBREAPER = 36
_LEFT_BEHIND = 10.0  # seconds that processes left behind may go on


@dataclass
class Measured:
    """One run of a command.

    wall: seconds until it returned.
    cpu: CPU seconds of it and all its descendants.
    cpu_seen: CPU seconds as the samples saw them, a little less than `cpu`.
    cpu_sampled: the part of `cpu` that is known from samples only.
    largest: greatest memory of one process, bytes, counted like `peak`.
    peak: greatest sum of memory over its processes at one moment, bytes; pages that processes share count once.
    read: bytes that its processes read, from files, sockets and pipes, as the samples saw them.
    written: the same of bytes written.
    resident: the same with shared pages counted in each process.
    lingered: seconds that descendants went on after it had returned.
    foreign: CPUs that other processes of this machine used meanwhile, those named in `known` apart.
    known: CPU seconds of the processes the caller named, such as a broker.
    lines: what it wrote to standard error, with the seconds since the start.
    """

    code: int
    wall: float
    cpu: float
    cpu_seen: float
    cpu_sampled: float
    peak: int
    resident: int
    lingered: float
    foreign: float
    known: float
    processes: int
    read: int = 0
    written: int = 0
    largest: int = 0
    output: str = ""
    lines: list[tuple[float, str]] = field(default_factory=list)


def measure(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    known: Sequence[int] = (),
    timeout: float = 3600,
    servers: Sequence[int] = (),
) -> Measured:
    """Run a command and measure it.

    environment: in addition to this process's.
    known: processes, with their descendants, whose CPU time is neither the command's nor foreign.
    servers: processes that work for the command and are not its descendants, such as a cluster's. What they and their
        descendants use meanwhile counts as the command's, as the samples see it.
    """
    request = json.dumps({"command": list(command), "known": list(known), "timeout": timeout, "servers": list(servers)})
    every = {**os.environ, **(environment or {})}
    # installed packages have their compiled modules; where this is off, every process would compile all it imports
    every.pop("PYTHONDONTWRITEBYTECODE", None)
    run = subprocess.run(
        [sys.executable, "-m", "tests.bench.measure"],
        input=request,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env=every,
        check=True,
    )
    result = json.loads(run.stdout)
    return Measured(**{**result, "lines": [(at, line) for at, line in result["lines"]]})


class _Tree:
    """Look at the descendants of this process, and at those of servers, until it is stopped."""

    def __init__(self, servers: Sequence[int]) -> None:
        self._servers = servers
        self.peak = self.resident = self.largest = 0
        self.seen: dict[int, float] = {}
        self.moved: dict[int, tuple[int, int]] = {}  # bytes read and written, with those of children waited for
        self._parents: dict[int, int] = {}
        self.forgotten: dict[int, float] = {}  # with their own children, where the parent ignores their end
        self.served: dict[int, float] = {}
        before = descendants(*servers)
        self._before = {pid: _own(stat) for pid, stat in before.items()}
        self._moved_before = {pid: _moved(pid) or (0, 0) for pid in before}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        looks = 0
        while not self._stop.is_set():
            tree, served = descendants(os.getpid()), descendants(*self._servers) if self._servers else {}
            self._time(tree)
            self.served |= {pid: _own(stat) - self._before.get(pid, 0) for pid, stat in served.items()}
            self._move({**tree, **served})
            if looks % _MEMORY_EVERY == 0:
                self._memory({**tree, **served})
            looks += 1
            self._stop.wait(INTERVAL)

    def _time(self, tree: dict[int, list[str]]) -> None:
        careless = {parent for parent in {int(stat[1]) for stat in tree.values()} if _ignores_children(parent)}
        for pid, stat in tree.items():
            own, children = _own(stat), (int(stat[13]) + int(stat[14])) / _TICK
            self.seen[pid] = own
            if int(stat[1]) in careless:
                self.forgotten[pid] = own + children
            else:
                self.forgotten.pop(pid, None)

    def _move(self, tree: dict[int, list[str]]) -> None:
        for pid in self._parents.keys() - tree.keys():
            parent = self._parents.pop(pid)
            if parent in tree and not _ignores_children(parent):
                self.moved.pop(pid, None)  # the kernel has added it to the parent's
        for pid, stat in tree.items():
            self._parents[pid] = int(stat[1])
            if now := _moved(pid):
                read, written = self._moved_before.get(pid, (0, 0))
                self.moved[pid] = now[0] - read, now[1] - written

    def _memory(self, tree: dict[int, list[str]]) -> None:
        shared = resident = 0
        for pid, stat in tree.items():
            resident += int(stat[21]) * _PAGE
            own = _proportional(pid) or int(stat[21]) * _PAGE
            shared, self.largest = shared + own, max(self.largest, own)
        self.peak, self.resident = max(self.peak, shared), max(self.resident, resident)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def _own(stat: list[str]) -> float:
    return (int(stat[11]) + int(stat[12])) / _TICK


def _moved(pid: int) -> tuple[int, int] | None:
    """Bytes that a process has read and written so far."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return None
    counts = {name: int(count) for name, _, count in (line.partition(":") for line in lines)}
    return counts["rchar"], counts["wchar"]


def _ignores_children(pid: int) -> bool:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigIgn:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGCHLD - 1) & 1)
    except OSError:
        pass
    return False


def descendants(*roots: int) -> dict[int, list[str]]:
    """Return the processes below some, with the fields of /proc/PID/stat from the state (the third) on."""
    stats: dict[int, list[str]] = {}
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _stat(int(name))):
            stats[int(name)] = stat
            children.setdefault(int(stat[1]), []).append(int(name))
    result, waiting = {}, [child for root in roots for child in children.get(root, ())]
    while waiting:
        pid = waiting.pop()
        result[pid] = stats[pid]
        waiting += children.get(pid, ())
    return result


def _stat(pid: int) -> list[str] | None:
    try:
        # the program's name in parentheses may hold spaces
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _proportional(pid: int) -> int | None:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def cpu_of(pids: Sequence[int]) -> float:
    """CPU seconds that processes and their living descendants have used so far."""
    total = 0
    for pid in pids:
        for stat in (_stat(pid), *descendants(pid).values()):
            total += sum(map(int, stat[11:15])) if stat else 0
    return total / _TICK


def busy() -> float:
    """CPU seconds this machine has worked since it started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq, *_ = map(int, fields)
    return (user + nice + system + irq + softirq) / _TICK


def _run(command: Sequence[str], known: Sequence[int], timeout: float, servers: Sequence[int]) -> Measured:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    busy_before, known_before, own_before = busy(), cpu_of(known), time.process_time()
    begin = time.monotonic()
    tree = _Tree(servers)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines: list[tuple[float, str]] = []
    output: list[bytes] = []

    def listen() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append((round(time.monotonic() - begin, 3), line.decode(errors="replace").rstrip()))

    def take() -> None:
        assert process.stdout is not None
        output.append(process.stdout.read())

    readers = [threading.Thread(target=target, daemon=True) for target in (listen, take)]
    for reader in readers:
        reader.start()
    overdue = threading.Timer(timeout, process.kill)
    overdue.daemon = True
    overdue.start()
    code = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
    process.returncode = code
    wall = time.monotonic() - begin
    overdue.cancel()
    left, reaped = _reap(begin + wall)
    for reader in readers:
        reader.join(5)
    tree.stop()
    spent = os.times()
    sampled = sum(cpu for pid, cpu in tree.forgotten.items() if pid not in reaped)
    cpu = spent.children_user + spent.children_system + sampled + sum(tree.served.values())
    elapsed = time.monotonic() - begin
    meanwhile = busy() - busy_before - cpu - (cpu_of(known) - known_before) - (time.process_time() - own_before)
    return Measured(
        code,
        round(wall, 3),
        round(cpu, 3),
        round(sum(tree.seen.values()) + sum(tree.served.values()), 3),
        round(sampled + sum(tree.served.values()), 3),
        tree.peak,
        tree.resident,
        round(left, 3),
        round(max(0.0, meanwhile) / elapsed, 2),
        round(cpu_of(known) - known_before, 2),
        len(tree.seen) + len(tree.served),
        sum(read for read, _ in tree.moved.values()),
        sum(written for _, written in tree.moved.values()),
        tree.largest,
        b"".join(output).decode(errors="replace"),
        lines,
    )


def _reap(ended: float) -> tuple[float, set[int]]:
    """Wait for what the command left behind; returns for how long it went on, and who it was."""
    reaped = set()
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return time.monotonic() - ended, reaped
        if pid:
            reaped.add(pid)
            continue
        if time.monotonic() - ended > _LEFT_BEHIND:
            for orphan in descendants(os.getpid()):
                os.kill(orphan, signal.SIGKILL)
        time.sleep(0.02)


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps(asdict(_run(asked["command"], asked["known"], asked["timeout"], asked["servers"]))))
