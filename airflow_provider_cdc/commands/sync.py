# SPDX-License-Identifier: Apache-2.0
"""Run ``sync``, ``replay``, ``rebuild`` and ``plan``: run one batch, of old rows again, or show what it would read."""

from __future__ import annotations

import shlex
import signal
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.arguments import as_micros
from airflow_provider_cdc.commands.output import (
    AGAIN,
    DATA,
    DONE,
    complain,
    exit_code,
    name_file,
    print_json,
    print_table,
)
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.core.timeline.asked_changes import AskedChange
from airflow_provider_cdc.observability.remedies import copyable
from airflow_provider_cdc.reporting.reporter import at_a_command_line

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.result import BatchResult, TableResult


def sync(args: Namespace) -> int:
    """Plan, run and publish one batch."""
    pipeline = CdcPipeline.from_yaml(args.pipeline)
    return run_and_print(args, pipeline, until=args.until, accept_loss=args.accept_loss)


def replay(args: Namespace) -> int:
    """Apply rows of the change log again."""
    from airflow_provider_cdc.batch.orders import run_replay
    from airflow_provider_cdc.core.documents import Replay

    pipeline = CdcPipeline.from_yaml(args.pipeline)
    since, until = (as_micros(time) for time in (args.since, args.until))
    return run_batch_and_print(args, partial(run_replay, pipeline, Replay(args.tables, since, until)))


def rebuild(args: Namespace) -> int:
    """Make tables again from the change log or from files, or ask the source for a snapshot to make them from."""
    if args.signal:
        return _signal(args)
    from airflow_provider_cdc.batch.orders import run_rebuild
    from airflow_provider_cdc.core.documents import Rebuild

    order = Rebuild.of(args.tables, args.source, as_micros(args.since))
    return run_batch_and_print(args, partial(run_rebuild, CdcPipeline.from_yaml(args.pipeline), order))


def _signal(args: Namespace) -> int:
    """Ask for a snapshot, and say what comes next."""
    from airflow_provider_cdc.batch.snapshot_signal import signal_snapshot

    sent = signal_snapshot(CdcPipeline.from_yaml(args.pipeline), args.tables)
    document = sent.document()
    if args.json:
        print_json(document)
        return DONE
    words = " ".join(map(shlex.quote, [str(args.pipeline), *args.tables]))
    print(f"asked the connector for an incremental snapshot through {sent.topic}")
    print("when it has reported the end (TABLE_SCAN_COMPLETED), run")
    print(f"  airflow-cdc sync {shlex.quote(str(args.pipeline))}")
    print(f"  airflow-cdc rebuild {words} --from snapshot --since {document['since']}")
    return DONE


def run_and_print(args: Namespace, pipeline: CdcPipeline, **request: Any) -> int:
    """Run one batch and print its result; return the exit code.

    :param request: further arguments of ``run_batch``.
    """
    from airflow_provider_cdc.batch.runner import run_batch

    result = _carried_out(args, partial(run_batch, pipeline, **request))
    if result.status == ResultStatus.NOTHING_TO_DO:
        _say_silence(pipeline, args.pipeline)
    return _code(result)


def run_batch_and_print(args: Namespace, batch: Callable[..., BatchResult]) -> int:
    """Run a batch that a signal can stop, and print its result; return the exit code."""
    return _code(_carried_out(args, batch))


def _say_silence(pipeline: CdcPipeline, file: str) -> None:
    """Print how old the newest record is, where that is older than usual; what cannot be looked up is not said."""
    from airflow_provider_cdc.batch.source_log import open_log
    from airflow_provider_cdc.connections.lookup import ledger_url
    from airflow_provider_cdc.ledger import Ledger
    from airflow_provider_cdc.observability.silence import silence_text
    from airflow_provider_cdc.watch.lag import applied_offsets, observe_lag

    with suppress(CdcError):  # the request is answered all the same
        ledger = Ledger(ledger_url(pipeline.ledger))
        lag = observe_lag(pipeline, open_log(pipeline), applied_offsets(ledger, pipeline.name))
        if text := silence_text(ledger, pipeline.name, lag):
            print(printable(copyable(text, file)))


def _carried_out(args: Namespace, batch: Callable[..., BatchResult]) -> BatchResult:
    """Run a batch that a signal can stop, print its result, and return it."""
    from airflow_provider_cdc.engine.stopper import Stopper

    stopper = Stopper()
    signal.signal(signal.SIGTERM, lambda *_: stopper("SIGTERM"))
    with at_a_command_line() as say:
        result = batch(say=say, kill=stopper)
    if result.error is not None:
        name_file(result.error, args.pipeline)
    if args.json:
        print_json(result.document())
    else:
        _print_outcome(result, args.pipeline)
    return result


def plan(args: Namespace) -> int:
    """Show what the next batch would read, without recording it."""
    from airflow_provider_cdc.batch.preview import preview

    with at_a_command_line() as say:
        proposal = preview(CdcPipeline.from_yaml(args.pipeline), args.until, explained=args.explain, say=say)
    if args.json:
        print_json(proposal)
    else:
        _print_plan(proposal)
    return DONE


def _code(result: BatchResult) -> int:
    if result.error is not None:
        return exit_code(result.error)
    return {ResultStatus.PARKED: DATA, ResultStatus.WAITING: AGAIN}.get(result.status, DONE)


