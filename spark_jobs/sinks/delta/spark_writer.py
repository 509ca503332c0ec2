# SPDX-License-Identifier: Apache-2.0
"""The Spark writer: tasks stage typed parquet, the driver commits it through Delta's own Spark library."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.errors import CdcError, UnavailableError
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Choice, Commit, Owner
from spark_jobs.sinks.contract import Action, WrittenRows
from spark_jobs.sinks.delta.sink_errors import spark_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.sinks.delta.table import DeltaLocation

ACTION = "action.json"
_AT_A_TIME = 4  # commits
# Spark refuses to write columns with these in their names unless the table maps columns, which not every reader knows
_REFUSED = frozenset(" ,;{}()\n\t=")


def can_name(columns: Sequence[str]) -> bool:
    """Return whether Spark writes columns of these names into a plain table."""
    return not any(_REFUSED.intersection(name) for name in columns)


def quoted(name: str) -> str:
    """Return an identifier from outside for use in Spark SQL: the one place that quotes."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: str | int) -> str:
    """Return a value from outside as a literal of Spark SQL."""
    if isinstance(value, int):
        return f"CAST('{value}' AS BIGINT)"
    return f"CAST(X'{value.encode().hex()}' AS STRING)"


class KeyRanges:
    """Least and greatest value of each key column, of types whose bounds every writer of a table states rightly.

    delta-rs cuts times to milliseconds and states large decimals as smaller ones.
    """

    def __init__(self, key: Sequence[str]) -> None:
        self._bounds: dict[str, list[tuple[Any, Any]]] = {name: [] for name in key}

    def add(self, rows: pa.Table) -> None:
        """Widen the ranges to keys."""
        for name in self._bounds:
            extremes = pc.min_max(rows.column(name)).as_py() if _has_range(rows.schema.field(name).type) else None
            if extremes is not None and extremes["min"] is not None:
                self._bounds[name].append((extremes["min"], extremes["max"]))

    def add_document(self, ranges: Mapping[str, Sequence[Any]]) -> None:
        """Widen the ranges to those of other keys, as :meth:`document` returns them."""
        for name, (low, high) in ranges.items():
            self._bounds.setdefault(name, []).append((low, high))

    def document(self) -> dict[str, list[str | int]]:
        """Return the ranges as plain JSON data."""
        return {
            name: [min(low for low, _ in bounds), max(high for _, high in bounds)]
            for name, bounds in self._bounds.items()
            if bounds
        }


def _distinct(deletes: DataFrame, rows: DataFrame) -> DataFrame:
    """Return keys to remove that differ from each other and from those of rows as MERGE compares: -0.0 equals 0.0."""
    if not any(kind in ("float", "double") for _, kind in deletes.dtypes):
        return deletes
    return deletes.dropDuplicates().join(rows.select(*map(quoted, deletes.columns)), deletes.columns, "left_anti")


def _has_range(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind))


class StageWriter:
    """The half that runs in a task: writes rows and what to do with them into a folder."""

    choice: Choice | None = None

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage, self._folder = storage, folder

    def commit(self, target: DeltaLocation, action: Action) -> int | None:
        """Leave the action for :class:`SparkWriter`; its document appears last, so a half staged table is none."""
        target.demand_ours(action.commit)
        if action.verb in ("append", "merge"):
            target.demand_types(action.rows.schema)
        ranges = KeyRanges(action.key)
        for part in action.parts:
            ranges.add_document(part.ranges)
        deletes = action.deletes if action.deletes is not None else action.rows.schema.empty_table()
        added = [file for part in action.parts for file in part.added]
        for file in added:
            ranges.add(target.columns_of(file, action.rows.select(action.key).schema))
        rows = [name for part in action.parts for name in part.staged]
        if not rows and not added:  # Spark reads the columns from a file, also where there are no rows
            rows = [self._staged("rows", action.rows.schema, action.pieces(), ranges)]
        document = {
            "location": target.location,
            "version": target.version,
            "verb": action.verb,
            "key": list(action.key),
            "commit": asdict(action.commit),
            "columns": action.rows.column_names,
            "rows": rows,
            "added": [file.path for file in added],
            "deletes": [self._staged("deletes", deletes.schema, [deletes], ranges)],
            "ranges": ranges.document(),
        }
        self._storage.write_json(f"{self._folder}/{ACTION}", document)
        return None

    def may_need_spark(self, target: DeltaLocation) -> bool:
        """Return that each merge is Spark's."""
        return True

    def evolves(self, target: DeltaLocation, old: TargetSchema, new: TargetSchema, *, merges: bool) -> bool:
        """Return that each change of columns is an overwrite."""
        return False

    def subtracts(self, target: DeltaLocation) -> bool:
        """Return that a table without key whose rows go is written again."""
        return False

    def takes_parts(self, target: DeltaLocation, columns: TargetSchema) -> bool:
        """Return that Spark reads the files of any number of tasks."""
        return True

    def row_files(self, target: DeltaLocation, columns: TargetSchema) -> StagedFile:
        """Return what writes a file of the folder."""
        return StagedFile(self._storage, self._folder, "rows", columns.columns, KeyRanges(columns.key_names))

    def _staged(self, kind: str, schema: pa.Schema, pieces: Iterable[pa.Table], ranges: KeyRanges) -> str:
        """Write rows; return the name of the file."""
        file = StagedFile(self._storage, self._folder, kind, schema, ranges)
        for rows in pieces:
            file.add(rows)
        return file.written().staged[0]


