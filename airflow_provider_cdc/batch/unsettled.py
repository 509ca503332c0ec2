# SPDX-License-Identifier: Apache-2.0
"""Handle a request when the log has nothing new: end grace periods, decide whether tables are to be tried anyway."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow_provider_cdc.batch.result import empty_result, table_states
from airflow_provider_cdc.connections.lookup import sink_options
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Lease, Ledger
from airflow_provider_cdc.sinks.contract import UnreadableTableError
from airflow_provider_cdc.sinks.pipeline_tables import PipelineTables

_OF_THE_SINK = "sink."
"""Prefix of codes whose cause may be removed by repairing a table, without anything new in the log."""


class Unsettled:
    """The waiting and parked tables of one pipeline, for a request that finds nothing new."""

    def __init__(self, pipeline: CdcPipeline, ledger: Ledger, lease: Lease) -> None:
        self._pipeline, self._ledger, self._lease = pipeline, ledger, lease
        self._stored = PipelineTables(pipeline, sink_options)
        self._states = table_states(ledger, pipeline.name)
        self._tried_with = ledger.fingerprint(pipeline.name)

    @property
    def waiting(self) -> bool:
        """Return whether a table waits for a schema change."""
        return any(state.state == TableStatus.WAITING for state in self._states.values())

    def end_grace(self, say: Callable[[str], None]) -> None:
        """Park the tables that waited longer than ``policy.ddl_grace_seconds``; needs no engine."""
        from airflow_provider_cdc.batch.planner import plan_settling

        grace = timedelta(seconds=self._pipeline.policy.ddl_grace_seconds)
        expired = {
            table_id: replace(state, state=TableStatus.PARKED, tried_with=self._tried_with or "")
            for table_id, state in self._states.items()
            if state.state == TableStatus.WAITING
            and state.waiting_since is not None
            and datetime.now(UTC) - datetime.fromisoformat(state.waiting_since) > grace
        }
        if not expired:
            return
        batch = plan_settling(self._ledger, self._lease, self._pipeline.name)
        result = empty_result(self._pipeline.name, batch.seq)
        documents = {table_id: state.document() for table_id, state in expired.items()}
        self._ledger.commit(self._lease, batch.seq, result, documents)
        self._states |= expired
        say(f"{len(expired)} tables waited longer than policy.ddl_grace_seconds and are parked")

    def why_continue(self) -> str:
        """Return why tables are to be tried although nothing is new, empty where nothing speaks for it."""
        if self._states and self._tried_with is None:
            return "it is not known what the tables were last tried with: trying them"  # the ledger was made again
        if self._tried_with not in (None, self._pipeline.fingerprint()):
            return "the configuration has changed: applying it"
        parked = (state for state in self._states.values() if state.state == TableStatus.PARKED)
        if any(self._has_changed(state) for state in parked):
            return "a parked table may continue: retrying it"
        return ""

    def _has_changed(self, state: TableState) -> bool:
        if state.tried_with != self._pipeline.fingerprint():
            return True
        if not state.code.startswith(_OF_THE_SINK):
            return False
        try:
            table = self._stored.newest(state)
        except UnreadableTableError:
            gone = state.code == "sink.not_ours"
            return _is_empty(self._stored.location(state)) if gone else state.seen_version is not None
        if table.version != state.seen_version:
            return True
        return state.code == "sink.file_missing" and table.has_all_files()


def _is_empty(location: str) -> bool:
    """Return whether a local location is empty; in an object store only a batch can find out."""
    folder = Path(location)
    return folder.is_absolute() and not (folder.is_dir() and any(folder.iterdir()))
