"""The batches before the one at hand, as the change log tells them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from airflow_provider_cdc.core.ddl.timeline import TableTimeline
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.model.clock_position import reaches
from spark_jobs.change_log import Manifest, log_folder
from spark_jobs.source_log import SourceLog
from spark_jobs.storage import Storage


@dataclass(slots=True)
class History:
    """The batches before this one, read only as far as needed.

    :param manifest: gives a batch's manifest.
    :param result: gives a batch's result document.
    """

    earlier: Sequence[int]
    manifest: Callable[[int], Manifest]
    result: Callable[[int], dict[str, Any]]

    def deferred(self) -> list[dict[str, Any]]:
        """Return the schema changes that were read but were too late for the batches so far."""
        return list(self.result(self.earlier[-1])["deferred"]) if self.earlier else []

    def source_log(self) -> SourceLog:
        """Return what the earlier batches show of the source's log."""
        return SourceLog.from_document(self.result(self.earlier[-1]).get("source_log", ()) if self.earlier else ())

    def newest_position(self) -> str:
        """Return the newest position of all earlier batches."""
        return self._reached(self.earlier[-1]) if self.earlier else ""

    def clocks(self) -> list[list[Any]]:
        """Return the clocks of all partitions as the earlier batches left them.

        :raises SinkError: those batches have positions of an older form, which do not compare with those of now.
        """
        if not self.earlier:
            return []
        newest = self.result(self.earlier[-1])
        if "clocks" not in newest:
            raise SinkError(
                "log.older_positions",
                "earlier batches were ordered by their number, which later versions do not do",
                where={"batch": self.earlier[-1]},
                hint="rebuild the tables: a pipeline with another name and root that reads the log from its beginning",
            )
        return list(newest["clocks"])

    def newest_source_time(self) -> int | None:
        """Return the newest source time of the rows of all earlier batches, in microseconds since the epoch."""
        return self._source_time(self.earlier[-1]) if self.earlier else None

    def since_source_time(self, time: int) -> list[int]:
        """Return the batches that may hold rows of a source time or later ones, ascending."""
        found: list[int] = []
        for seq in reversed(self.earlier):
            newest = self._source_time(seq)
            if newest is None or newest < time:
                break
            found.append(seq)
        return found[::-1]

    def _source_time(self, seq: int) -> int | None:
        found: int | None = self.result(seq).get("newest_source_time")
        return found

    def _reached(self, seq: int) -> str:
        return str(self.result(seq).get("max_position") or "")

    def since(self, position: str) -> list[int]:
        """Return the batches that may hold rows at or after a position, ascending."""
        found: list[int] = []
        for seq in reversed(self.earlier):
            if self._reached(seq) < position:  # newest position of this batch and all before it
                break
            found.append(seq)
        return found[::-1]

    def state_before(
        self, timeline: TableTimeline, position: str, before_seq: int, whole: Callable[[TableState], bool]
    ) -> TableState | None:
        """Return a table's newest state, of batches before ``before_seq``, that holds nothing from a position on.

        A state made before a late schema change became known is none to go back to.

        :param whole: says whether a state holds all that its batches have of the table, as it is known now.
        """
        for seq in reversed([seq for seq in self.earlier if seq < before_seq]):
            for data in self.result(seq).get("states", ()):
                if data["table_id"] != timeline.table_id or data["version"] is None or data["applied_seq"] != seq:
                    continue
                state = TableState(**data)
                applied = state.applied_position
                known = state.timeline_mark == timeline.mark(applied)
                if known and not reaches(applied, position) and whole(state):
                    return state
        return None


def history_of(job: JobDocument, storage: Storage) -> History:
    """Return the batches before a job's, as the change log has them.

    :raises SinkError: the log lacks one that the ledger has as committed.
    """

    def document(seq: int, name: str) -> dict[str, Any]:
        found = storage.read_json(f"{log_folder(f'_cdc/{job.pipeline}', seq)}/{name}.json")
        if found is None:
            raise SinkError(
                "log.missing",
                f"the change log lacks batch {seq}, which the ledger has as committed",
                where={"root": job.sink_root, "pipeline": job.pipeline},
                hint="is the right lake mounted? restore its _cdc folder, or rebuild the pipeline under another name",
            )
        return dict(found)

    @cache
    def result(seq: int) -> dict[str, Any]:
        return document(seq, "result")

    @cache
    def manifest(seq: int) -> Manifest:
        return Manifest.from_document(document(seq, "manifest"))

    return History(job.earlier, manifest, result)
