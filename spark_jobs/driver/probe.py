# SPDX-License-Identifier: Apache-2.0
"""Probe a sink: make a small table as a batch does, merge into it and remove it; say what failed and what to do.

The table has a name that no table of a source has in a folder, and that nobody gives one in a catalog. What a step left
half done is removed, too; only a process that is killed leaves its table.
"""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.documents import JobDocument, ProbeStep, Result
from airflow_provider_cdc.core.errors import CdcError, SinkError, Transient, first_line
from airflow_provider_cdc.core.faults import may_be_caught
from airflow_provider_cdc.core.lake.roots import located
from airflow_provider_cdc.core.model.status import ResultStatus
from spark_jobs.driver.task_runner import Runner, Secrets
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Choice, Commit
from spark_jobs.sinks.contract import Action, Sink, Stored, WriterRule
from spark_jobs.sinks.registry import open_sink
from spark_jobs.tasks.parking import as_cdc_error

_DENIED = re.compile(
    r"Forbidden|Unauthorized|Access ?Denied|[Pp]ermission|[Pp]rivilege|authorized|read-?only|\b40[13]\b"
)
RIGHTS = {
    "create": "let the login create databases and tables, and write files, below the root or namespace of the sink",
    "merge": "let the login read and write files and commit to tables of the sink",
    "remove": "let the login drop tables and delete files of the sink: maintain needs it",
}
"""What to do where a login lacks the right to a step."""
_ROWS = 10  # of which so few change that a merge may delete by position
_RULE = WriterRule(Choice("task", "a probe"), 0, 0)


def probe(job: JobDocument, secrets: Secrets, run: Runner) -> Result:
    """Probe the sink of a job."""
    result = Result(job.pipeline, job.seq, ResultStatus.DONE)
    sink, absent = open_sink(job, secrets), _absent_folders(job.sink_root)
    # names with a line in front are hidden, and source tables have none in paths; but not every catalog takes them
    front = "" if sink.names.names == "safe" else "_"
    location = located(job.sink_root, f"{front}cdc_probe_{uuid.uuid4().hex}/probe")
    table = _ProbedTable(sink, location, run)
    for name, step in (("create", table.create), ("merge", table.merge)):
        result.probed.append(_tried(name, step, location))
        if result.probed[-1].error is not None:
            break
    if table.opened is not None:
        result.probed.append(_tried("remove", table.remove, location))
    for folder in absent:
        with suppress(OSError):  # it is not empty: somebody else uses it
            os.rmdir(folder)
    return result


class _ProbedTable:
    """The table of one probe.

    :ivar opened: the location as it was before anything was made there.
    """

    def __init__(self, sink: Sink[Stored], location: str, run: Runner) -> None:
        self._sink, self._location, self._run = sink, location, run
        self._app = f"cdc/_probe/{uuid.uuid4().hex}/0"
        self._columns = TargetSchema((1, 2), pa.schema([("id", pa.int64()), ("value", pa.string())]), (1,))
        self.opened: Stored | None = None

    def create(self) -> None:
        """Make the table."""
        self.opened = self._sink.open(self._location)
        self._commit(self.opened, Action("create", self._mark(1), self._rows(*range(_ROWS))))
        self._demand(set(range(_ROWS)))

    def merge(self) -> None:
        """Replace a row, add one and remove one."""
        gone = pa.table({"id": pa.array([1], pa.int64())})
        action = Action("merge", self._mark(2), self._rows(0, _ROWS), gone, ["id"])
        self._commit(self._sink.open(self._location), action)
        self._demand({0, *range(2, _ROWS + 1)})

    def remove(self) -> None:
        """Remove the table, and what is left of it."""
        assert self.opened is not None
        self._sink.remove(self.opened)

    def _mark(self, seq: int) -> Commit:
        return Commit(self._app, seq, {"app": self._app, "seq": seq})

    def _rows(self, *ids: int) -> pa.Table:
        return pa.table({"id": ids, "value": [str(number) for number in ids]}, schema=self._columns.columns)

    def _commit(self, target: Stored, action: Action) -> None:
        """Commit as a batch does, by the task or by the driver."""
        action.columns = self._columns
        with tempfile.TemporaryDirectory(prefix="airflow-cdc-") as folder:
            stage = Storage(folder)
            version = self._sink.writer(_RULE, stage, "probe").commit(target, action)
            committer = self._sink.committer(None, stage, self._run) if version is None else None
            for problem in () if committer is None else committer.commit(["probe"], 1):
                if problem is not None:
                    raise problem

    def _demand(self, ids: set[int]) -> None:
        """Read the table.

        :raises SinkError: it has other rows.
        """
        if set(self._sink.open(self._location).rows().column("id").to_pylist()) != ids:
            text = "the table does not have the rows that were just committed"
            raise SinkError("sink.unreadable", text, where={"location": self._location})


def _tried(name: str, step: Callable[[], None], location: str) -> ProbeStep:
    """Take a step; an error says what to do."""
    try:
        step()
    except BaseException as error:
        if not may_be_caught(error):
            raise
        known = as_cdc_error(error, {"location": location})
        if known.__cause__ is not None and known.code == "sink.commit_conflict":
            known.message = f"the commit was refused: {first_line(known.__cause__)}"
        known.hint = _hint(name, known)
        if name == "remove":
            known.hint += f"; then remove {location} by hand"
        return ProbeStep(name, known.document())
    return ProbeStep(name)


def _hint(name: str, error: CdcError) -> str:
    if _DENIED.search(error.message):
        return RIGHTS[name]
    if error.code == "sink.commit_conflict":
        return "nobody else knows this table, so the catalog or the store refused the commit: see its log"
    if isinstance(error, Transient):
        return "check the address in the connection, the network and the disk, then try again"
    if error.code in ("sink.file_missing", "sink.unreadable"):  # whose hints are for tables with rows
        return "check the root or the warehouse of the sink, and what else writes there"
    return error.hint


def _absent_folders(root: str) -> list[str]:
    """Return the folders of a local root that are not there, the deepest first."""
    absent = []
    while root.startswith("/") and not os.path.exists(root):
        absent.append(root)
        root = os.path.dirname(root)
    return absent
