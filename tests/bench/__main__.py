# SPDX-License-Identifier: Apache-2.0
"""`make bench`: speed and memory of whole processes, next to the Spark job a skilled user would write by hand.

Everything runs on this machine against one broker started for it. Compare ratios of one run; each figure is the
least of its rounds, and the load of other processes stands next to it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.cases import Cases
from tests.bench.report import say
from tests.bench.rounds import Rounds
from tests.services.broker import Broker

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
    parser.add_argument("--stored", type=int, default=5_000_000, help="rows of the large table (default 5000000)")
    parser.add_argument("--policy", type=json.loads, default={}, help="further keys of the policy, as JSON")
    parser.add_argument("--quick", action="store_true", help="50000 changes, 1 and 20 tables, one round")
    parser.add_argument("--json", type=Path, default=RESULT, help=f"where the figures go (default {RESULT.name})")
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder, removed at the end)")
    parser.add_argument("--lock", type=Path, help="file to lock while Spark runs, where others use this machine too")
    options = parser.parse_args(arguments)
    if options.quick:
        options.changes, options.tables, options.rounds = min(options.changes, 50_000), [1, 20], 1
        options.format_changes = min(options.format_changes, 20_000)
        options.stored = min(options.stored, 500_000)
    options.folder and options.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="cdc-bench-", dir=options.folder))
    rounds = None
    try:
        say(f"broker, in {folder}")
        with Broker(folder / "broker") as broker:
            rounds = Rounds(options, folder, known=[broker._server._process.pid])
            Cases(options, broker, folder, rounds).run()
    except KeyboardInterrupt:
        say("interrupted; what was measured until here follows")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if rounds is None else rounds.report()


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    sys.exit(main())
