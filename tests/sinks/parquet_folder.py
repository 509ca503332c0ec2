# SPDX-License-Identifier: Apache-2.0
"""A second kind of table, as small as it can be: a folder with a parquet file and a document for each version."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from airflow_provider_cdc.core.apply.row_sets import having_keys, multiset_difference, without_keys
from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from airflow_provider_cdc.core.errors import SinkError, UnavailableError
from airflow_provider_cdc.sinks.contract import UnreadableTableError
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import ADDED_BYTES, Choice, Owner
from spark_jobs.sinks.contract import Action, TableSize, WriterRule, WrittenRows
from spark_jobs.sinks.names import NameRule
from spark_jobs.sinks.ownership import demand_ours

VERSIONS = "versions"


class FolderTable:
    """A table in one of its versions: all documents up to it say what each commit was, the last one has the rows."""

    def __init__(self, location: str, version: int | None = None) -> None:
        self.location, self.is_checked = location, False
        self.storage = Storage(location)
        newest = len(self.storage.files(VERSIONS, ".json")) - 1
        if version is not None and not 0 <= version <= newest:
            raise SinkError("sink.unreadable", "no such version", where={"location": location}, hint="name another")
        last = newest if version is None else version
        self.commits = [self.storage.read_json(f"{VERSIONS}/{number:09}.json") for number in range(last + 1)]

    @property
    def exists(self) -> bool:
        return bool(self.commits)

    @property
    def version(self) -> int | None:
        return len(self.commits) - 1 if self.commits else None

    @property
    def file(self) -> str:
        if not self.commits:
            raise SinkError("sink.missing", "the table is gone", where={"location": self.location}, hint="restore it")
        return f"{self.storage.root}/{self.commits[-1]['file']}"

    @property
    def schema(self) -> pa.Schema:
        return pq.read_schema(self.file)

    def applied(self, app: str) -> int | None:
        facts = self.facts(app)
        return None if facts is None else int(facts["seq"])

    def holds_files(self) -> bool:
        parent, _, name = self.location.rpartition("/")
        return Storage(parent).holds_files(name)

    def facts(self, app: str) -> dict[str, Any] | None:
        return next((commit["facts"] for commit in reversed(self.commits) if commit["app"] == app), None)

    def newest_app(self, *, of_anybody: bool = True) -> str | None:
        return next((commit["app"] for commit in reversed(self.commits) if commit["app"] or of_anybody), None)

    def is_written_by(self, app: str) -> bool:
        return self.newest_app(of_anybody=False) in (app, None)

    def foreign_commit(self, since: int, owner: Owner | None = None) -> str | None:
        for commit in self.commits[since + 1 :]:
            if not (commit["app"] if owner is None else owner.wrote(commit["app"])):
                return str(commit["verb"])
        return None

    def last_maintained(self, since: int) -> int:
        return since

    def holds_same(self, other: FolderTable) -> bool:
        return self.file == other.file

    def at_version(self, version: int) -> FolderTable:
        return FolderTable(self.location, version)

    def is_empty(self) -> bool:
        return not self.rows().num_rows

    def size(self) -> TableSize:
        if not self.exists:
            return TableSize(0, 0)
        return TableSize(pq.read_metadata(self.file).num_rows, Path(self.file).stat().st_size)

    def added_bytes(self) -> int:
        return Path(self.file).stat().st_size

    def rows(self, keys: pa.Table | None = None) -> pa.Table:
        try:
            return pq.read_table(self.file)
        except (OSError, pa.ArrowInvalid) as error:
            raise SinkError("sink.unreadable", str(error), where={"location": self.location}, hint="restore") from None

    def pieces(self, first: str | None = None) -> Iterator[pa.Table]:
        yield self.rows()


class FolderFiles:
    """Rows of one part of an action, in a file of their own."""

    def __init__(self, target: FolderTable, schema: pa.Schema) -> None:
        self._target, self._pieces = target, [schema.empty_table()]

    def add(self, rows: pa.Table) -> None:
        self._pieces.append(rows)

    def written(self) -> WrittenRows:
        return WrittenRows(added=[write_file(self._target, pa.concat_tables(self._pieces))])

    def discard(self) -> None:
        self._pieces.clear()


def write_file(target: FolderTable, rows: pa.Table) -> str:
    """Write rows into a new file of the table's folder; return its name."""
    name = f"{uuid.uuid4().hex}.parquet"
    with target.storage.open_new(name) as stream:
        pq.write_table(rows, stream)
    return name