class StagedFile:
    """Rows in a parquet file that Spark reads.

    :param kind: begins the name.
    :param ranges: takes the ranges of the rows' keys.
    """

    def __init__(self, storage: Storage, folder: str, kind: str, schema: pa.Schema, ranges: KeyRanges) -> None:
        self._storage, self._ranges = storage, ranges
        # a name of its own per attempt: Spark may run a task twice at a time
        self._name = f"{folder}/{kind}-{uuid.uuid4().hex}.parquet"
        with storage.access(self._name):
            self._stream = storage.open_new(self._name)
            self._writer = pq.ParquetWriter(self._stream, schema, compression="lz4")

    def add(self, rows: pa.Table) -> None:
        """Take rows."""
        self._ranges.add(rows)
        with self._storage.access(self._name):
            self._writer.write_table(rows, row_group_size=1 << 17)

    def written(self) -> WrittenRows:
        """End the file; return its name and the ranges of the keys in it."""
        with self._storage.access(self._name):
            self._close()
        return WrittenRows(staged=[self._name], ranges=self._ranges.document())

    def discard(self) -> None:
        """End the file; it goes with its folder."""
        self._close()

    def _close(self) -> None:
        self._writer.close()
        self._stream.close()


class SparkWriter:
    """The half that runs in the driver (``driver_side.StagedCommits``)."""

    together = False

    def __init__(self, session: SparkSession, storage: Storage) -> None:
        self._session, self._storage = session, storage
        self._sessions = threading.local()

    def commit(self, folders: Sequence[str], parallelism: int) -> list[Exception | None]:
        """Commit what tasks staged, some tables at a time."""

        def commit(folder: str) -> Exception | None:
            try:
                self.commit_staged(folder)
            except Exception as error:
                return error
            return None

        with ThreadPoolExecutor(max_workers=max(1, min(_AT_A_TIME, parallelism))) as pool:
            return list(pool.map(commit, folders))

    def commit_staged(self, folder: str) -> None:
        """Commit what a task staged; does nothing when it staged nothing.

        Files with rows at the table's location are removed then: Spark has written the rows into others.

        :raises UnavailableError: Spark or the store failed; nothing of it is visible.
        :raises SinkError: the table or the rows forbid the commit.
        """
        document = self._storage.read_json(f"{folder}/{ACTION}")
        if document is None:
            return
        commit = Commit(**document["commit"])
        self._demand_unchanged(document, commit)
        session = self._own_session()
        for name, value in {
            "spark.sql.session.timeZone": "UTC",
            # Delta's default of 50 tasks for a table's log costs more than the merge of a small table
            "spark.databricks.delta.snapshotPartitions": str(max(2, session.sparkContext.defaultParallelism)),
            "spark.sql.caseSensitive": "true",
            "spark.databricks.delta.write.txnAppId": commit.app,
            "spark.databricks.delta.write.txnVersion": str(commit.seq),
            "spark.databricks.delta.commitInfo.userMetadata": json.dumps(commit.facts),
            "spark.databricks.delta.schema.autoMerge.enabled": "false",
            # pyarrow takes INT96, the default, for nanoseconds: too few years
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
            # readers that lack deletion vectors are common
            "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
        }.items():
            session.conf.set(name, value)
        try:
            self._commit(session, document)
        except Exception as error:
            raise spark_error(error, document["location"]) from None
        finally:
            self._discard(document)

    def _demand_unchanged(self, document: Mapping[str, Any], commit: Commit) -> None:
        """Refuse a table that somebody else changed since the task looked whose it is.

        :raises UnavailableError: ``sink.commit_conflict``; the task looks again.
        """
        from spark_jobs.sinks.delta.table import DeltaLocation

        target = DeltaLocation(document["location"], self._storage.options)
        staged = document["version"]
        if staged is None and not target.exists:
            return
        if staged is not None and target.exists and target.foreign_commit(staged, Owner.of(commit.app)) is None:
            return
        raise UnavailableError(
            "sink.commit_conflict",
            "another writer committed to the table at the same moment",
            where={"location": document["location"]},
            hint="run again; keep other writers away from this table",
        )

    def _discard(self, document: Mapping[str, Any]) -> None:
        """Remove the files at a table's location that no version has; where the store fails they stay."""
        folder = Storage(document["location"], self._storage.options)
        with suppress(CdcError):
            for name in document["added"]:
                folder.delete_file(name)

    def _own_session(self) -> SparkSession:
        """Return the thread's session: settings mark the commit, and each new session compiles its code again."""
        if not hasattr(self._sessions, "own"):
            self._sessions.own = self._session.newSession()
        own: SparkSession = self._sessions.own
        return own

    def _commit(self, session: SparkSession, document: dict[str, Any]) -> None:
        location = self._spark_path(document["location"])
        added = [f"{location}/{name}" for name in document["added"]]
        rows = session.read.parquet(*map(self._url, document["rows"]), *added)
        if document["verb"] == "merge":
            deletes = session.read.parquet(*map(self._url, document["deletes"])).select(
                *(quoted(name) for name in document["key"])
            )
            self._merge(session, rows, _distinct(deletes, rows), location, document)
            return
        writer = rows.write.format("delta")
        if document["verb"] == "overwrite":
            self._allow_timestamp_ntz(session, rows, location)
            writer = writer.mode("overwrite").option("overwriteSchema", "true")
        else:
            writer = writer.mode("append" if document["verb"] == "append" else "errorifexists")
        writer.save(location)

    def _merge(
        self, session: SparkSession, rows: DataFrame, deletes: DataFrame, location: str, document: Mapping[str, Any]
    ) -> None:
        from pyspark.sql.functions import lit

        flag = "_cdc_delete"
        while flag in rows.columns:
            flag += "_"
        source = rows.withColumn(flag, lit(False)).unionByName(
            deletes.withColumn(flag, lit(True)), allowMissingColumns=True
        )
        source.createOrReplaceTempView("cdc_source")
        same = " AND ".join(
            [
                *(f"t.{quoted(name)} = s.{quoted(name)}" for name in document["key"]),
                *(
                    f"t.{quoted(name)} BETWEEN {literal(low)} AND {literal(high)}"  # Delta skips files by literals only
                    for name, (low, high) in document.get("ranges", {}).items()
                ),
            ]
        )
        sets = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in rows.columns)
        names = ", ".join(quoted(name) for name in rows.columns)
        values = ", ".join(f"s.{quoted(name)}" for name in rows.columns)
        session.sql(
            f"MERGE INTO delta.{quoted(location)} t USING cdc_source s ON {same} "
            f"WHEN MATCHED AND s.{quoted(flag)} THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {sets} "
            f"WHEN NOT MATCHED AND NOT s.{quoted(flag)} THEN INSERT ({names}) VALUES ({values})"
        ).collect()

    @staticmethod
    def _allow_timestamp_ntz(session: SparkSession, rows: DataFrame, location: str) -> None:
        """Let a table made without DATETIME columns have one: Delta asks for it to be stated first."""
        if any(kind == "timestamp_ntz" for _, kind in rows.dtypes):
            session.sql(
                f"ALTER TABLE delta.{quoted(location)} SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')"
            )

    def _url(self, name: str) -> str:
        return self._spark_path(f"{self._storage.root}/{name}")

    @staticmethod
    def _spark_path(path: str) -> str:
        return path.replace("s3://", "s3a://", 1) if path.startswith("s3://") else path
