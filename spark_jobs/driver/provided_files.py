# SPDX-License-Identifier: Apache-2.0
"""Take over a table's rows from files that an operator provides, with the position of the source's log they begin at.

The files hold every change up to a source time, and maybe later ones. All changes of the log from the last one before
that time on go onto them again: with a key the newest change of each row wins, so what the files hold already counts
once.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_cdc.core.apply.target_schema import target_schema
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import DataError, SinkError, UnavailableError
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.lake.roots import located
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.source_times import is_dated_before
from spark_jobs.driver.table_groups import TableGroups
from spark_jobs.lake.layout import provided_folder
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.registry import open_own_tables
from spark_jobs.tasks.table_task import Span

_SECOND = 1_000_000  # microseconds


@dataclass(frozen=True, slots=True)
class ProvidedFiles:
    """Files that an operator provides for one table.

    :param path: Delta table, folder of parquet files, or parquet file.
    :param since: source time in microseconds since the epoch; the files hold every change before it.
    """

    job: JobDocument
    storage: Storage
    timeline: TableTimeline
    path: str
    since: int

    def taken_over(self, groups: TableGroups, history: History, known: TableState | None) -> TableState:
        """Copy the rows into the lake and return the state of the copy, which the table can be resolved from.

        :param known: state of the table; its own copy stays.
        :raises DataError: ``rebuild.no_position``, ``rebuild.no_key``, ``rebuild.files_missing``,
            ``rebuild.files_unfit``.
        """
        timeline, job = self.timeline, self.job
        if open_format(job.format, job.format_options).order != "exact":
            raise DataError(
                "rebuild.no_position",
                f"the format {job.format} has no positions, so it is not known which changes come after the files",
                where=self._where(),
                hint="TRUNCATE the table and load it again, or take a full snapshot",
            )
        position = self._position(groups, history)
        version = timeline.version_at(position)
        if any(not later.schema.key for later in timeline.versions[version:]):
            raise DataError(
                "rebuild.no_key",
                "a table that has or had no key since then cannot be rebuilt from files: changes that the files hold "
                "already would count twice",
                where=self._where(),
                hint="TRUNCATE the table and load it again, or take a full snapshot",
            )
        schema = timeline.versions[version].schema
        later = history.since(position)
        before = later[0] - 1 if later else (history.earlier[-1] if history.earlier else 0)
        state = TableState(timeline.table_id, *timeline.last_name, self._copied(schema, before, known), 0, before)
        state.applied_position = state.snapshot_position = position
        state.schema, state.timeline_mark = schema.document(), timeline.mark(position)
        state.provided = {"path": self.path, "since": self.since}
        return state

    def _where(self, **more: Any) -> dict[str, Any]:
        return {"table": str(self.timeline.last_name), "path": self.path, **more}

    def _position(self, groups: TableGroups, history: History) -> str:
        """Return the position of the table's last change before all that are of the time or later, empty without one.

        An older one would be right too.
        """
        events = {position for position, _ in self.timeline.events()}
        positions = _Positions(self.since)
        for change in self.job.schema_changes:
            if change["position"] in events and change["time"] is not None:
                positions.add(pa.array([change["position"]], pa.string()), pa.array([change["time"]], pa.int64()))
        recent, has_rows = set(history.since_source_time(self.since // _SECOND * _SECOND)), False
        for seq in reversed(history.earlier):
            for span in groups.spans_of(self.timeline, [seq]):
                has_rows = True
                for group in span.groups:
                    inside = group.min_position >= span.start and (span.end is None or group.max_position < span.end)
                    if (
                        inside
                        and group.max_source_time is not None
                        and is_dated_before(group.max_source_time, self.since)
                    ):
                        positions.early.append(group.max_position)  # its rows may be removed by now
                        continue
                    rows = _inside(history.rows([group], ["position", "source_time"]), span)
                    positions.add(
                        rows.column("position").cast(pa.string()), rows.column("source_time").cast(pa.int64())
                    )
            if has_rows and seq not in recent:
                break
        return positions.last_before()

    def _copied(self, schema: TableSchema, before: int, known: TableState | None) -> str:
        """Copy the rows, once they are checked, into a folder of their own; return its place in the lake.

        :param before: newest batch of which the log's changes are not needed: the number of the copy's commit.
        """
        job, table_id = self.job, self.timeline.table_id
        policy = job.tables.policy(str(self.timeline.last_name), job.policy)
        target = target_schema(schema, TypeOptions.of(policy)).columns
        folder = provided_folder(job.pipeline, table_id)
        stays = {"" if known is None or known.provided is None else known.provided["location"]}
        for old in self.storage.folders(folder):
            if f"{folder}/{old}" not in stays:
                self.storage.delete_folder(f"{folder}/{old}")  # no rewind goes to a state before a rebuild
        copy = f"{folder}/{uuid.uuid4().hex}"
        sink = open_own_tables(self.storage.options)
        commit = Commit(f"cdc/{job.pipeline}/{table_id}/0", before, {"path": self.path})
        action = Action("create", commit, target.empty_table(), remaining=self._fitting(schema, target))
        try:
            sink.task_writer().commit(sink.open(located(self.storage.root, copy)), action)
        except DataError:  # nothing names the files
            self.storage.delete_folder(copy)
            raise
        return copy

    def _fitting(self, schema: TableSchema, target: pa.Schema) -> Iterator[pa.Table]:
        """Yield the files' rows; in the end they are exactly a table of the schema.

        :raises DataError: ``rebuild.files_unfit``.
        """
        demanded = [column.name for column in schema.columns if not column.nullable]
        key = [column.name for column in schema.key_columns]
        keys, row = [target.empty_table().select(key)], 0
        for piece in self._pieces():
            self._check_columns(piece.schema, target)
            for name in dict.fromkeys([*key, *demanded]):
                if piece.column(name).null_count:
                    index = pc.index(piece.column(name).is_null(), True).as_py()
                    raise self._unfit(f"column {name!r} is NOT NULL or of the key, and has a NULL", name, row + index)
            rows = self._logged(piece.select(target.names).cast(target))
            keys.append(rows.select(key))
            row += rows.num_rows
            yield rows
        every = pa.concat_tables(keys)
        every = every.append_column("", pa.array(range(every.num_rows), pa.int64()))
        seen = every.group_by(key).aggregate([("", "count"), ("", "max")])
        twice = pc.min(seen.column("_max").filter(pc.greater(seen.column("_count"), 1))).as_py()
        if twice is not None:
            raise self._unfit("two rows have the same key", ", ".join(key), twice)

    def _logged(self, rows: pa.Table) -> pa.Table:
        """Return rows without the values that rules keep out of the lake."""
        for number, column in enumerate(rows.schema):
            if self.timeline.leaves_out(column.name):
                rows = rows.set_column(number, column, pa.nulls(rows.num_rows, column.type))
        return rows

    def _check_columns(self, stated: pa.Schema, target: pa.Schema) -> None:
        if len(set(stated.names)) < len(stated.names):
            raise self._unfit("two columns have the same name")
        missing, unknown = set(target.names) - set(stated.names), set(stated.names) - set(target.names)
        if missing or unknown:
            names = [f"lack {name!r}" for name in sorted(missing)] + [f"have {name!r}" for name in sorted(unknown)]
            raise self._unfit(f"the table's columns were others at that time: the files {', '.join(names)}")
        for column in target:
            kind = _plain(stated.field(column.name).type)
            if kind != column.type:
                raise self._unfit(f"column {column.name!r} is {kind}, not {column.type}", column.name)

    def _unfit(self, text: str, column: str | None = None, row: int | None = None) -> DataError:
        where = {"column": column, "row": None if row is None else row + 1}
        return DataError(
            "rebuild.files_unfit",
            text,
            where=self._where(**{name: value for name, value in where.items() if value is not None}),
            hint="the files need the columns, types and keys that the table had at --since; nothing was changed",
        )

    def _pieces(self) -> Iterator[pa.Table]:
        """Yield the files' rows, some at a time, at least one piece.

        :raises DataError: ``rebuild.files_missing``.
        """
        options = self.storage.options
        try:
            parent, _, name = self.path.rpartition("/")
            store = Storage(parent, options)
            below = store.names(name)
            if below and (stored := open_own_tables(options).open(self.path)).exists:
                yield stored.schema.empty_table()
                yield from stored.pieces()
                return
            hidden = ("_", ".")  # as Spark and Hadoop name other files than data
            files = [f"{name}/{file}" for file in below if not any(part[0] in hidden for part in file.split("/"))]
            if below and not files:
                raise FileNotFoundError(self.path)
            for file in files or [name]:  # each with its own columns
                yield from self._pieces_of(store, file)
        except (OSError, pa.ArrowInvalid, SinkError, UnavailableError) as error:
            raise DataError(
                "rebuild.files_missing",
                f"no table and no parquet file can be read there: {type(error).__name__}",
                where=self._where(),
                hint="state --from with change_log, snapshot, or a path that the engine's driver can read",
            ) from error

    @staticmethod
    def _pieces_of(store: Storage, name: str) -> Iterator[pa.Table]:
        # Spark writes times as INT96, which would be nanoseconds: too few years
        with store.opened(name) as stream, pq.ParquetFile(stream, coerce_int96_timestamp_unit="us") as parquet:
            yield parquet.schema_arrow.empty_table()
            yield from (pa.Table.from_batches([batch]) for batch in parquet.iter_batches())


@dataclass(slots=True)
class _Positions:
    """Positions of changes before a source time, and of those at that time or later."""

    since: int
    early: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    def add(self, positions: pa.ChunkedArray | pa.Array, times: pa.ChunkedArray | pa.Array) -> None:
        """Take positions with their times; those without a time count as late."""
        before = pa.array(
            [time is not None and is_dated_before(time, self.since) for time in times.to_pylist()], pa.bool_()
        )
        for known, mask in ((self.early, before), (self.late, pc.invert(before))):
            some = positions.filter(mask)
            if len(some):
                known += [pc.min(some).as_py()] if known is self.late else some.to_pylist()

    def last_before(self) -> str:
        """Return the last early position before all late ones, empty without one."""
        first = min(self.late, default=None)
        return max((position for position in self.early if first is None or position < first), default="")


def _inside(rows: pa.Table, span: Span) -> pa.Table:
    rows = rows.filter(pc.greater_equal(rows.column("position"), span.start))
    return rows if span.end is None else rows.filter(pc.less(rows.column("position"), span.end))


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type without the reader's own flavours (views, large types, dictionaries)."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind
