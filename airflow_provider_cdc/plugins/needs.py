# SPDX-License-Identifier: Apache-2.0
"""Say what of a pipeline needs a person: what happened, since when, what it means, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import select

from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.core.timeline.asked_changes import DENIABLE, Answer, newest_answers
from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.ledger.health import UnsettledTable, unsettled_tables
from airflow_provider_cdc.observability.remedies import RECORD, Remedy, copyable, remedy_of
from airflow_provider_cdc.plugins.batch_rows import of_result, run_of
from airflow_provider_cdc.plugins.pipeline_rows import Known, read_standings
from airflow_provider_cdc.plugins.pipeline_states import is_held
from airflow_provider_cdc.plugins.statement_text import statement_text

Document = dict[str, Any]

_SHOWN = 20
"""So many tables of one reason are named."""

_LATE = {
    "interrupted": "A batch is begun, and nobody works on it",
    "stale": "Nobody has run the pipeline for longer than twice the usual time",
    "late": "The tables are further behind the source than twice the usual time between runs",
}

_batches = schema.batches.c


def needs(connection: Connection, pipeline: str, dag_ids: Collection[str] | None, file: str) -> list[Document]:
    """Return what needs a person, the gravest first; tables that share state and code are one entry.

    :param dag_ids: DAGs that may be named; None for all.
    :param file: of the pipeline, for commands.
    """
    known = read_standings(connection, [pipeline])[pipeline]
    tables = unsettled_tables(connection, [pipeline])
    asked = _asked(connection, pipeline, [table.seq for table in tables])
    return [*_of_runs(connection, pipeline, file, known, dag_ids), *_of_tables(file, tables, asked)]


def needs_in(url: str, pipeline: str, file: str) -> list[Document]:
    """Return the same of a pipeline in a ledger.

    :param url: of the ledger's database, which exists.
    :raises CdcError: the ledger cannot be read.
    """
    with Database(url, read_only=True).reading() as connection:
        return needs(connection, pipeline, None, file)


def need_lines(need: Document) -> list[str]:
    """Return one entry of what needs a person as lines of text."""
    since = f" since {need['since'][:19]}Z" if need["since"] else ""
    more = need["table_count"] - len(need["tables"])
    tables = ", ".join(need["tables"]) + (f" and {more} more" if more > 0 else "")
    lines = [f"{tables or 'The pipeline'} {need['state']}{since}: {need['happened']}"]
    lines += [f"  {text}" for text in (need.get("hint"), need["means"], need["do"]) if text]
    lines += [f"    {command}" for command in need["commands"]]
    lines += [f"  In a DAG: {need['operator']}"] if need["operator"] else []
    run = need["run"]
    return lines + ([f"  Log: task {run['task_id']} of DAG {run['dag_id']}, run {run['run_id']}"] if run else [])


def _of_runs(
    connection: Connection, pipeline: str, file: str, known: Known, dag_ids: Collection[str] | None
) -> Iterable[Document]:
    """Yield what is wrong with batches and runs."""
    state, since, last, attempt = known.standing.state, known.standing.since, known.last, known.attempt
    run = run_of(attempt or last, dag_ids) if attempt or last else None
    if state in (ResultStatus.REFUSED, ResultStatus.CRASHED):
        code, record = _error_of(connection, pipeline, last.seq)
        happened = f"Batch {last.seq} is {state}, and nothing of it is committed"
        remedy = remedy_of(code or "engine.crashed")
        yield _need(state, code, since, happened, remedy, file, run=run, record=record)
    elif state == "failing":
        happened = f"The last attempt failed with {attempt.code}, at {attempt.at[:19]}Z"
        happened += _holder(last) if attempt.code == "ledger.busy" else ""
        yield _need(state, attempt.code, since, happened, remedy_of(attempt.code), file, run=run)
    elif state in _LATE:
        yield _need(state, "", since, _LATE[state], remedy_of(state), file, run=run)


def _holder(last: Any) -> str:
    """Return who holds a pipeline and until when at least, empty where nobody does.

    :param last: row of its lease.
    """
    if last is None or not is_held(last, datetime.now(UTC)):
        return ""
    return f"; {last.lease_owner} holds the pipeline, at least until {last.lease_until[:19]}Z"


def _error_of(connection: Connection, pipeline: str, seq: int) -> tuple[str, str]:
    """Return code and record of the error with which a batch ended; its text stays in the ledger."""
    query = select(of_result(_batches, "error")).where(_batches.pipeline == pipeline, _batches.seq == seq)
    error = connection.execute(query).scalar() or {}
    records = error.get("new_generation") or ()
    named = [f"{one['topic']}/{one['partition']}:{one['offset']}" for one in records]
    return str(error.get("code") or ""), named[0] if named else RECORD


def _of_tables(file: str, tables: Sequence[UnsettledTable], asked: Mapping[str, list[Document]]) -> Iterable[Document]:
    """Yield one entry for the tables that share state and remedy; of each reason the oldest is shown."""
    entries: dict[tuple[str, str, int], list[UnsettledTable]] = {}
    for table in tables:
        remedy = remedy_of(table.code, table.reason)
        entries.setdefault((str(table.state), table.code, id(remedy)), []).append(table)
    for (state, code, _), group in sorted(entries.items(), key=lambda entry: entry[0][:2]):
        group.sort(key=lambda table: (table.since or "", table.table_id))
        names = [f"{table.database}.{table.table}" for table in group]
        first, others = group[0], len(group) - 1
        happened, _, hint = first.reason.partition(" -> ")
        happened += f" (and {others} more {'table' if others == 1 else 'tables'})" if others else ""
        entry = _need(state, code, first.since, happened, remedy_of(code, first.reason), file, names)
        changes = [change for name in names for change in asked.get(name, ())][:_SHOWN]
        hint = copyable(hint, file, names[0])
        yield {**entry, "hint": printable(hint), "at_least": first.at_least, "changes": changes}


def _need(
    state: str,
    code: str,
    since: str | None,
    happened: str,
    remedy: Remedy,
    file: str,
    tables: Sequence[str] = (),
    *,
    run: Document | None = None,
    record: str = RECORD,
) -> Document:
    return {
        "state": state,
        "code": printable(code),
        "since": since,
        "happened": printable(happened),
        "tables": [printable(name) for name in tables[:_SHOWN]],
        "table_count": len(tables),
        **remedy.document(file, tables, record, run["dag_id"] if run else ""),
        "run": run,
    }


def _asked(connection: Connection, pipeline: str, seqs: Sequence[int]) -> dict[str, list[Document]]:
    """Return the changes that wait for a decision, by table.

    :param seqs: batches since which tables are unsettled; an older change of them is decided.
    """
    if not seqs:
        return {}
    asked = of_result(_batches, "asked_changes")
    query = select(asked.label("asked")).where(_batches.pipeline == pipeline, _batches.seq >= min(seqs))
    rows = connection.execute(query.order_by(_batches.seq)).scalars()
    open_changes: dict[str, list[Document]] = {}
    for change in newest_answers(document for documents in rows for document in documents or ()):
        if change.answer == Answer.OPEN:
            shown = {
                "id": change.id,
                "table": printable(str(change.name)),
                "policy": change.policy,
                "statement": statement_text(change.statement),
                "deniable": change.policy in DENIABLE,
            }
            open_changes.setdefault(str(change.name), []).append(shown)
    return open_changes
