# SPDX-License-Identifier: Apache-2.0
"""Explain what the next batch would do: land it into a folder of its own and resolve it, without a commit."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_cdc.batch.coming_ddl import kind_of
from airflow_provider_cdc.batch.job import JobMaker
from airflow_provider_cdc.batch.lake_question import ask
from airflow_provider_cdc.batch.result import newest_by_name, table_states
from airflow_provider_cdc.batch.source_log import SourceLog
from airflow_provider_cdc.core.config import CdcPipeline, TableRules
from airflow_provider_cdc.core.ddl.description import describe
from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.ddl.tokens import DdlError
from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.core.errors import UnavailableError
from airflow_provider_cdc.core.model.status import BatchStatus, ResultStatus, TableStatus
from airflow_provider_cdc.core.plan.ranges import Range
from airflow_provider_cdc.core.timeline.asked_changes import Answer
from airflow_provider_cdc.ledger import SYNC, Batch, Ledger

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def explain(
    pipeline: CdcPipeline,
    ledger: Ledger,
    log: SourceLog,
    proposal: Batch | Range,
    seq: int,
    until: datetime | None,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Return what a batch would do.

    Members are ``tables``, ``asks``, ``ddl``, ``unfit`` rows, ``unreadable`` records, ``lossy``, ``error``, and
    ``unlogged``: by table what the change log has no values of.

    It runs in a process of this machine, whatever engine the pipeline has.

    :param proposal: the batch, or the range of a new one.
    :param seq: number of the batch.
    :param say: takes one line of progress.
    :raises UnavailableError: the lake holds batches that the ledger does not know.
    """
    batch = proposal
    if isinstance(batch, Range):
        now = datetime.now(UTC)
        topics, cut_at = dict(batch.topics), batch.cut_at
        batch = Batch(
            pipeline.name, seq, SYNC, BatchStatus.PLANNED, batch.start, batch.end, until, now,
            topics=topics, cut_at=cut_at,
        )  # fmt: skip
    before = table_states(ledger, pipeline.name)
    job, secrets = JobMaker(pipeline, ledger, batch, log.client_config(), before).make()
    with tempfile.TemporaryDirectory(prefix="airflow-cdc-preview-") as scratch:
        job.scratch = scratch
        result = ask(job, secrets, f"preview of {pipeline.name}", say=say)
    demand_known_batches(pipeline, result)
    return _document(result, newest_by_name(before.values()), pipeline.tables)


def demand_known_batches(pipeline: CdcPipeline, result: Result) -> None:
    """Refuse an answer of a lake that holds batches which the ledger does not know.

    :raises UnavailableError: ``plan.ledger_behind``.
    """
    if result.status == ResultStatus.BEHIND:
        raise UnavailableError(
            "plan.ledger_behind",
            f"the lake holds {len(result.lake_batches)} batches that the ledger does not know",
            where={"pipeline": pipeline.name},
            hint="run `airflow-cdc sync PIPELINE.yaml`: it takes them over first",
        )


def _document(result: Result, before: Mapping[str, Any], rules: TableRules) -> dict[str, Any]:
    """Return what the result of a preview says.

    :param before: states of the tables by name.
    """
    after = newest_by_name(result.states)
    lines = {f"{line.database}.{line.table}": line for line in result.tables}
    tables, names = [], sorted({*result.row_changes, *lines, *after})
    for name in names:
        line, state = lines.get(name), after.get(name) or before.get(name)
        tables.append(
            {
                "table": name,
                "changes": result.row_changes.get(name, {}),
                "state": None if state is None else state.state,
                "reason": (state.reason or None) if state is not None and state.state != TableStatus.OK else None,
                "action": None if line is None else line.action or None,
                "upserts": 0 if line is None else line.upserts,
                "deletes": 0 if line is None else line.deletes,
                "files": 0 if line is None else line.files,
                "file_bytes": 0 if line is None else line.file_bytes,
                "writer": None if line is None else line.writer or None,
                "writer_reason": None if line is None else line.writer_reason or None,
            }
        )
    unfit = [{"table": f"{row['database']}.{row['table']}", **_without(row)} for row in result.unfit]
    return {
        "tables": tables,
        "parks": [table["table"] for table in tables if table["table"] in after and table["state"] == "parked"],
        "waits": [table["table"] for table in tables if table["table"] in after and table["state"] == "waiting"],
        "asks": [item for item in result.asked_changes if item["answer"] == Answer.OPEN],
        "ddl": [_statement(change) for change in result.new_schema_changes if change.get("copy_of") is None],
        "unfit": unfit,
        "unreadable": [item for item in result.quarantine if "error_code" in item],
        "lossy": result.lossy,
        "unlogged": {name: stated for name in names if (stated := rules.rule(name).unlogged_patterns)},
        "error": None if result.error is None else result.error.document(),
    }


def _without(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("database", "table", "table_id")}


def _statement(change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema change with the tables that it names and what it will do."""
    text, dialect = change["statement"], change.get("dialect")
    names = [f"{database}.{table}" for database, table, _ in change["structure"]]
    try:
        for statement in parse(text, dialect) if text else ():
            described = describe(statement, change["database"])
            names += [f"{one['database']}.{one['table']}" for one in described if one.get("table")]
    except DdlError:
        pass  # the kind says that it is not understood
    time = change["time"]
    return {
        "tables": list(dict.fromkeys(names)),
        "kind": str(kind_of(text, dialect)) if text else None,
        "snapshot": change.get("snapshot") is not None,
        "text": " ".join(text.split()),
        "position": change["position"] or None,
        "time": None if time is None else (_EPOCH + timedelta(microseconds=time)).isoformat(),
    }
