# SPDX-License-Identifier: Apache-2.0
"""A Delta table by path, through delta-rs: what stands there, and how a commit of ours changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import (
    CommitProperties,
    DeltaTable,
    QueryBuilder,
    Schema,
    TableFeatures,
)
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from airflow_provider_cdc.core.apply.row_sets import each_known
from airflow_provider_cdc.core.errors import REBUILD, CdcError, SinkError, UnavailableError
from airflow_provider_cdc.core.faults import may_be_caught
from airflow_provider_cdc.core.json_documents import json_bytes
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Commit, Owner
from spark_jobs.sinks.delta.column_types import demand_names, demand_types
from spark_jobs.sinks.delta.commit_history import CommitHistory
from spark_jobs.sinks.delta.commit_marks import COMPACTION, custom_metadata, properties
from spark_jobs.sinks.delta.data_files import DataFiles
from spark_jobs.sinks.delta.file_statistics import bounded_columns
from spark_jobs.sinks.delta.key_merge import KeyMerge
from spark_jobs.sinks.delta.own_commits import checkpoint_is_due, first_commit, has_local_times, later_commit
from spark_jobs.sinks.delta.row_removal import RowRemoval
from spark_jobs.sinks.delta.sink_errors import Cause, cause_of, conflict, reading_error, refused, writing_error
from spark_jobs.sinks.delta.stored_files import (
    StoredFile,
    added_file,
    all_files,
    chosen_rows,
    files_with,
    holding,
    normal,
    opened,
    read_columns,
)
from spark_jobs.sinks.ownership import demand_ours

_PLAIN = frozenset({"appendOnly", "invariants", "timestampNtz"})  # features of tables whose files need nothing more


class DeltaLocation:
    """A Delta table by path, present or not.

    :ivar is_checked: the table is known to be ours to change; else each commit looks.
    """

    def __init__(self, location: str, options: dict[str, str], version: int | None = None) -> None:
        self.location = location
        self._options = options
        self._actions: pa.Table | None = None
        self.is_checked = False
        try:
            self._table: DeltaTable | None = DeltaTable(location, version=version, storage_options=options or None)
        except TableNotFoundError:
            self._table = None
        except (DeltaError, OSError) as error:
            if cause_of(error) in (Cause.PASSING, Cause.MISSING):
                raise self._unavailable(error) from error
            raise SinkError(
                "sink.unreadable",
                f"the table cannot be opened: {type(error).__name__}",
                where={"location": location, "version": version},
                hint="look at the location's _delta_log; a version may have been vacuumed",
            ) from error

    def _unavailable(self, error: Exception) -> UnavailableError:
        reason = (str(error).splitlines() or [""])[0][:300]
        return UnavailableError(
            "sink.unavailable",
            f"the table's store failed: {type(error).__name__}: {reason}",
            where={"location": self.location},
            hint="run again when the store answers",
        )

    @cached_property
    def _storage(self) -> Storage:
        """The table's folder; of an object store one client for all that is done with the table."""
        return Storage(self.location, self._options)

    @property
    def exists(self) -> bool:
        """Return whether there is a Delta table."""
        return self._table is not None

    def holds_files(self) -> bool:
        """Return whether anything lies there."""
        return self._storage.holds_files("")

    @property
    def version(self) -> int | None:
        """The table's newest version, None when there is no table."""
        return None if self._table is None else self._table.version()

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return pa.schema(self.table.schema().to_arrow())

    @property
    def table(self) -> DeltaTable:
        """The opened table."""
        if self._table is None:
            where = {"location": self.location}
            raise SinkError("sink.missing", "the table is gone", where=where, hint=f"restore it, or {REBUILD}")
        return self._table

    @property
    def actions(self) -> pa.Table:
        """The table's files, ``get_add_actions`` of delta-rs."""
        if self._actions is None:
            self._actions = pa.table(self.table.get_add_actions())
        return self._actions

    @property
    def file_bytes(self) -> int:
        """Bytes of the table's files."""
        return pc.sum(self.actions.column("size_bytes")).as_py() or 0

    def newest_version(self) -> int:
        """Return the newest version as it is now, 0 for a table that was just created."""
        if self._table is None:
            return 0
        self._actions = None
        self.__dict__.pop("_history", None)
        try:
            self._table.update_incremental()
        except (DeltaError, OSError) as error:  # our commit is made: the repeat of the batch finds it
            raise self._unavailable(error) from error
        newest: int = self._table.version()
        return newest

    def applied(self, app: str) -> int | None:
        """Return the newest batch that this application committed, None when it never did."""
        return None if self._table is None else self._table.transaction_version(app)

    def at_version(self, version: int) -> DeltaLocation:
        """Open another version of the table."""
        return DeltaLocation(self.location, self._options, version)

    @cached_property
    def _history(self) -> CommitHistory:
        return CommitHistory(self.table)

    def newest_app(self, *, of_anybody: bool = True) -> str | None:
        """Return the application of the newest commit that may have changed rows (``contract.Stored``)."""
        return self._history.newest_app(of_anybody=of_anybody)

    def facts(self, app: str) -> dict[str, Any] | None:
        """Return the facts of an application's newest commit, None where the log no longer has it."""
        return self._history.facts(app)

    def is_written_by(self, app: str) -> bool:
        """Return whether no other application of ours wrote after an application's newest commit."""
        return self._history.is_written_by(app)

    def foreign_commit(self, since: int, owner: Owner | None = None) -> str | None:
        """Return the operation of a commit after a version that may have changed rows and is not ours."""
        return self._history.foreign_commit(since, owner)

    def is_only_maintained(self, since: int) -> bool:
        """Return whether all commits after a version are known to leave the rows alone; False without a table."""
        return self.exists and self._history.is_only_maintained(since)

    def holds_same(self, other: DeltaLocation) -> bool:
        """Return whether both stand on the same files under the same schema, whatever versions lie between."""
        same_files = set(self.table.file_uris()) == set(other.table.file_uris())
        return same_files and self.table.schema() == other.table.schema()

    def is_empty(self) -> bool:
        """Return whether the table holds no file at all, read from its log alone."""
        return not self.table.file_uris()

    def rows(self, keys: pa.Table | None = None) -> pa.Table:
        """Return all rows, columns in the table's order; with keys only those that may have one of them."""
        table = self.table
        schema = self.schema
        with self._reading():
            if keys is not None and self.takes_files:
                return pa.concat_tables([schema.empty_table(), *self._rows_with(keys, schema)])
            reader = QueryBuilder().register("t", table).execute("SELECT * FROM t")
            if keys is None:
                return normal(pa.table(reader.read_all()), schema)
            batches = (normal(pa.table(batch), schema) for batch in reader)
            return pa.concat_tables(
                [schema.empty_table(), *(rows.filter(pa.array(each_known(rows, keys))) for rows in batches)]
            )

    def pieces(self, first: str | None = None) -> Iterator[pa.Table]:
        """Yield all rows, columns in the table's order, some at a time.

        :param first: column in whose order the files are read.
        """
        table = self.table
        schema = self.schema
        with self._reading():
            if not self.takes_files:
                for batch in QueryBuilder().register("t", table).execute("SELECT * FROM t"):
                    yield normal(pa.table(batch), schema)
                return
            for stored in all_files(self.actions, first):
                with opened(self._storage, stored) as file:
                    yield from chosen_rows(file, None, schema)

    def _rows_with(self, keys: pa.Table, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows that may have one of some keys, from the files that may hold them."""
        for stored in files_with(self.actions, keys):
            with opened(self._storage, stored) as file:
                names = pa.schema([schema.field(name) for name in keys.column_names])
                known = each_known(read_columns(file, names), keys)
                if known.any():
                    yield from chosen_rows(file, known, schema)

    @property
    def takes_files(self) -> bool:
        """Return whether files can be added and removed as they are: nothing is stored of their rows next to them."""
        protocol, metadata = self.table.protocol(), self.table.metadata()
        features = set(protocol.writer_features or ()) | set(protocol.reader_features or ())
        known = protocol.min_writer_version <= 2 or (protocol.min_writer_version == 7 and features <= _PLAIN)
        return known and not metadata.partition_columns

    def lacks_columns(self, schema: pa.Schema) -> int:
        """Return how many columns of a schema the table lacks."""
        return len(set(schema.names).difference(field.name for field in self.table.schema().fields))

    def demand_types(self, schema: pa.Schema) -> None:
        """Demand that rows of a schema may be added to the table, if there is one.

        :raises SinkError: ``sink.types_differ``.
        """
        if self._table is not None:
            demand_types(self._table.schema(), schema, self.location)

    def new_files(self, schema: pa.Schema, file_bytes: int | None = None) -> DataFiles:
        """Return a writer of files for :meth:`commit_files`.

        :param file_bytes: size that ends a file, None for the usual one.
        """
        demand_names(schema.names, self.location)
        return DataFiles(self._storage, schema, bounded_columns(schema.names, self._properties), file_bytes)

    def columns_of(self, file: AddAction, schema: pa.Schema) -> pa.Table:
        """Return some columns of a file that no commit names yet."""
        with self._reading(), opened(self._storage, added_file(file)) as stored:
            return read_columns(stored, schema)

    def commit_files(
        self, schema: pa.Schema, added: list[AddAction], removed: list[RemoveAction], mode: str, commit: Commit
    ) -> None:
        """Commit files that were written; creates the table where there is none.

        :param mode: ``error`` for a new table, ``append``, or ``overwrite``: all other files go.
        :raises SinkError: files of other types would stand next to those that stay.
        """
        if self._table is None:
            self.guarded(lambda: self._create(schema, added, commit))
            return
        if mode == "error":
            raise conflict(self.location)
        self.demand_ours(commit)
        if mode != "overwrite":
            self.demand_types(schema)
        if (self._properties.get("delta.appendOnly") or "").lower() == "true" and (removed or mode == "overwrite"):
            raise refused("it may only be appended to", self.location, self._properties)
        if (mode == "append" and self.lacks_columns(schema)) or (has_local_times(schema) and not self._has_local_times):
            self.guarded(lambda: self._change(schema, added, removed, mode, commit))
            return
        self.guarded(lambda: self._commit(schema, added, removed, mode, commit))

    def _commit(
        self, schema: pa.Schema, added: list[AddAction], removed: list[RemoveAction], mode: str, commit: Commit
    ) -> None:
        """Commit by delta-rs."""
        columns = Schema.from_arrow(schema) if mode == "overwrite" else self.table.schema()
        self.table.create_write_transaction([*added, *removed], mode, columns, commit_properties=properties(commit))

    def _change(
        self, schema: pa.Schema, added: list[AddAction], removed: list[RemoveAction], mode: str, commit: Commit
    ) -> None:
        """Commit what gives the table other columns or features, in one commit where the store allows it."""
        if not self.creates_itself:
            if has_local_times(schema) and not self._has_local_times:
                self.table.alter.add_feature(
                    TableFeatures.TimestampWithoutTimezone,
                    allow_protocol_versions_increase=True,
                    commit_properties=CommitProperties(max_commit_retries=0),
                )
            self._commit(schema, added, removed, mode, commit)
            return
        if mode == "overwrite":
            removed = [file.removal() for file in all_files(self.actions, None)]
        mine = (custom_metadata(commit), commit.app, commit.seq)
        self._create_commit(*later_commit(self.table, schema, (added, removed), *mine))

    @property
    def _has_local_times(self) -> bool:
        return "timestampNtz" in (self.table.protocol().writer_features or ())

    @property
    def creates_itself(self) -> bool:
        """Return whether a commit can be written without delta-rs: the store lets one writer create a file."""
        return self._storage.creates_files

    def _create(self, schema: pa.Schema, added: list[AddAction], commit: Commit) -> None:
        if self.creates_itself:
            self._create_commit(*first_commit(schema, added, custom_metadata(commit), commit.app, commit.seq))
            return
        create_table_with_add_actions(
            self.location,
            Schema.from_arrow(schema),
            added,
            "error",
            storage_options=self._options or None,
            commit_properties=properties(commit),
        )

    def _create_commit(self, name: str, content: bytes) -> None:
        if not self._storage.create(name, content, durable=False):  # as delta-rs; the rows' files do not wait either
            raise conflict(self.location)

    def write_due_checkpoint(self, version: int) -> None:
        """Write a checkpoint of the log if a commit of ours made the version of one: opening reads what came since.

        A process that dies before it, or a store that fails, leaves the table as it is: the next one is ten commits
        away. Two writers write the same.
        """
        if not checkpoint_is_due(version, self._properties):
            return
        with suppress(UnavailableError, SinkError), self.writing():
            self.newest_version()
            self.table.create_checkpoint()

    def written_as_one(self, stored: Sequence[StoredFile], file_bytes: int) -> list[AddAction]:
        """Write the rows of files as one, or more where they are larger than a size; for :meth:`replace_files`."""
        schema = self.schema
        files = self.new_files(schema, file_bytes)
        try:
            for each in stored:
                with self._reading(), opened(self._storage, each) as file:
                    for rows in chosen_rows(file, None, schema):
                        files.add(rows)
            with self.writing():
                return files.close()
        except BaseException:
            files.discard()
            raise

    def replace_files(self, added: list[AddAction], removed: list[RemoveAction]) -> None:
        """Commit files with the rows of others, in whose place they come; what others committed meanwhile may stay."""
        actions = [*(replace(file, data_change=False) for file in added), *removed]
        marks = CommitProperties(custom_metadata={"cdc": json_bytes(COMPACTION).decode()})
        self.guarded(
            lambda: self.table.create_write_transaction(actions, "append", self.table.schema(), commit_properties=marks)
        )

    def merge_into(self, files: DataFiles) -> KeyMerge:
        """Return a merge that writes to files for :meth:`commit_files`."""
        return KeyMerge(self.actions, self._storage, files, self._reading)

    def removal(self, files: DataFiles | None = None) -> RowRemoval:
        """Return a removal of rows that writes to files for :meth:`commit_files`, or only looks without them."""
        return RowRemoval(self.actions, self._storage, files, self._reading)

    def files_holding(self, keys: pa.Table) -> list[StoredFile]:
        """Return the files that have rows of these keys: a merge writes them again."""
        result = []
        for file in files_with(self.actions, keys):
            with self._reading(), opened(self._storage, file) as stored:
                if holding(stored, keys.take(pa.array(file.keys))).any():
                    result.append(file)
        return result

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what delta-rs raises in the block into errors that name the table.

        :raises SinkError: rows cannot be read, now or later.
        :raises UnavailableError: the store failed.
        """
        try:
            yield
        except BaseException as error:
            if not may_be_caught(error) or isinstance(error, (CdcError, MemoryError)):
                raise
            raise reading_error(error, self.location, self.version) from error

    def demand_ours(self, commit: Commit) -> None:
        """Refuse to commit for a pipeline to a table of somebody else."""
        if self.exists and not self.is_checked and commit.app.startswith("cdc/"):
            demand_ours(self, Owner.of(commit.app))

    def guarded(self, action: Callable[[], Any]) -> None:
        """Make a commit; nothing of it is visible where this raises."""
        with self.writing():
            action()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn what goes wrong while the block writes files or commits into errors that name the table.

        :raises SinkError: it will not go through, now or later.
        :raises UnavailableError: the store failed, or somebody else committed.
        """
        try:
            yield
        except BaseException as error:
            if not may_be_caught(error) or isinstance(error, (CdcError, MemoryError)):
                raise
            raise writing_error(error, self.location, self._properties) from error

    @property
    def _properties(self) -> dict[str, str | None]:
        """The table's properties; none for a table that is not there."""
        return {} if self._table is None else dict(self._table.metadata().configuration)
