# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.demo``: the shop's day from a real broker to tables of a lakehouse, compared hour by hour."""

from __future__ import annotations

import argparse
import signal
import sys
from types import FrameType

from airflow_provider_cdc.demo.screen import DemoScreen
from tests.demo.process import AirflowProblem
from tests.demo.story import Demo

_INTRODUCTION = """\
A web shop's database, captured by Debezium: its snapshot and six hours of orders, payments and migrations.
Each hour goes into a real Kafka broker; then Airflow runs the DAG example_dags/shop_hourly.py for that hour ({engine}),
and every {sink} is compared with what the database itself held at that moment.
"""
_SINKS = {"delta": "Delta table", "iceberg": "Iceberg table"}
_ENGINES = {"spark": "one Spark application per run", "inline": "inline, without Spark"}


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return the exit code: 0 only if every table was equal every time."""
    parser = argparse.ArgumentParser(prog="python -m tests.demo", description=__doc__.split(":", 1)[1].strip())
    parser.add_argument("--engine", choices=tuple(_ENGINES), default="spark", help="where batches run (default: spark)")
    parser.add_argument("--sink", choices=tuple(_SINKS), default="delta", help="kind of the tables (default: delta)")
    parser.add_argument("--keep", action="store_true", help="keep the lake and say where it is")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    screen = DemoScreen()
    screen.line(_INTRODUCTION.format(engine=_ENGINES[options.engine], sink=_SINKS[options.sink]))
    demo = Demo(screen, options.engine, options.keep, options.sink)
    try:
        equal = demo.run()
    except KeyboardInterrupt:
        screen.close()
        print("\ninterrupted; broker and Airflow are stopped, nothing is left", file=sys.stderr)
        return 130
    except AirflowProblem as problem:
        screen.close()
        print(f"\n{problem}", file=sys.stderr)
        return 1
    screen.close()
    count = len(demo.verdicts)
    complete = sum(verdict.complete for verdict in demo.verdicts)
    print(f"\nAfter {complete} of {count} runs every table was equal to the database. {screen.elapsed:.0f} s in all.")
    return 0 if equal else 1


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
