# SPDX-License-Identifier: Apache-2.0
"""Measure what one merge costs in each kind of table and each way of writing: CPU, bytes and files.

``python -m tests.bench.merges --rows 20000000``. Every case is checked: the table has as many rows as it should have.
``--small``, ``--columns`` and ``--spark`` measure more. Compare figures of one run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from airflow_provider_cdc.engine.jars import fetch, jar_cache, lock_of
from airflow_provider_cdc.engine.java import find_java
from tests.bench.merge_cases import by_spark, changed_columns, near_and_spread, small_tables
from tests.bench.merged_table import Figure
from tests.bench.report import say
from tests.services.delta_session import delta_session

KINDS = ["delta", "delta merge-on-read", "iceberg", "iceberg copy-on-write"]
Case = Callable[[np.random.Generator, Path], list[Figure]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.merges", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table (default 1,000,000)")
    parser.add_argument("--changes", type=int, default=10_000, help="changed keys of a merge (default 10,000)")
    parser.add_argument("--small", type=int, default=0, help="tables of 1,000 rows and 100 changes each")
    parser.add_argument("--columns", type=int, default=0, help="rows of a table whose columns change")
    parser.add_argument("--spark", action="store_true", help="also Spark's own MERGE of the spread keys")
    parser.add_argument("--kind", action="append", choices=KINDS, help="may be repeated; default: all")
    parser.add_argument("--rounds", type=int, default=3, help="the least of each figure counts (default 3)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args(arguments)
    least = dict[tuple[str, str], Figure]()
    cases = list(_cases(options))
    for number in range(options.rounds):
        for case in cases:
            folder = Path(tempfile.mkdtemp(prefix="cdc-merges-"))
            try:
                for figure in case(np.random.default_rng(number), folder):
                    where = (figure.kind, figure.case)
                    least[where] = min(least.get(where, figure), figure, key=lambda one: one.cpu_seconds)
            finally:
                shutil.rmtree(folder)
    say(f"{options.rows} rows, least of {options.rounds} rounds")
    for figure in least.values():
        say(
            f"{figure.kind:24}{figure.case:32}{figure.cpu_seconds:8.2f} CPU-s {figure.seconds:8.2f} s"
            f"{figure.written / 1e6:9.1f} MB in {figure.files} files"
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(figure) for figure in least.values()], indent=1))
    return 0


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    for kind in options.kind or KINDS:
        yield lambda chance, folder, kind=kind: near_and_spread(kind, options.rows, options.changes, chance, folder)
        if options.small:
            yield lambda _, folder, kind=kind: [small_tables(kind, options.small, 100, folder)]
        if options.columns:
            yield lambda _, folder, kind=kind: changed_columns(kind, options.columns, folder)
    if options.spark:
        session, jvm = _session()
        yield lambda chance, folder: [by_spark(session, jvm, options.rows, options.changes, chance, folder)]


def _session() -> tuple[Any, int]:
    """Start Spark with Delta; return the session and its JVM's process."""
    jars = fetch(lock_of("spark", "4.1"), jar_cache(), find_java().executable, say)
    session = delta_session("merges", jars, {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "4"})
    gateway = session.sparkContext._gateway
    assert gateway is not None
    return session, gateway.proc.pid


if __name__ == "__main__":
    sys.exit(main())
