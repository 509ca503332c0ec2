# SPDX-License-Identifier: Apache-2.0
"""`make bench`: speed and memory of whole processes, next to the Spark job a skilled user would write by hand.

Everything runs on this machine against one broker started for it. Compare ratios of one run; each figure is the
least of its rounds, and the load of other processes stands next to it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.cases import Cases
from tests.bench.report import say
from tests.bench.results import FILE
from tests.bench.rounds import Rounds
from tests.services.broker import OwnBroker
from tests.services.spark_cluster import SparkCluster

FULL = {
    "tables": [1, 100, 1_000, 10_000],
    "sizes": [500_000, 2_500_000, 10_000_000],
    "stored": [5_000_000, 20_000_000],
    "snapshot": 20_000_000,
    "cluster": 2,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the options choose; 1 if something failed or gave other tables, whatever the speed."""
    options = options_of(arguments)
    options.folder and options.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="cdc-bench-", dir=options.folder))
    rounds = None
    try:
        say(f"broker, in {folder}")
        with OwnBroker(folder / "broker") as broker:
            rounds = Rounds(options, folder, known=broker.pids())
            with _cluster(options.cluster) as cluster:
                Cases(options, broker, folder, rounds, cluster).run()
    except KeyboardInterrupt:
        say("interrupted; what was measured until here follows")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if rounds is None else rounds.report()


def _cluster(workers: int) -> contextlib.AbstractContextManager[SparkCluster | None]:
    return SparkCluster(workers) if workers else contextlib.nullcontext()


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    add = parser.add_argument
    add("--changes", type=int, default=500_000, help="changes of one batch (default 500000)")
    add("--tables", type=_numbers, default=[1, 100, 1000], help="numbers (default 1,100,1000)")
    add("--rounds", type=int, default=2, help="runs of each figure (default 2)")
    add("--hand-tables", type=int, default=100, help="most tables the hand-written job is run with")
    add("--sizes", type=_numbers, default=[500_000, 2_500_000], help="changes of one table (default 500000,2500000)")
    add("--format-changes", type=int, default=500_000, help="changes of each format (default 500000)")
    add("--stored", type=_numbers, default=[5_000_000], help="rows of the large table (default 5000000)")
    add("--snapshot", type=int, default=0, help="rows of the snapshot that makes a table (default 0: not run)")
    add("--cluster", type=int, default=0, help="workers of a standalone cluster next to local (default 0: not run)")
    add("--only", default="", help="only cases that have this text in their name; several apart by ;")
    add("--who", default="", help="only contestants that have this text in their name; several apart by ;")
    add("--policy", type=json.loads, default={}, help="further keys of the policy, as JSON")
    add("--quick", action="store_true", help="50000 changes, 1 and 20 tables, one round, all else small")
    add("--full", action="store_true", help="also 10000 tables, 10 million changes, 20 million rows, a cluster: hours")
    add("--json", type=Path, help="file that takes the figures (default build/bench/bench.json, or quick.json)")
    add("--folder", type=Path, help="where to work (default: a temporary folder, removed at the end)")
    add("--lock", type=Path, help="file to lock while Spark runs, where others use this machine too")
    full, _ = parser.parse_known_args(arguments)
    if full.full:
        parser.set_defaults(**FULL)
    options = parser.parse_args(arguments)
    options.json = options.json or (FILE.with_name("quick.json") if options.quick else FILE)
    if options.quick:
        options.changes, options.tables, options.rounds = min(options.changes, 50_000), [1, 20], 1
        options.sizes = [50_000, 100_000]
        options.format_changes = min(options.format_changes, 20_000)
        options.stored = [500_000]
        options.snapshot = min(options.snapshot, 200_000)
    return options


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
