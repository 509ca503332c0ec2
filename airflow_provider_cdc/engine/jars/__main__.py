# SPDX-License-Identifier: Apache-2.0
"""Fetch the locked jars and print their paths: `python -m airflow_provider_cdc.engine.jars [--json] LOCK ...`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from airflow_provider_cdc.engine.jars import JarError, fetch, jar_cache
from airflow_provider_cdc.engine.java import JavaNotFound, find_java


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch the jars of the locks; print paths to standard output, progress to standard error."""
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_cdc.engine.jars",
        description="Fetch the jars Spark needs and print their paths, joined by commas as spark.jars wants them.",
    )
    parser.add_argument("lock", nargs="+", type=Path, help="lock files")
    parser.add_argument("--json", action="store_true", help="print a JSON list instead")
    options = parser.parse_args(arguments)
    try:
        java = find_java().executable
        jars = [
            str(jar)
            for lock in options.lock
            for jar in fetch(lock, jar_cache(), java, lambda text: print(text, file=sys.stderr, flush=True))
        ]
    except (JarError, JavaNotFound, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; run this again to fetch the missing jars", file=sys.stderr)
        return 130
    print(json.dumps(jars, indent=2) if options.json else ",".join(jars))
    return 0


if __name__ == "__main__":
    sys.exit(main())
