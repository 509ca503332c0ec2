# SPDX-License-Identifier: Apache-2.0
"""A Delta table by path, through delta-rs: what stands there, and how a commit of ours changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import (
    DeltaTable,
    QueryBuilder,
)
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from airflow_provider_cdc.core.apply.row_sets import each_known
from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.errors import REBUILD, CdcError, SinkError, UnavailableError, first_line
from airflow_provider_cdc.core.faults import may_be_caught
from airflow_provider_cdc.core.lake.store_kinds import lies_plainly
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Commit, Owner
from spark_jobs.sinks.contract import RowsMet, TableSize
from spark_jobs.sinks.delta.column_types import demand_names, demand_types
from spark_jobs.sinks.delta.commit_history import CommitHistory
from spark_jobs.sinks.delta.data_files import DataFiles
from spark_jobs.sinks.delta.deletion_vectors import FEATURE, deleted_rows
from spark_jobs.sinks.delta.file_statistics import bounded_columns
from spark_jobs.sinks.delta.key_merge import KeyMerge
from spark_jobs.sinks.delta.logged_files import added_bytes
from spark_jobs.sinks.delta.row_removal import RowRemoval
from spark_jobs.sinks.delta.sink_errors import Cause, cause_of, reading_error, writing_error
from spark_jobs.sinks.delta.stored_files import (
    LiveFiles,
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
from spark_jobs.sinks.sorted_rows import in_order

_PLAIN = frozenset(
    {"appendOnly", "invariants", "timestampNtz", FEATURE}
)  # features of tables whose files need nothing more


class DeltaLocation:
    """A Delta table by path, present or not.

    :ivar is_checked: the table is known to be ours to change; else each commit looks.
    """

    def __init__(self, location: str, options: dict[str, str], version: int | None = None) -> None:
        self.location = location
        self.options = options
        self._actions: pa.Table | None = None
        self.is_checked = False
        if not lies_plainly(location):
            raise SinkError(
                "sink.unreadable",
                "delta-rs finds no table of HDFS whose path has spaces or letters beyond ASCII",
                where={"location": location},
                hint="state `sink.names: safe`, or name the table by a rule of `target`",
            )
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
        return UnavailableError(
            "sink.unavailable",
            f"the table's store failed: {first_line(error)}",
            where={"location": self.location},
            hint="run again when the store answers",
        )

    @cached_property
    def storage(self) -> Storage:
        """The table's folder; of an object store one client for all that is done with the table."""
        return Storage(self.location, self.options)

    @property
    def exists(self) -> bool:
        """Return whether there is a Delta table."""
        return self._table is not None

    def holds_files(self) -> bool:
        """Return whether anything lies there."""
        return self.storage.holds_files("")

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

    @cached_property
    def deleted(self) -> dict[str, IntArray]:
        """Positions of the deleted rows of each data file that has some, by the file's name."""
        with self._reading():
            return deleted_rows(self.table)

    def has_deleted(self, path: str) -> bool:
        """Return whether rows of a data file are deleted."""
        return unquote(path).rsplit("/", 1)[-1] in self.deleted

    @property
    def live(self) -> LiveFiles:
        """The table's files, with the rows of them that are deleted."""
        return LiveFiles(self.actions, self.deleted)

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
        self.__dict__.pop("deleted", None)
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
        return DeltaLocation(self.location, self.options, version)

    @cached_property
    def _history(self) -> CommitHistory:
        return CommitHistory(self.table)

    def newest_app(self, *, of_anybody: bool = True) -> str | None:
        """Return the application of the newest commit that may have changed rows (``contract.Stored``)."""
        return self._history.newest_app(of_anybody=of_anybody)

    def newest_rows_version(self) -> int | None:
        """Return the version of the newest commit that may have changed rows, None where the log no longer has it."""
        return self._history.newest_rows_version()

    def facts(self, app: str) -> dict[str, Any] | None:
        """Return the facts of an application's newest commit, None where the log no longer has it."""
        return self._history.facts(app)

    def is_written_by(self, app: str) -> bool:
        """Return whether no other application of ours wrote after an application's newest commit."""
        return self._history.is_written_by(app)

    def foreign_commit(self, since: int, owner: Owner | None = None) -> str | None:
        """Return the operation of a commit after a version that may have changed rows and is not ours."""
        return self._history.foreign_commit(since, owner)

    def last_maintained(self, since: int) -> int:
        """Return the newest version up to which all commits after a version are known to leave the rows alone."""
        return self._history.last_maintained(since) if self.exists else since

    def holds_same(self, other: DeltaLocation) -> bool:
        """Return whether both stand on the same files under the same schema, whatever versions lie between."""
        same_files = set(self.table.file_uris()) == set(other.table.file_uris())
        if not same_files or self.table.schema() != other.table.schema() or self.deleted.keys() != other.deleted.keys():
            return False
        return all(np.array_equal(self.deleted[name], other.deleted[name]) for name in self.deleted)

    def is_empty(self) -> bool:
        """Return whether the table holds no file at all, read from its log alone."""
        return not self.table.file_uris()

    def size(self) -> TableSize:
        """Return what the table holds, read from its log alone."""
        if self._table is None:
            return TableSize(0, 0)
        counts = self.actions.column("num_records")
        rows = None if counts.null_count else (pc.sum(counts).as_py() or 0) - sum(map(len, self.deleted.values()))
        return TableSize(rows, self.file_bytes)

    def added_bytes(self) -> int:
        """Return the bytes of the data files that the version's commit added, read from its log alone."""
        return added_bytes(self.storage, self.table.version())

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
            for stored in all_files(self.live, first):
                with opened(self.storage, stored) as file:
                    yield from chosen_rows(file, None, schema)

    def _rows_with(self, keys: pa.Table, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows that may have one of some keys, from the files that may hold them."""
        for stored in files_with(self.live, keys):
            with opened(self.storage, stored) as file:
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

    def new_files(self, schema: pa.Schema, file_bytes: int | None = None, order: Sequence[str] = ()) -> DataFiles:
        """Return a writer of files for :meth:`TableCommits.commit_files`.

        :param file_bytes: size that ends a file, None for the usual one.
        :param order: columns in whose order rows are written.
        """
        demand_names(schema.names, self.location)
        return DataFiles(self.storage, schema, bounded_columns(schema.names, self.properties), file_bytes, order)

    def columns_of(self, file: AddAction, schema: pa.Schema) -> pa.Table:
        """Return some columns of a file that no commit names yet."""
        with self._reading(), opened(self.storage, added_file(file)) as stored:
            return read_columns(stored, schema)

    def written_as_one(
        self, stored: Sequence[StoredFile], file_bytes: int, order: Sequence[str] = ()
    ) -> list[AddAction]:
        """Write the rows of files as one, or more where they are larger than a size.

        :param order: columns in whose order rows are written, none for that in which they are.
        """
        schema = self.schema
        files = self.new_files(schema, file_bytes, order)
        try:
            with self._reading():
                for rows in in_order(self._rows_of(stored, schema), schema, order):
                    files.add(rows)
            with self.writing():
                return files.close()
        except BaseException:
            files.discard()
            raise

    def _rows_of(self, stored: Sequence[StoredFile], schema: pa.Schema) -> Iterator[pa.Table]:
        for each in stored:
            with opened(self.storage, each) as file:
                yield from chosen_rows(file, None, schema)

    def merge_into(self, files: DataFiles, met: RowsMet | None = None, *, on_read: bool = False) -> KeyMerge:
        """Return a merge that writes to files for :meth:`TableCommits.commit_files`.

        :param met: takes the stored rows that go.
        :param on_read: whether it deletes rows by their positions.
        """
        return KeyMerge(self.live, self.storage, files, self._reading, met, on_read=on_read)

    def removal(self, files: DataFiles | None = None) -> RowRemoval:
        """Return a removal of rows that writes to files, or only looks without them."""
        return RowRemoval(self.live, self.storage, files, self._reading)

    def files_holding(self, keys: pa.Table) -> list[StoredFile]:
        """Return the files that have rows of these keys: a merge writes them again."""
        result = []
        for file in files_with(self.live, keys):
            with self._reading(), opened(self.storage, file) as stored:
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
            raise writing_error(error, self.location, self.properties) from error

    @property
    def properties(self) -> dict[str, str | None]:
        """The table's properties; none for a table that is not there."""
        return {} if self._table is None else dict(self._table.metadata().configuration)
