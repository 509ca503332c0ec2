# SPDX-License-Identifier: Apache-2.0
"""Divide a merge that is too large for one task: tasks let rows of some files each go, the driver makes the one commit.

The task that has the keys of all changes writes the new rows and stages the keys. Nothing is visible before the
commit, which goes onto the version that this task read, with the same marks as any other.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile
from pyiceberg.table.snapshots import Operation

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.model.table_comments import TableComments
from airflow_provider_cdc.core.plain_data import from_plain, to_plain
from airflow_provider_cdc.core.sizes import files_text, size_text
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Choice, Commit
from spark_jobs.sinks.contract import Action, Runner, WriterRule
from spark_jobs.sinks.iceberg.batch_commit import BatchCommit, Stage
from spark_jobs.sinks.iceberg.catalogs import reaching
from spark_jobs.sinks.iceberg.committing import TableCommit, conflict
from spark_jobs.sinks.iceberg.live_files import LiveFile
from spark_jobs.sinks.iceberg.new_files import document_of, file_of
from spark_jobs.sinks.iceberg.row_removal import RowRemoval, Writes
from spark_jobs.sinks.iceberg.snapshots import FileChange
from spark_jobs.sinks.iceberg.table import IcebergTable, open_table

if TYPE_CHECKING:
    from pyspark import SparkContext

_FILE = "merge.json"
_PARTS_EACH = 3  # for each task that runs at a time: some take longer than others


@dataclass(frozen=True, slots=True)
class MergeStage:
    """Takes the merges of one table that tasks are to share.

    :param folder: of the lake.
    """

    rule: WriterRule
    storage: Storage
    folder: str

    def choose(self, target: IcebergTable, touched: Sequence[LiveFile] | None) -> Choice:
        """Return who carries out a commit.

        :param touched: files that a merge may touch, None for other commits.
        """
        rule = self.rule
        if rule.settled is not None and (rule.settled.writer == "task" or touched is not None):
            return rule.settled
        if touched is None:
            return Choice("task", "only a merge is divided among tasks")
        size = sum(file.file.file_size_in_bytes for file in touched)
        count = f"{len(touched)} of {files_text(len(target.files()), size)}"
        what = f"the merge touches {count}; policy.spark_writer_bytes is {size_text(rule.limit)}"
        if size > rule.limit and rule.obstacle:
            return Choice("task", f"{what}, but {rule.obstacle}")
        return Choice("spark" if size > rule.limit else "task", what)

    def put(
        self, target: IcebergTable, action: Action, commit: TableCommit, added: Sequence[DataFile], keys: pa.Table
    ) -> None:
        """Take a merge; its document appears last, so a half staged merge is none.

        :param added: files with its rows, which nobody sees yet.
        :param keys: of all stored rows that go.
        """
        # a name of its own per attempt: Spark may run a task twice at a time
        name = f"{self.folder}/keys-{uuid.uuid4().hex}.parquet"
        with self.storage.access(name), self.storage.open_new(name) as stream:
            pq.write_table(keys, stream, compression="lz4")
        document = {
            "location": target.location,
            "base": _base(target, commit),
            "commit": asdict(action.commit),
            "columns": None if action.columns is None else _columns_document(action.columns),
            "added": [document_of(file) for file in added],
            "keys": name,
        }
        self.storage.write_json(f"{self.folder}/{_FILE}", document)


def _base(target: IcebergTable, commit: TableCommit) -> list[Any]:
    """Return what a merge stands on: the table, its snapshot and spec, and the fields and spec that it has then."""
    metadata, snapshot = target.table.metadata, None if target.snapshot is None else target.snapshot.snapshot_id
    spec_ids = [metadata.default_spec_id, commit.spec.spec_id]
    return [str(metadata.table_uuid), snapshot, spec_ids, list(commit.fields.fields)]


def _columns_document(columns: TargetSchema) -> dict[str, Any]:
    schema = base64.b64encode(columns.columns.serialize().to_pybytes()).decode()
    layout = to_plain(columns.layout)
    said = to_plain(columns.comments)
    return {"ids": list(columns.ids), "schema": schema, "key": list(columns.key), "layout": layout, "comments": said}


def _columns_of(document: Mapping[str, Any] | None) -> TargetSchema | None:
    if document is None:
        return None
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(document["schema"])))
    layout = from_plain(TableLayout, document["layout"])
    comments = from_plain(TableComments, document["comments"])
    return TargetSchema(tuple(document["ids"]), schema, tuple(document["key"]), layout, comments)


@dataclass(frozen=True, slots=True)
class MergePart:
    """Some files of a table, from which one task lets rows go.

    :param options: of the sink, secrets included.
    :param lake: root of the lake; its store's options follow.
    :param merge: the staged document.
    """

    options: Mapping[str, str]
    lake: str
    lake_options: dict[str, str]
    writes: Writes
    merge: Mapping[str, Any]
    files: Sequence[LiveFile]


def let_go(part: MergePart) -> FileChange | CdcError:
    """Let the rows of a merge's keys go from some files; return what the commit has to say of it, or what failed."""
    try:
        target, commit = _opened(part.options, part.merge)
        change = FileChange()
        files = commit.new_files()
        removal = RowRemoval(target, commit, files, change, part.writes)
        try:
            keys = _keys(Storage(part.lake, part.lake_options), part.merge)
            removal.let_keys_go(removal.files_with(keys, part.files), keys)
            with reaching(target.where):
                change.added += files.close()
        except BaseException:
            files.discard()
            raise
    except CdcError as error:
        return error
    return change


