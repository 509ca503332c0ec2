# SPDX-License-Identifier: Apache-2.0
"""Run ``demo``: a web shop's recorded day into tables, each compared with the database, without broker and JVM."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import sys
import tempfile
from argparse import Namespace
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_cdc.commands.output import DONE, print_json
from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from airflow_provider_cdc.core.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow_provider_cdc.demo.screen import DemoScreen
    from airflow_provider_cdc.demo.story import Hour, ShopStory

DIFFERS = 1
"""Exit code: a table is not what the database held."""

_INTRODUCTION = """\
A web shop's database, as Debezium captured it: its snapshot and six hours of orders, payments and migrations.
Each hour is appended to the files of its topics; then a batch applies it, {where},
and every {sink} table is compared with what SQL showed in the database at that moment.
"""
_WHERE = {
    False: "in this process's own children and without Kafka or Spark",
    True: "on a Spark of this machine and without Kafka",
}


def demo(args: Namespace) -> int:
    """Run the demo; exit 0 only if every table was equal every time, 1 if one was not."""
    sink = args.sink
    if sink not in SINKS:
        raise ConfigurationError([f"--sink: {sink!r} is not known; known: {', '.join(SINKS)}"])
    library = SINKS[sink].library
    if importlib.util.find_spec(library) is None:
        raise ConfigurationError([f"--sink {sink}: {library} is missing: pip install 'airflow-provider-cdc[{sink}]'"])
    folder = _folder(args.folder)

    from airflow_provider_cdc.demo.screen import DemoScreen
    from airflow_provider_cdc.demo.shop_log import ShopLog
    from airflow_provider_cdc.demo.story import ShopStory
    from airflow_provider_cdc.engine.stopper import Stopper

    stopper = Stopper()
    signal.signal(signal.SIGTERM, lambda *_: stopper("SIGTERM"))
    screen = DemoScreen(sys.stderr if args.json else sys.stdout)
    screen.line(_INTRODUCTION.format(sink=sink.capitalize(), where=_WHERE[args.spark]))
    try:
        screen.step("reading the recorded log")
        story = ShopStory(folder, sink, "spark" if args.spark else "inline", screen)
        if args.airflow:
            return _in_airflow(story, screen, keep=args.folder is not None)
        hours = story.hours(stopper, ShopLog())
    finally:
        screen.close()
    _end(screen, story, hours)
    equal = all(hour.verdict.complete for hour in hours)
    if args.json:
        print_json(
            {
                "equal": equal,
                "seconds": round(screen.elapsed, 1),
                "folder": str(folder),
                "pipeline": str(story.file),
                "hours": [hour.document() for hour in hours],
            }
        )
    return DONE if equal else DIFFERS


def _in_airflow(story: ShopStory, screen: DemoScreen, *, keep: bool) -> int:
    """Let an Airflow of its own run the hours, until a person ends it; nothing of it is left then.

    :param keep: whether log, tables and ledger stay.
    """
    from airflow_provider_cdc.demo.shop_log import ShopLog
    from airflow_provider_cdc.demo.standalone import USER, Standalone
    from airflow_provider_cdc.plugins.page_address import page_address

    for number in (signal.SIGINT, signal.SIGTERM):  # a shell lets programs in the background ignore the former
        signal.signal(number, signal.default_int_handler)
    log = ShopLog.until(datetime.now(UTC).replace(minute=0, second=0, microsecond=0))
    last = log.phases[-1]
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        for made in Standalone.made(story.folder) if keep else (story.folder,):
            stack.callback(shutil.rmtree, made, ignore_errors=True)
        for phase in log.phases:
            story.feed(phase, log)
        airflow = Standalone(story.folder, story.file, story.pipeline.ledger, log.phases[0].start)
        stack.callback(airflow.stop)
        screen.step("Airflow starts")
        airflow.wait_until_ready()
        screen.line(f"Airflow is at {airflow.url}: user {USER}, password {airflow.password}")
        screen.line(f"The page of the pipeline: {airflow.url}{page_address(story.pipeline.name)}")
        screen.line("Its DAG catches up the hours. Ctrl-C ends it and removes it.\n")
        for batch in story.followed(last):
            screen.line(f"batch {batch.seq}, up to {batch.until}: {batch.records} records")
        verdict = story.verdict(last)
        screen.line(f"{verdict.equal} of {len(verdict.problems)} tables equal the database, {verdict.rows} rows.")
        signal.pause()
    return DONE


def _folder(stated: str | None) -> Path:
    """Return an empty folder for everything that the demo writes.

    :raises ConfigurationError: the stated one holds something, or cannot be made.
    """
    if stated is None:
        return Path(tempfile.mkdtemp(prefix="cdc-demo-"))
    folder = Path(stated).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigurationError([f"--folder: {folder} is not empty; name a folder that is new or empty"])
    except OSError as error:
        raise ConfigurationError([f"--folder: {folder} cannot be made: {error.strerror}"]) from None
    return folder


def _end(screen: DemoScreen, story: ShopStory, hours: list[Hour]) -> None:
    """Say what came of it, where the tables lie, and what to look at next."""
    complete = sum(hour.verdict.complete for hour in hours)
    say = screen.line
    say(f"\nAfter {complete} of {len(hours)} batches every table was equal to the database.")
    say(f"{screen.elapsed:.0f} s in all.")
    say(f"\nThe tables are in {story.lake}. To read one, in Python:\n")
    for line in story.example():
        say(f"    {line}")
    say("\nThe pipeline is a file that each verb takes:\n")
    for verb in ("tables", "ledger", "verify", "doctor"):
        say(f"    airflow-cdc {verb} {story.file}")
    say(f"\nAll of it is below {story.folder}: remove that folder when you have seen enough.")
