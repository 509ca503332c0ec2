# SPDX-License-Identifier: Apache-2.0
"""Name the states of tables, tasks, results and batches; the values stand in documents and never change."""

from __future__ import annotations

from enum import StrEnum


class TableStatus(StrEnum):
    """Say where a table is after a batch (``TableState.state``).

    ``waiting`` waits for a schema change that its rows announce; ``parked`` needs an operator or new records;
    ``dropped`` is no longer followed.
    """

    OK = "ok"
    WAITING = "waiting"
    PARKED = "parked"
    DROPPED = "dropped"


class ApplyStatus(StrEnum):
    """Say how an apply task ended (``ApplyReport.status``).

    ``committed`` includes what is staged for the Spark writer; ``repeated`` found its own commit; ``unavailable`` lets
    the batch run again because the store failed. After ``rewind``, ``ahead`` and ``whole`` nothing was written: the
    task runs again from an older state, from the state that the table's own commit carries, or on all keys at once.
    """

    COMMITTED = "committed"
    UNCHANGED = "unchanged"
    REPEATED = "repeated"
    WAITING = "waiting"
    PARKED = "parked"
    UNAVAILABLE = "unavailable"
    REWIND = "rewind"
    AHEAD = "ahead"
    WHOLE = "whole"


class ResultStatus(StrEnum):
    """Say how a batch or a request ended.

    The Spark side writes ``done``, ``parked``, ``failed`` and ``behind`` (the ledger has to take over batches of the
    lake first). The Airflow side adds ``waiting`` (a table waits for a schema change), ``empty`` (a batch without
    records), ``refused`` (a planned batch that needs an approval), ``crashed`` (a planned batch whose engine ended
    without a result) and ``nothing_to_do`` (a request without a batch).
    """

    DONE = "done"
    PARKED = "parked"
    WAITING = "waiting"
    FAILED = "failed"
    BEHIND = "behind"
    EMPTY = "empty"
    REFUSED = "refused"
    CRASHED = "crashed"
    NOTHING_TO_DO = "nothing_to_do"


class BatchStatus(StrEnum):
    """Say where a batch is in the ledger; of an ``abandoned`` one nothing was read and nothing will be."""

    PLANNED = "planned"
    COMMITTED = "committed"
    ABANDONED = "abandoned"
