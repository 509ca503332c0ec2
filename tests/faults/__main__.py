# SPDX-License-Identifier: Apache-2.0
"""Runs rounds of faults and prints what came of them: ``python -m tests.faults --rounds 100``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.faults.kinds import KINDS
from tests.faults.lakes import LAKES
from tests.faults.rounds import Round
from tests.faults.services import Services
from tests.faults.targets import TABLES


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 where a row was lost or doubled, or a command ended without saying what to do."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=len(KINDS), help="how many, over all kinds of faults")
    parser.add_argument("--first", type=int, default=0, help="number of the first round, which decides all of it")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only this fault; may be repeated")
    parser.add_argument("--sink", choices=sorted(TABLES), default="", help="only this kind of tables")
    parser.add_argument("--store", choices=sorted(LAKES), default="s3", help="which store fails")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args(arguments)
    names = options.kind or list(KINDS)
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in names}
    endings: Counter[str] = Counter()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cdc-faults-") as folder, Services(Path(folder)) as services:
        for number in range(options.first, options.first + options.rounds):
            kind = names[number % len(names)]
            one = Round(number, kind, services, Path(folder) / str(number), sink=options.sink, store=options.store)
            one.run(KINDS[kind])
            verdicts[kind]["wrong" if one.problems else "equal"] += 1
            endings += one.endings
            print(
                f"round {number} ({kind}, {one.replay.case.format}, {one.target.kind}): {one.problems or 'equal'}",
                file=sys.stderr,
            )
    wrong = sum(counts["wrong"] for counts in verdicts.values())
    if options.json:
        print(json.dumps({"verdicts": verdicts, "endings": endings, "seconds": time.monotonic() - started}))
    else:
        print(f"{'fault':24}{'rounds':>8}{'equal':>8}{'wrong':>8}")
        for name, counts in verdicts.items():
            print(f"{name:24}{counts.total():8}{counts['equal']:8}{counts['wrong']:8}")
        print("endings: " + ", ".join(f"{name} x{count}" for name, count in endings.most_common()))
        print(f"{options.rounds} rounds, {wrong} wrong, {time.monotonic() - started:.0f} s on {os.cpu_count()} cores")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
