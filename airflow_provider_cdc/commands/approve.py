"""``approve``: let a new log of the source begin, after an operator has seen where and what follows."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.commands.printing import DONE, guarded, print_json, print_table
from airflow_provider_cdc.commands.sync import run_and_print
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import NEW_GENERATION, DataError

if TYPE_CHECKING:
    from airflow_provider_cdc.core.ledger import Ledger

_CONSEQUENCES = """
Approve it if the source failed over, was reset, or if the tool's numbers began again.
Then all records from these on count as newer than all before, whatever their places. Partitions that are not listed
begin the new log where their own records show it.
Tables keep what they have. Where the new server lacks changes that the old one had sent, or where changes are in
neither log (RESET MASTER), the tables stay different until a new snapshot with rows comes into the same topics.
It cannot be taken back. If two logs are written to one topic, do not approve: give each topics of its own.
"""


def approve(given: Namespace) -> int:
    """Show what waits for an approval, or approve it and finish the batch."""

    def work() -> int:
        from airflow_provider_cdc.core.ledger import Ledger
        from airflow_provider_cdc.hooks.connections import ledger_url

        pipeline = CdcPipeline.from_yaml(given.pipeline)
        ledger = Ledger(ledger_url(pipeline.ledger))
        batch = _approved_with(ledger, pipeline.name).get(given.new_generation)
        if batch is not None:
            answer = {"pipeline": pipeline.name, "seq": batch, "status": "approved_before"}
            print_json(answer) if given.json else print(f"{pipeline.name}: approved before, with batch {batch}")
            return DONE
        question = _question(ledger, pipeline.name)
        if given.new_generation is None:
            return _show(given, pipeline.name, question)
        _demand(given, pipeline.name, question)
        return run_and_print(given, pipeline, new_generation=question[0])

    return guarded(work, as_json=given.json)


def _approved_with(ledger: Ledger, name: str) -> dict[str, int]:
    """Return the batch that each approved generation began with, by the record that it begins with."""
    return {
        record: batch.seq
        for batch in ledger.batches(name)
        if batch.committed
        for record in (batch.result or {}).get("new_generations", ())
    }


def _question(ledger: Ledger, name: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the record that is to be approved and the first records of all partitions; nothing where none waits."""
    batch = ledger.open(name)
    if batch is None or (batch.result or {}).get("status") != "refused":
        return "", []
    records = (batch.result or {})["error"]["new_generation"]
    first = records[0]
    return f"{first['topic']}/{first['partition']}:{first['offset']}", records


def _show(given: Namespace, name: str, question: tuple[str, list[dict[str, Any]]]) -> int:
    """Print what waits for an approval."""
    record, records = question
    if given.json:
        print_json({"pipeline": name, "new_generation": record or None, "first_records": records})
    elif not records:
        print(f"{name}: nothing waits for an approval")
    else:
        print(f"{name}: the source's log began again\n")
        heads = ("topic", "partition", "offset", "source time", "position", "seen before", "GTID")
        members = ("topic", "partition", "offset", "source_time", "position", "seen_before", "gtid")
        print_table(heads, [[line[member] for member in members] for line in records])
        print(_CONSEQUENCES)
        print(f"airflow-cdc approve {given.pipeline} --new-generation {record}")
    return DONE


def _demand(given: Namespace, name: str, question: tuple[str, list[dict[str, Any]]]) -> None:
    """Refuse to approve anything but what waits for it.

    :raises DataError: ``approve.nothing_waits``, ``approve.other_record``.
    """
    record, records = question
    if not records:
        raise DataError(
            "approve.nothing_waits",
            "no batch waits for an approval",
            where={"pipeline": name},
            hint=f"run `airflow-cdc sync {given.pipeline}`: it ends with {NEW_GENERATION} where the source's log began "
            "again, and names the record to approve",
        )
    if given.new_generation not in ("", record):
        raise DataError(
            "approve.other_record",
            "another record waits for an approval",
            where={"pipeline": name, "given": given.new_generation, "waiting": record},
            hint=f"look at it with `airflow-cdc approve {given.pipeline}`",
        )