class FolderWriter:
    """Writes all rows again with each commit."""

    choice: Choice | None = None
    files = file_bytes = 0

    def commit(self, target: FolderTable, action: Action) -> int | None:
        self.choice = Choice("task", "only tasks write folders")
        facts = action.commit.facts
        facts["writer"] = self.choice.document()
        added = [pq.read_table(f"{target.storage.root}/{name}") for part in action.parts for name in part.added]
        rows = pa.concat_tables([action.rows.schema.empty_table(), *added, *action.pieces()])
        if action.verb in ("append", "merge", "subtract"):
            content = _widened(target.rows(), rows.schema)
            if action.verb == "merge":
                assert action.deletes is not None
                keys = pa.concat_tables([rows.select(action.key), action.deletes.select(action.key)])
                if action.met is not None:
                    action.met.meet(content.filter(pa.array(having_keys(content, keys, action.key))))
                    action.met.demand_agreement()
                content = without_keys(content, keys, action.key)
            elif action.verb == "subtract":
                content, unmatched = multiset_difference(content, action.deletes, action.forms)
                action.unmatched(unmatched)
            rows = pa.concat_tables([content, rows])
        if action.verb == "create" and target.exists:
            raise _conflict(target)
        if target.exists and not target.is_checked and action.commit.app.startswith("cdc/"):
            demand_ours(target, Owner.of(action.commit.app))
        document = {"app": action.commit.app, "verb": action.verb, "facts": {"seq": action.commit.seq, **facts}}
        name = write_file(target, rows)
        facts[ADDED_BYTES] = document["facts"][ADDED_BYTES] = Path(f"{target.storage.root}/{name}").stat().st_size
        return self._commit(target, {**document, "file": name})

    @staticmethod
    def _commit(target: FolderTable, document: dict[str, Any]) -> int:
        version = len(target.commits)
        if not target.storage.create_json(f"{VERSIONS}/{version:09}.json", document):
            raise _conflict(target)
        return version

    def may_need_spark(self, target: FolderTable) -> bool:
        return False

    def takes_parts(self, target: FolderTable, columns: TargetSchema) -> bool:
        return True

    def row_files(self, target: FolderTable, columns: TargetSchema) -> FolderFiles:
        return FolderFiles(target, columns.columns)

    def evolves(self, target: FolderTable, old: TargetSchema, new: TargetSchema, *, merges: bool) -> bool:
        return new.extends(old)

    def subtracts(self, target: FolderTable) -> bool:
        return True


class FolderPreview(FolderWriter):
    """Types the rows and commits nothing."""

    def commit(self, target: FolderTable, action: Action) -> int | None:
        for _ in action.pieces():
            pass
        self.choice = Choice("task", "only tasks write folders")
        return target.version


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns of a schema; those that they lack are NULL."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names)


def _conflict(target: FolderTable) -> UnavailableError:
    where = {"location": target.location}
    return UnavailableError("sink.commit_conflict", "another writer committed", where=where, hint="run again")


class FolderSink:
    """Tables as folders; no Spark, nothing to maintain."""

    spark = None
    names = NameRule()

    def open(self, location: str, version: int | None = None) -> FolderTable:
        return FolderTable(location, version)

    def writer(self, rule: WriterRule, storage: Storage, folder: str) -> FolderWriter:
        return FolderWriter()

    def task_writer(self) -> FolderWriter:
        return FolderWriter()

    def preview(self, rule: WriterRule) -> FolderPreview:
        return FolderPreview()

    def discard(self, location: str, rows: Sequence[WrittenRows]) -> None:
        for name in (name for some in rows for name in some.added):
            Storage(location).delete_file(name)

    def committer(self, session: Any, storage: Storage, run: Any) -> None:
        return None

    def remove(self, target: FolderTable) -> None:
        root, folder, name = target.location.rsplit("/", 2)
        Storage(root).delete_folder(f"{folder}/{name}", traces=True)

    def maintain(
        self,
        target: FolderTable,
        report: TableMaintenance,
        maintenance: Maintenance,
        first: str | None,
        layout: TableLayout | None = None,
    ) -> None:
        report.version = target.version


def open_sink(options: Mapping[str, str]) -> FolderSink:
    """Return the sink (``spark_jobs.sinks.contract.Sink``)."""
    return FolderSink()


class FolderReader:
    """Opens folders for the Airflow side (``airflow_provider_cdc.sinks.contract.TableReader``)."""

    errors = (SinkError, OSError, pa.ArrowInvalid)

    def open(self, location: str, options: Mapping[str, str], version: int | None = None) -> ReadTable:
        table = FolderTable(location, version)
        if not table.exists:
            raise UnreadableTableError("missing")
        return ReadTable(table)

    def is_table(self, location: str, options: Mapping[str, str]) -> bool:
        return FolderTable(location).exists

    def example(self, location: str, options: Mapping[str, str]) -> list[str]:
        return ["import pyarrow.parquet", f"print(pyarrow.parquet.read_table({str(FolderTable(location).file)!r}))"]

    def read_at(self, tables: Sequence[tuple[str, int]], naming: Mapping[str, str]) -> list[str]:
        return [f"{FolderTable(location, version).file}" for location, version in tables]


class ReadTable:
    """One version of one table, for the Airflow side."""

    def __init__(self, table: FolderTable) -> None:
        self._table, self.version = table, int(table.version or 0)

    def count(self) -> int:
        return int(self._table.rows().num_rows)

    def rows(self, columns: Sequence[str] | None = None) -> pa.Table:
        rows = self._table.rows()
        return rows if columns is None else rows.select(list(columns))

    def dataset(self) -> ds.Dataset:
        return ds.dataset(self._table.file)

    def has_all_files(self) -> bool:
        return self._table.storage.holds_files(VERSIONS)


def reader() -> FolderReader:
    """Return what opens folders."""
    return FolderReader()
