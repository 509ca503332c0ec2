# SPDX-License-Identifier: Apache-2.0
"""Run ``approve``: decide about changes that tables wait for, and accept a new log of the source."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.approvals import decide, waiting_changes
from airflow_provider_cdc.batch.result import refusal, stored_result
from airflow_provider_cdc.commands.output import DONE, print_json, print_table
from airflow_provider_cdc.commands.sync import run_and_print, run_batch_and_print
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import NEW_GENERATION, ConfigurationError, DataError
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.core.timeline.asked_changes import DENIABLE, AskedChange
from airflow_provider_cdc.observability.remedies import copyable

if TYPE_CHECKING:
    from airflow_provider_cdc.ledger import Ledger

_CONSEQUENCES = """
Approve it if the source failed over, was reset, or if the tool's numbers began again.
Then all records from these on count as newer than all before, whatever their positions. Partitions that are not
listed begin the new log where their own records show it.
Tables keep their content. Where the new server lacks changes that the old one had sent, or where changes are in
neither log (RESET MASTER), the tables stay different until a new snapshot with rows comes into the same topics.
It cannot be taken back. If two logs are written to one topic, do not approve: give each topics of its own.
"""


def approve(args: Namespace) -> int:
    """Show what waits for an approval, or approve it and finish the batch."""
    from airflow_provider_cdc.connections.lookup import ledger_url
    from airflow_provider_cdc.ledger import Ledger

    _demand_one_purpose(args)
    pipeline = CdcPipeline.from_yaml(args.pipeline)
    if args.table is not None:
        return _decide(args, pipeline)
    ledger = Ledger(ledger_url(pipeline.ledger))
    batch = _approved_with(ledger, pipeline.name).get(args.new_generation)
    if batch is not None:
        answer = {"pipeline": pipeline.name, "seq": batch, "status": "approved_before"}
        print_json(answer) if args.json else print(f"{pipeline.name}: approved before, with batch {batch}")
        return DONE
    question = _question(ledger, pipeline.name)
    if args.new_generation is None:
        return _show(args, pipeline.name, question, waiting_changes(ledger, pipeline.name))
    _demand(args, pipeline.name, question)
    return run_and_print(args, pipeline, new_generation=question[0])


def _demand_one_purpose(args: Namespace) -> None:
    """Reject options that do not belong together.

    :raises ConfigurationError: names them.
    """
    if args.table is not None and args.new_generation is not None:
        raise ConfigurationError(["approve: name either a table or --new-generation"])
    if args.table is None and (args.deny or args.by or args.change):
        raise ConfigurationError(["approve: --change, --deny and --by need the table, as database.table"])


def _decide(args: Namespace, pipeline: CdcPipeline) -> int:
    """Approve or deny what a table waits for, and print the batch that carries it out."""
    named = {"change": args.change or "", "by": args.by or ""}
    return run_batch_and_print(args, partial(decide, pipeline, args.table, deny=args.deny, **named))


def _approved_with(ledger: Ledger, name: str) -> dict[str, int]:
    """Map the first record of each approved generation to the number of its batch."""
    return {
        record: batch.seq
        for batch in ledger.batches(name)
        if (result := stored_result(batch)) is not None
        for record in result.new_generations or ()
    }


def _question(ledger: Ledger, name: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the record to approve and the first records of all partitions; both empty if nothing waits."""
    batch = ledger.open(name)
    error = None if batch is None else refusal(batch)
    if error is None:
        return "", []
    records = error.details["new_generation"]
    first = records[0]
    return f"{first['topic']}/{first['partition']}:{first['offset']}", records


def _show(
    args: Namespace, name: str, question: tuple[str, list[dict[str, Any]]], waiting: Sequence[AskedChange]
) -> int:
    """Print what waits for an approval.

    :param waiting: changes of tables.
    """
    record, records = question
    if args.json:
        changes = [{"id": item.id, **item.document()} for item in waiting]
        print_json(
            {"pipeline": name, "new_generation": record or None, "first_records": records, "asked_changes": changes}
        )
        return DONE
    if not records and not waiting:
        print(f"{name}: nothing waits for an approval")
    if waiting:
        lines = [(str(item.name), item.id, item.position, item.policy, item.statement) for item in waiting]
        print_table(("table", "change", "position", "policy", "statement"), lines)
        print()
        _print_costs(args.pipeline, waiting)
        oldest: dict[str, AskedChange] = {}
        for item in waiting:
            oldest.setdefault(str(item.name), item)
        for table, item in oldest.items():
            deny = "    # with --deny it is left out" if item.policy in DENIABLE else ""
            print(printable(f"airflow-cdc approve {args.pipeline} {table} --change {item.id}{deny}"))
    if records:
        print(f"{name}: the source's log began again\n")
        heads = ("topic", "partition", "offset", "source time", "position", "seen before", "GTID")
        members = ("topic", "partition", "offset", "source_time", "position", "seen_before", "gtid")
        print_table(heads, [[line[member] for member in members] for line in records])
        print(_CONSEQUENCES)
        print(f"airflow-cdc approve {args.pipeline} --new-generation {record}")
    return DONE


def _print_costs(pipeline: str, waiting: Sequence[AskedChange]) -> None:
    """Print what carrying out changed rules costs."""
    for item in waiting:
        if item.cost is not None:
            print(printable(f"{item.name}, as of {item.cost.at}:"))
            for sentence in item.cost.sentences(str(item.name)):
                print(printable(f"  {copyable(sentence, pipeline)}"))
            print()


def _demand(args: Namespace, name: str, question: tuple[str, list[dict[str, Any]]]) -> None:
    """Reject an approval of anything but the record that waits for it.

    :raises DataError: ``approve.nothing_waits``, ``approve.other_record``.
    """
    record, records = question
    if not records:
        raise DataError(
            "approve.nothing_waits",
            "no batch waits for an approval",
            where={"pipeline": name},
            hint=f"run `airflow-cdc sync {args.pipeline}`: it ends with {NEW_GENERATION} where the source's log began "
            "again, and names the record to approve",
        )
    if args.new_generation not in ("", record):
        raise DataError(
            "approve.other_record",
            "another record waits for an approval",
            where={"pipeline": name, "given": args.new_generation, "waiting": record},
            hint=f"show it with `airflow-cdc approve {args.pipeline}`",
        )
