"""``sync`` and ``plan``: one batch carried out, and what it would read."""

from __future__ import annotations

import signal
import sys
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from airflow_provider_cdc.commands.printing import (
    AGAIN,
    DATA,
    DONE,
    complain,
    failure_code,
    guarded,
    print_json,
    print_table,
)
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.printable import printable


def sync(given: Namespace) -> int:
    """Plan one batch, carry it out and publish it."""

    def work() -> int:
        pipeline = CdcPipeline.from_yaml(given.pipeline)
        return run_and_print(given, pipeline, until=given.until, accept_loss=given.accept_loss)

    return guarded(work, as_json=given.json)


def run_and_print(given: Namespace, pipeline: CdcPipeline, **request: Any) -> int:
    """Carry out one batch and print what came of it; return the exit code.

    :param request: as ``run_batch`` takes it.
    """
    from airflow_provider_cdc.batch import run_batch
    from airflow_provider_cdc.engine import Stopper

    stopper = Stopper()
    signal.signal(signal.SIGTERM, lambda *_: stopper("SIGTERM"))
    told = run_batch(pipeline, say=_say, kill=stopper, **request)
    if told["status"] == "failed":  # commands in hints can be copied
        told["error"]["hint"] = told["error"]["hint"].replace("PIPELINE.yaml", given.pipeline)
    if given.json:
        print_json(told)
    else:
        _print_outcome(told)
    return _code(told)


def plan(given: Namespace) -> int:
    """Show what the next batch would read; records nothing."""

    def work() -> int:
        from airflow_provider_cdc.preview import preview

        seen = preview(CdcPipeline.from_yaml(given.pipeline), given.until)
        if given.json:
            print_json(seen)
        else:
            _print_plan(seen)
        return DONE

    return guarded(work, as_json=given.json)


def instant(text: str) -> datetime | None:
    """Return the time of an ISO text; without a zone it is UTC, an empty text means now.

    :raises ValueError: it is no ISO time.
    """
    if not text.strip():
        return None
    moment = datetime.fromisoformat(text.strip())
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)


def _code(told: dict[str, Any]) -> int:
    if told["status"] == "failed":
        return failure_code(told.get("error") or {}, bool(told.get("transient")))
    return {"parked": DATA, "waiting": AGAIN}.get(told["status"], DONE)


def _print_outcome(told: dict[str, Any]) -> None:
    if told["status"] == "nothing_to_do" or (told["status"] in ("parked", "waiting") and "phases" not in told):
        print(f"{told['pipeline']}: nothing new ({told['seconds']:.1f} s)")
        _print_unsettled(told)
        return
    if told["status"] == "failed":
        complain(CdcError.text(told.get("error") or {}))
        print(f"{told['pipeline']}: batch {told['seq']} failed, nothing was committed ({told['seconds']:.1f} s)")
        return
    changes = ", ".join(f"{count} {name}" for name, count in told["changes"].items()) or "no row changes"
    again = ", done before" if told.get("repeated") else ""
    print(f"{told['pipeline']}: batch {told['seq']} {told['status']}{again} ({told['seconds']:.1f} s)")
    print(f"{told['records']} records: {changes}; {told['schema_changes']} schema changes, ", end="")
    print(f"{told['quarantined']} quarantined")
    if told["tables"]:
        print()
        rows = [_row(line) for line in sorted(told["tables"], key=lambda t: (t["database"], t["table"]))]
        print_table(("table", "state", "action", "upserts", "deletes", "version", "reason"), rows)
    _print_unsettled(told)


def _print_unsettled(told: dict[str, Any]) -> None:
    """Name the tables that are parked or wait and that the batch did not touch."""
    touched = {(line["database"], line["table"]) for line in told["tables"]}
    lines = [
        (f"{line['database']}.{line['table']}", state, line["reason"])
        for state in ("parked", "waiting")
        for line in told.get(state, ())
        if (line["database"], line["table"]) not in touched
    ]
    if lines:
        print()
        print_table(("table", "state", "reason"), sorted(lines))


def _row(line: dict[str, Any]) -> list[object]:
    name = f"{line['database']}.{line['table']}"
    return [name, *(line.get(key) for key in ("state", "action", "upserts", "deletes", "version", "reason"))]


def _print_plan(seen: dict[str, Any]) -> None:
    print(f"{seen['pipeline']}: batch {seen['seq']} {seen['status']}, up to {seen['records']} records")
    rows = [
        (topic, int(partition), seen["start"].get(topic, {}).get(partition, end), end)
        for topic, partitions in seen["end"].items()
        for partition, end in partitions.items()
    ]
    busy = [(*row, row[3] - row[2]) for row in rows if row[3] > row[2]]
    if busy:
        print()
        print_table(("topic", "partition", "start", "end", "records"), busy)
    for hold in seen.get("holds", ()):
        print(printable(f"held back by {hold['topic']}/{hold['partition']}: {hold['why']}"))
