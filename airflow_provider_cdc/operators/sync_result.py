# SPDX-License-Identifier: Apache-2.0
"""Show the result of a sync: in the task's log, in XCom, and as the end of the task."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, AirflowSkipException

from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.core.printable import printable

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.ledger import Batch

_SHOWN = 50
_STATEMENT = 200  # characters of a statement in the log
_LEFT_OUT = ("statements", "quarantine")  # of a result in XCom


def problem_of(result: BatchResult, on_parked: str, on_waiting: str, log: Any, file: str) -> AirflowException | None:
    """Return what ends the task for tables that are parked or wait, None where nothing does; warn of each.

    :param on_parked: what parked tables do: ``fail``, ``skip`` or ``warn``.
    :param on_waiting: what tables do that wait for a schema change.
    :param log: the task's logger.
    :param file: of the pipeline, for commands in reasons.
    """
    from airflow_provider_cdc.observability.remedies import copyable

    kinds = (
        (TableStatus.PARKED, on_parked, "are parked", result.parked, ResultStatus.PARKED),
        (TableStatus.WAITING, on_waiting, "wait", result.waiting, ResultStatus.WAITING),
    )
    ends: dict[str, list[str]] = {}
    for status, how, verb, tables, outcome in kinds:
        reasons = {table.name: copyable(table.reason, file, table.name) for table in tables or ()}
        for name, reason in reasons.items():
            log.warning("%s %s: %s", printable(name), status, printable(reason))
        if tables or result.status == outcome:
            shown = "; ".join(f"{name}: {reason}" for name, reason in islice(reasons.items(), _SHOWN))
            ends.setdefault(how, []).append(f"tables {verb}: {shown}")
    if result.more:
        ends.setdefault("fail", []).append(
            "the request needs further ones: clear the task that stages them, and those behind it"
        )
    for how, kind in (("fail", AirflowFailException), ("skip", AirflowSkipException)):
        if how in ends:
            return kind(printable(f"batch {result.seq} is committed, but {'; '.join(ends[how])}"))
    return None


def log_result(log: Any, result: BatchResult, batch: Batch | None) -> None:
    """Log a result in a few lines."""
    from airflow_provider_cdc.batch.result import quarantine_line

    for warning in result.warnings or ():
        log.warning("catalog: %s", printable(warning))
    if result.repeated and batch is not None:
        by = f" by {batch.task}" if batch.task else ""
        reach = f"until {batch.until.isoformat()}" if batch.until else "without a time"
        log.info(
            "nothing to do: batch %s (%s, committed at %s%s) holds it already; this is its stored result",
            batch.seq, reach, batch.committed_at and batch.committed_at.isoformat(), printable(by),
        )  # fmt: skip
        return
    if result.status == ResultStatus.NOTHING_TO_DO:
        log.info("nothing to do: no new records")
        return
    if result.statements:
        log.info("::group::DDL: %s statements", len(result.statements))  # folded in Airflow's view of the log
        for statement in result.statements:
            text = " ".join(statement.split())
            log.info("%s", printable(text if len(text) <= _STATEMENT else f"{text[: _STATEMENT - 1]}…"))
        log.info("::endgroup::")
    changes = ", ".join(f"{count} {name}" for name, count in result.changes.items()) or "no row changes"
    log.info(
        "batch %s %s: %s records (%s), %s schema changes, %s tables, %s quarantined, %.1f s",
        result.seq, result.status, result.records, changes, result.schema_changes, len(result.tables),
        result.quarantined, result.seconds,
    )  # fmt: skip
    for entry in result.quarantine or ():
        log.warning("quarantined: %s", printable(quarantine_line(entry)))


def small(result: BatchResult, shown: int) -> dict[str, Any]:
    """Return a result for XCom: numbers, and as many tables as people read.

    :param shown: that many.
    """
    numbers = {name: value for name, value in result.document().items() if name not in _LEFT_OUT}
    lists = {name: numbers[name] for name in ("tables", "parked", "waiting") if name in numbers}
    return {
        **numbers,
        **{name: lines[:shown] for name, lines in lists.items()},
        **{f"{name}_total": len(lines) for name, lines in lists.items()},
    }
