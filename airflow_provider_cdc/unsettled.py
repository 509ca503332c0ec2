"""Tables that wait or are parked while the log brings nothing new: what ends by itself, and what is worth a start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.ledger import Lease, Ledger
from airflow_provider_cdc.hooks.connections import storage_options

_OF_THE_SINK = "sink."
"""Codes of states that somebody may end by repairing a table, without anything new in the log."""


class Unsettled:
    """The tables of one pipeline that are neither well nor dropped, when a request finds nothing new."""

    def __init__(self, pipeline: CdcPipeline, ledger: Ledger, lease: Lease) -> None:
        self._pipeline, self._ledger, self._lease = pipeline, ledger, lease
        self._states = ledger.tables(pipeline.name)

    @property
    def waiting(self) -> bool:
        """Whether a table waits for a schema change."""
        return any(state["state"] == "waiting" for state in self._states.values())

    def end_grace(self, say: Callable[[str], None]) -> None:
        """Park the tables that waited longer than ``policy.ddl_grace_seconds``; needs no engine."""
        from airflow_provider_cdc.planner import plan_settling

        grace = timedelta(seconds=self._pipeline.policy.ddl_grace_seconds)
        expired = {
            table_id: {**state, "state": "parked", "tried_with": self._pipeline.fingerprint()}
            for table_id, state in self._states.items()
            if state["state"] == "waiting"
            and datetime.now(UTC) - datetime.fromisoformat(state["waiting_since"]) > grace
        }
        if not expired:
            return
        batch = plan_settling(self._ledger, self._lease, self._pipeline.name)
        result = {"pipeline": self._pipeline.name, "seq": batch.seq, "status": "empty", "records": 0}
        self._ledger.commit(self._lease, batch.seq, result, expired)
        self._states |= expired
        say(f"{len(expired)} tables waited longer than policy.ddl_grace_seconds and are parked")

    def may_go_on(self) -> bool:
        """Return whether a parked table may be well when it is tried again: its cause lies outside the log."""
        return any(state["state"] == "parked" and self._has_changed(state) for state in self._states.values())

    def _has_changed(self, state: Mapping[str, Any]) -> bool:
        if state.get("tried_with", "") != self._pipeline.fingerprint():
            return True
        if not state.get("code", "").startswith(_OF_THE_SINK):
            return False
        version = self._present_version(state["location"])
        if version is None and state["code"] == "sink.not_ours":
            return _is_empty(state["location"])
        if state["code"] == "sink.file_missing" and version == state["seen_version"]:
            return version is not None and self._has_all_files(state["location"])
        return version != state["seen_version"]

    def _present_version(self, location: str) -> int | None:
        """Return the version that a table has now, None where it cannot be opened."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            version: int = DeltaTable(location, storage_options=self._storage_options()).version()
        except (DeltaError, OSError):
            return None
        return version

    def _has_all_files(self, location: str) -> bool:
        """Return whether every data file of a table's present version exists."""
        import pyarrow as pa
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
        from deltalake.fs import DeltaStorageHandler
        from pyarrow import fs

        options = self._storage_options()
        try:
            added = pa.table(DeltaTable(location, storage_options=options).get_add_actions())
            files = fs.PyFileSystem(DeltaStorageHandler(location, options))
            infos = files.get_file_info([unquote(path) for path in added.column("path").to_pylist()])
        except (DeltaError, OSError):
            return False
        return all(info.type == fs.FileType.File for info in infos)

    def _storage_options(self) -> dict[str, str] | None:
        sink = self._pipeline.sink
        return {**storage_options(sink.storage_connection), **sink.storage_options} or None


def _is_empty(location: str) -> bool:
    """Return whether nothing lies at a local location any more; in an object store only a batch finds out."""
    folder = Path(location.removeprefix("file://"))
    return "://" not in str(folder) and not (folder.is_dir() and any(folder.iterdir()))