def _opened(options: Mapping[str, str], merge: Mapping[str, Any]) -> tuple[IcebergTable, TableCommit]:
    """Open the table of a merge.

    :raises UnavailableError: ``sink.commit_conflict``, it is no longer what the merge stands on.
    """
    target = open_table(options, merge["location"])
    if not target.exists:
        raise conflict(target)
    commit = TableCommit(target, _columns_of(merge["columns"]), Commit(**merge["commit"]))
    if _base(target, commit) != merge["base"]:
        raise conflict(target)
    return target, commit


def _keys(storage: Storage, merge: Mapping[str, Any]) -> pa.Table:
    with storage.open_file(merge["keys"]) as file:
        return pq.read_table(file)


def _portions(files: Sequence[LiveFile], size: float) -> Iterator[list[LiveFile]]:
    """Yield neighbouring files that have a size together; small ones among them become one where they are rewritten."""
    some: list[LiveFile] = []
    held = 0
    for file in files:
        some.append(LiveFile(file.file, file.deletes))  # without the numbers of its keys
        held += file.file.file_size_in_bytes
        if held >= size:
            yield some
            some, held = [], 0
    if some:
        yield some


class TaskSharing:
    """Say when tasks share merges (``driver_side.SparkSide``): that takes no session of Spark's."""

    def settings(self, job: JobDocument) -> dict[str, str]:
        """Return that Spark needs none."""
        return {}

    def demand_libraries(self, job: JobDocument, context: SparkContext) -> None:
        """Demand nothing: pyiceberg writes."""

    def can_name(self, columns: Sequence[str]) -> bool:
        """Return that all names can be written."""
        return True

    def obstacle(self, job: JobDocument, *, asked: bool) -> str:
        """Return why tasks share no merges of a batch."""
        return "" if job.parallelism > 1 else "the batch runs one task at a time"


class SharedMerges:
    """Carries out on the driver what tasks staged (``driver_side.StagedCommits``).

    :param run: hands out tasks.
    :param at_once: makes all commits of the batch, None where each table has its own.
    """

    def __init__(
        self, options: Mapping[str, str], writes: Writes, storage: Storage, run: Runner, at_once: BatchCommit | None
    ) -> None:
        self._options, self._writes, self._storage = options, writes, storage
        self._run, self._at_once = run, at_once
        self.together = at_once is not None

    def commit(self, folders: Sequence[str], parallelism: int) -> list[Exception | None]:
        """Carry out the merges, parts of all of them in tasks, then commit each, or all of the batch at once."""
        problems: dict[str, Exception | None] = dict.fromkeys(folders)
        documents = {folder: self._storage.read_json(f"{folder}/{_FILE}") for folder in folders}
        merges = {folder: merge for folder, merge in documents.items() if merge is not None}
        parts: list[tuple[str, MergePart]] = []
        for folder, merge in merges.items():
            try:
                parts += [(folder, part) for part in self._parts(merge, parallelism)]
            except CdcError as error:
                problems[folder] = error
        changes = {folder: FileChange([file_of(one) for one in merge["added"]]) for folder, merge in merges.items()}
        answers = self._run(let_go, [part for _, part in parts]) if parts else []
        for (folder, _), answer in zip(parts, answers, strict=True):
            if isinstance(answer, CdcError):
                problems[folder] = answer
            else:
                changes[folder].include(answer)
        for folder in (folder for folder in merges if problems[folder] is None):
            try:
                self._commit(folder, merges[folder], changes[folder])
            except CdcError as error:
                problems[folder] = error
        if self._at_once is not None:
            whole = [folder for folder in folders if problems[folder] is None]
            problems.update(zip(whole, self._at_once.commit(whole, parallelism), strict=True))
        return [problems[folder] for folder in folders]

    def _parts(self, merge: Mapping[str, Any], parallelism: int) -> Iterator[MergePart]:
        target, commit = _opened(self._options, merge)
        files = commit.new_files()
        touched = RowRemoval(target, commit, files, FileChange(), self._writes).files_with(_keys(self._storage, merge))
        size = sum(file.file.file_size_in_bytes for file in touched)
        for some in _portions(touched, size / (_PARTS_EACH * max(1, parallelism))):
            yield MergePart(self._options, self._storage.root, self._storage.options, self._writes, merge, some)

    def _commit(self, folder: str, merge: Mapping[str, Any], change: FileChange) -> None:
        _, commit = _opened(self._options, merge)
        if self._at_once is None:
            commit.make(change, Operation.OVERWRITE)
        else:
            Stage(self._storage, folder).put(commit.prepare(change, Operation.OVERWRITE))