def _print_outcome(result: BatchResult, file: str) -> None:
    from airflow_provider_cdc.batch.result import quarantine_line

    unsettled = (ResultStatus.PARKED, ResultStatus.WAITING)
    if result.status == ResultStatus.NOTHING_TO_DO or (result.status in unsettled and result.phases is None):
        print(f"{result.pipeline}: nothing new ({result.seconds:.1f} s)")
        _print_unsettled(result, file)
        return
    if result.error is not None:
        complain(result.error)
        print(f"{result.pipeline}: batch {result.seq} failed, nothing was committed ({result.seconds:.1f} s)")
        return
    changes = ", ".join(f"{count} {name}" for name, count in result.changes.items()) or "no row changes"
    again = ", done before" if result.repeated else ""
    print(f"{result.pipeline}: batch {result.seq} {result.status}{again} ({result.seconds:.1f} s)")
    print(
        f"{result.records} records: {changes}; {result.schema_changes} schema changes, {result.quarantined} quarantined"
    )
    if result.tables:
        print()
        rows = [_row(table, file) for table in sorted(result.tables, key=lambda table: (table.database, table.table))]
        print_table(("table", "state", "action", "upserts", "deletes", "version", "writer", "reason"), rows)
    _print_unsettled(result, file)
    for entry in result.quarantine or ():
        print(printable(f"quarantined: {quarantine_line(entry)}"))


def _print_unsettled(result: BatchResult, file: str) -> None:
    """Print parked and waiting tables that the batch did not touch, and what a catalog did not do."""
    touched = {table.name for table in result.tables}
    lines = [
        (table.name, str(status), copyable(table.reason, file, table.name))
        for status, tables in ((TableStatus.PARKED, result.parked), (TableStatus.WAITING, result.waiting))
        for table in tables or ()
        if table.name not in touched
    ]
    if lines:
        print()
        print_table(("table", "state", "reason"), sorted(lines))
    for warning in result.warnings or ():
        print(printable(f"catalog: {warning}"))


def _row(table: TableResult, file: str) -> list[object]:
    numbers = [table.upserts, table.deletes, table.version]
    # a table without a problem shows why Spark wrote it
    reason = copyable(table.reason, file, table.name) or (table.writer_reason if table.writer == "spark" else "")
    return [table.name, table.state, table.action, *numbers, table.writer or None, reason or None]


def _print_plan(proposal: dict[str, Any]) -> None:
    print(f"{proposal['pipeline']}: batch {proposal['seq']} {proposal['status']}, up to {proposal['records']} records")
    rows = [
        (topic, int(partition), proposal["start"].get(topic, {}).get(partition, end), end)
        for topic, partitions in proposal["end"].items()
        for partition, end in partitions.items()
    ]
    busy = [(*row, row[3] - row[2]) for row in rows if row[3] > row[2]]
    if busy:
        print()
        print_table(("topic", "partition", "start", "end", "records"), busy)
    if proposal.get("ddl"):
        print()
        print_table(("DDL", "kind", "statement"), [(d["table"], d["kind"], d["text"]) for d in proposal["ddl"]])
    for hold in proposal.get("holds", ()):
        print(printable(f"held back by {hold['topic']}/{hold['partition']}: {hold['why']}"))
    if proposal.get("explain"):
        _print_explained(proposal["explain"])


def _print_explained(explained: dict[str, Any]) -> None:
    """Print what a batch would do to each table, and what would not fit."""
    from airflow_provider_cdc.batch.result import quarantine_line

    names = ("snapshot", "insert", "update", "delete", "truncate")
    if explained["tables"]:
        rows = [
            (
                table["table"],
                *(table["changes"].get(name, 0) for name in names),
                *(table[name] for name in ("action", "upserts", "deletes", "files", "file_bytes", "writer")),
                *(table[name] for name in ("state", "reason")),
            )
            for table in explained["tables"]
        ]
        print()
        head = ("table", *names, "action", "upserts", "deletes", "files", "bytes", "writer", "state", "reason")
        print_table(head, rows)
    if explained["ddl"]:
        print()
        print_table(
            ("DDL", "kind", "statement"),
            [(", ".join(change["tables"]), change["kind"], change["text"]) for change in explained["ddl"]],
        )
    if explained["asks"]:
        asked = [(f"{a['database']}.{a['table']}", a["policy"], a["statement"]) for a in explained["asks"]]
        print()
        print_table(("asks about", "policy", "statement"), asked)
        for item in map(AskedChange.from_document, explained["asks"]):
            for sentence in () if item.cost is None else item.cost.sentences(str(item.name)):
                print(printable(f"{item.name}: {sentence}"))
    if explained["unfit"]:
        print()
        columns = ("table", "topic", "partition", "offset", "column", "reason")
        print_table(columns, [[row[name] for name in columns] for row in explained["unfit"]])
    for record in explained["unreadable"]:
        print(printable(f"unreadable: {quarantine_line(record)}: {record['error']}"))
    for table, columns in explained["unlogged"].items():
        sentence = f"the change log has no values of {', '.join(columns)}: no rebuild, replay or ALTER TABLE gives them"
        print(printable(f"{table}: {sentence}"))
    for reason, count in explained["lossy"].items():
        print(printable(f"lossy: {reason}: {count}"))
    if explained["error"] is not None:
        error = explained["error"]
        print(printable(f"the batch would fail: [{error['code']}] {error['message']} -> {error['hint']}"))
