# SPDX-License-Identifier: Apache-2.0
"""Measure a small batch as a command and as a turn of `airflow-cdc serve`: `python -m tests.bench.minute`.

A batch has 1,000 changes over 20 tables. Prints lines of JSON: CPU and elapsed seconds of each batch, and the memory of
the process that serves, without and with the libraries it shares with its batches.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.growth import OldPipeline
from tests.bench.measure import measure
from tests.services.broker import OwnBroker
from tests.system.processes import descendants

BATCHES = 10
CHANGES = 50  # of each table
EVERY = 4.0  # seconds, more than a batch takes

PIPELINES: dict[str, dict[str, Any]] = {
    "inline": {},
    "spark": {"policy": {"engine": "spark"}, "spark": {"keep_seconds": 0}},
    "kept-spark": {"policy": {"engine": "spark"}},
}
HOW = ["sync inline", "serve inline", "serve spark", "serve kept-spark"]

_TICK = os.sysconf("SC_CLK_TCK")


def commands(pipeline: OldPipeline, batches: int) -> list[dict[str, float]]:
    """Return what batches cost as commands, one after the other."""
    costs = []
    for _ in range(batches):
        pipeline.feed()
        run = measure([sys.executable, "-m", "airflow_provider_cdc.cli", "sync", str(pipeline.file), "--json"])
        assert run.code == 0, run
        costs.append({"cpu": round(run.cpu, 2), "wall": round(run.wall, 2)})
    return costs


def turns(pipeline: OldPipeline, batches: int) -> list[dict[str, float]]:
    """Return what batches cost as turns of one process, its start left out."""
    command = [sys.executable, "-m", "airflow_provider_cdc.cli", "serve", str(pipeline.file), "--json", "--every"]
    costs = []
    with subprocess.Popen([*command, str(EVERY)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()  # the turn of the start
        while len(costs) < batches:
            before = _cpu(server.pid)
            pipeline.feed()
            done = json.loads(server.stdout.readline())
            time.sleep(0.5)  # until the batch's process is gone, and its time counted
            if done["records"]:
                costs.append({"cpu": round(_cpu(server.pid) - before, 2), "wall": round(done["seconds"], 2)})
        print(json.dumps({"server_mb": round(_memory(server.pid) / 1e6)}), flush=True)
        server.send_signal(signal.SIGTERM)
    return costs


def _cpu(pid: int) -> float:
    """Return CPU seconds of a process, its living descendants and those that they waited for."""
    total = 0
    for stat in _files(pid, "stat"):
        total += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return total / _TICK


def _memory(pid: int) -> int:
    """Return the memory of a process and its descendants, pages that they share counted once."""
    lines = [line for text in _files(pid, "smaps_rollup") for line in text.split("\n")]
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _files(pid: int, name: str) -> Iterator[str]:
    """Yield what a file in ``/proc`` says of a process and its descendants; some end meanwhile."""
    for one in (pid, *descendants(pid)):
        with contextlib.suppress(OSError):
            yield Path(f"/proc/{one}/{name}").read_text()


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.minute", description=__doc__)
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--how", action="append", choices=HOW, help="only these (default: all)")
    options = parser.parse_args()
    options.how = options.how or HOW
    with tempfile.TemporaryDirectory(prefix="cdc-minute-") as folder, OwnBroker() as broker:
        for name, sections in PIPELINES.items():
            pipeline = OldPipeline(Path(folder, name), broker, CHANGES, **sections)
            for verb, costs in (("sync", commands), ("serve", turns)):
                if f"{verb} {name}" in options.how:
                    each = costs(pipeline, options.batches)
                    least = {what: min(cost[what] for cost in each) for what in ("cpu", "wall")}
                    print(json.dumps({"how": f"{verb} {name}", "least": least, "batches": each}), flush=True)


if __name__ == "__main__":
    main()
