# SPDX-License-Identifier: Apache-2.0
"""Open a table of a catalog in one version: whose commits it has, and its rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot, ancestors_of

from airflow_provider_cdc.core.apply.row_sets import each_known
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.config.sinks.iceberg_options import identifier_of
from airflow_provider_cdc.core.errors import REBUILD, SinkError
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import MAINTENANCE, Commit, Owner
from spark_jobs.sinks.contract import TableSize
from spark_jobs.sinks.iceberg.catalogs import Missing, Refused, open_catalog, reaching, unreadable
from spark_jobs.sinks.iceberg.columns import Fields, stored_fields
from spark_jobs.sinks.iceberg.live_files import LiveFile, LiveFiles, bounds_of
from spark_jobs.sinks.iceberg.partitions import KeyPartitions, own_spec, spec_by_id
from spark_jobs.sinks.key_bounds import KeyBounds
from spark_jobs.sinks.ownership import demand_ours

APPLIED, FACTS, COMMIT = "cdc.applied.", "cdc.facts", "cdc.commit"
"""Names of a table's properties: the newest batch of an application, what the newest commit states, its mark."""

SAYS = "cdc"
"""Property of a snapshot's summary with the application and batch of its commit."""


UNCHANGED = "cdc.unchanged-since"
"""Property of a snapshot of maintenance: the first version that has the same rows."""


class IcebergTable:
    """A table of a catalog, present or not (``contract.Stored``).

    :param location: of the table in words of the sink: root, database, table.
    :param folder: where the files of a new table go; empty where the catalog says it, until it did.
    :ivar made: namespaces that were made for it.
    :ivar is_checked: the table is known to be ours to change; else each commit looks.
    """

    def __init__(
        self,
        catalog: Catalog,
        identifier: tuple[str, ...],
        location: str,
        folder: str,
        version: int | None = None,
        loaded: Table | None = None,
    ) -> None:
        self.catalog, self.identifier, self.location, self.folder = catalog, identifier, location, folder
        self.made: list[tuple[str, ...]] = []
        self.is_checked = False
        self._is_newest = version is None
        self._loaded = loaded or self._load()
        self.snapshot: Snapshot | None = None
        if self._loaded is not None:
            self.snapshot = self._snapshot_at(version)

    def _load(self) -> Table | None:
        with reaching(self.where):
            try:
                table = self.catalog.load_table(self.identifier)
            except Missing:
                return None
            except Refused as error:
                raise self._name_refused() from error
            except ValueError as error:  # of its metadata, which the store may have given in part
                raise unreadable(error, self.where) from error
        spec = table.spec()
        parted = not spec.is_unpartitioned() and own_spec(table.properties) != spec.spec_id
        if table.metadata.format_version != 2 or parted:
            what = "partitions that others made" if parted else f"format version {table.format_version}"
            raise SinkError(
                "sink.unreadable",
                f"the table has {what}, which this sink cannot write",
                where=self.where,
                hint="it was made or changed by another writer: move it away",
            )
        return table

    def _name_refused(self) -> SinkError:
        return SinkError(
            "target.name_refused",
            "the catalog refuses to look for a table of this name",
            where=self.where,
            hint="set sink.names to safe: only tables that are not there yet get other names",
        )

    def _snapshot_at(self, version: int | None) -> Snapshot | None:
        newest = self.table.current_snapshot()
        if version is None:
            return newest
        history = ancestors_of(newest, self.table.metadata)
        snapshot = next((one for one in history if one.sequence_number == version), None)
        if snapshot is None and version:
            raise SinkError(
                "sink.unreadable",
                f"the table's version {version} is not there",
                where={**self.where, "version": version},
                hint="a version may have expired",
            )
        return snapshot

    @property
    def where(self) -> dict[str, Any]:
        """Say for errors which table it is."""
        return {"location": self.location, "table": ".".join(self.identifier)}

    @property
    def exists(self) -> bool:
        """Return whether the catalog has the table."""
        return self._loaded is not None

    @property
    def table(self) -> Table:
        """The opened table."""
        if self._loaded is None:
            raise SinkError("sink.missing", "the table is gone", where=self.where, hint=f"restore it, or {REBUILD}")
        return self._loaded

    @property
    def version(self) -> int | None:
        """The number of the version's snapshot: it rises with each, and compaction and expiry of others keep it."""
        if self._loaded is None:
            return None
        return 0 if self.snapshot is None else int(self.snapshot.sequence_number or 0)

    def added_bytes(self) -> int:
        """Return the bytes of the files that the version's commit added, those of deletes included."""
        summary = None if self.snapshot is None else self.snapshot.summary
        return 0 if summary is None else int(summary["added-files-size"] or 0)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self.fields.columns

    @cached_property
    def fields(self) -> Fields:
        """The table's columns, with their ids."""
        return stored_fields(self.iceberg_schema, self.properties)

    @property
    def iceberg_schema(self) -> Schema:
        """Iceberg's schema of the version."""
        table, snapshot = self.table, self.snapshot
        if self._is_newest or snapshot is None or snapshot.schema_id is None:
            return table.schema()
        return next(one for one in table.metadata.schemas if one.schema_id == snapshot.schema_id)

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        properties: Mapping[str, str] = self.table.metadata.properties
        return properties

    def holds_files(self) -> bool:
        """Return whether the folder has files; of one that the catalog chooses it is not asked."""
        if not self.folder.startswith("file://"):
            return False
        parent, _, name = self.folder.rpartition("/")
        return Storage(parent).holds_files(name)

    # ---- whose commits

    def applied(self, app: str) -> int | None:
        """Return the newest batch that an application committed."""
        if self._loaded is None:
            return None
        if self._is_newest:
            seq = self.properties.get(f"{APPLIED}{app}")
            return None if seq is None else int(seq)
        said = (_says(one) for one in self._history())
        return next((int(one["seq"]) for one in said if one.get("app") == app), None)

    def facts(self, app: str) -> dict[str, Any] | None:
        """Return the facts of an application's newest commit, if it is the newest of all."""
        facts: dict[str, Any] = json.loads(self.properties.get(FACTS, "{}"))
        return facts if facts.get("app") == app else None

    def _history(self) -> Iterator[Snapshot]:
        """Yield the version's snapshot and those before it, as far as they are kept."""
        yield from ancestors_of(self.snapshot, self.table.metadata)

    def newest_app(self, *, of_anybody: bool = True) -> str | None:
        """Return the application of the newest commit that may have changed rows."""
        if self.snapshot is None:  # made, and without rows so far
            maker = json.loads(self.properties.get(FACTS, "{}")).get("app")
            return maker or ("" if of_anybody else None)
        for snapshot in self._history():
            app = str(_says(snapshot).get("app", ""))
            if app or (of_anybody and not _keeps_rows(snapshot)):
                return app
        return None

    def is_written_by(self, app: str) -> bool:
        """Return whether no other application of ours wrote after an application's newest commit."""
        return self.newest_app(of_anybody=False) in (app, None)

    def foreign_commit(self, since: int, owner: Owner | None = None) -> str | None:
        """Return what a commit after a version did that may have changed rows or columns and is not ours."""
        for snapshot in self._history():
            if (snapshot.sequence_number or 0) <= since:
                break
            app = _says(snapshot).get("app")
            ours = bool(app) if owner is None else owner.wrote(app)
            if not ours and not _keeps_rows(snapshot):
                return str(_operation(snapshot).value)
        known = None if self.snapshot is None else self.snapshot.schema_id
        # columns may change without a snapshot
        changed = self._is_newest and known is not None and self.table.metadata.current_schema_id != known
        return "change of columns" if changed else None

    def last_maintained(self, since: int) -> int:
        """Return the newest version up to which all commits after a version are known to leave the rows alone."""
        last: int | None = None
        for snapshot in self._history() if self.exists else ():
            number = snapshot.sequence_number or 0
            if number <= since:
                return since if last is None or number < since else last
            if not _keeps_rows(snapshot):
                last = None
                continue
            last = number if last is None else last
            if (same := unchanged_since(snapshot)) is not None and same <= since:
                return last  # the snapshots between may have expired
        return since

    def holds_same(self, other: IcebergTable) -> bool:
        """Return whether two versions stand on the same files under the same columns."""
        mine, theirs = (set(one.live.paths()) for one in (self, other))
        return mine == theirs and self.iceberg_schema.fields == other.iceberg_schema.fields

    def at_version(self, version: int) -> IcebergTable:
        """Open another version of the table."""
        return IcebergTable(self.catalog, self.identifier, self.location, self.folder, version, self.table)

    def newest(self) -> IcebergTable:
        """Open the table as it is now."""
        return IcebergTable(self.catalog, self.identifier, self.location, self.folder)

    def demand_ours(self, commit: Commit) -> None:
        """Refuse to commit for a pipeline to a table of somebody else."""
        if self.exists and not self.is_checked and commit.app.startswith("cdc/"):
            demand_ours(self, Owner.of(commit.app))

    # ---- rows

    @cached_property
    def live(self) -> LiveFiles:
        """The files of the version."""
        with reaching(self.where):
            return LiveFiles(self.snapshot, self.table.io)

    def partition_sources(self) -> set[int]:
        """Return the ids of the columns that files of the version are partitioned by."""
        with reaching(self.where):
            used = {manifest.partition_spec_id for manifest in self.live.manifests}
        spec_of = spec_by_id(self.table.metadata)
        own = dict(zip(self.fields.fields, self.fields.ids, strict=True))
        return {own.get(field.source_id, 0) for number in used for field in spec_of[number].fields}

    def files(self) -> list[LiveFile]:
        """Return the data files of the version."""
        with reaching(self.where):
            return self.live.files

    def is_empty(self) -> bool:
        """Return whether the table has no data file."""
        return not self.files()

    def size(self) -> TableSize:
        """Return what the table holds, read from its manifests alone."""
        if not self.exists:
            return TableSize(0, 0)
        with reaching(self.where):
            files, size = self.live.files, sum(file.file_size_in_bytes for file in self.live.every_file())
        return TableSize(sum(file.rows for file in files), size)

    def files_with(self, keys: pa.Table, among: Sequence[LiveFile] | None = None) -> list[LiveFile]:
        """Return the data files that may hold rows of some keys, from bounds alone.

        :param keys: columns named as in this version.
        :param among: None for all files.
        """
        if not keys.num_rows:
            return []
        narrowed, parted = KeyBounds(keys), KeyPartitions(keys, self.fields, spec_by_id(self.table.metadata))
        fields = {name: self.fields.fields[self.schema.get_field_index(name)] for name in narrowed.names}
        candidates = []
        for file in self.files() if among is None else among:
            within = narrowed.within(bounds_of(file.file, self.iceberg_schema, fields))
            within = parted.within(file.file, within)
            if len(within):
                candidates.append(LiveFile(file.file, file.deletes, within))
        return candidates

    def rows(self, keys: pa.Table | None = None) -> pa.Table:
        """Return all rows, columns in the table's order; with keys only those that may have one of them."""
        if keys is None:
            return pa.concat_tables([self.schema.empty_table(), *self.pieces()])
        pieces = [self.schema.empty_table()]
        for file in self.files_with(keys):
            for piece in self.read(file, self.fields):
                pieces.append(piece.filter(pa.array(each_known(piece, keys))))
        return pa.concat_tables(pieces)

    def pieces(self, first: str | None = None) -> Iterator[pa.Table]:
        """Yield all rows, columns in the table's order, some at a time.

        :param first: column in whose order the files are read.
        """
        files = self.files()
        if first is not None and first in self.schema.names:
            number = {first: self.fields.fields[self.schema.get_field_index(first)]}
            low = [bounds_of(file.file, self.iceberg_schema, number).get(first) for file in files]
            known = sorted((i for i, bounds in enumerate(low) if bounds), key=lambda i: low[i][0])  # type: ignore[index]
            files = [files[i] for i in (*known, *(i for i, bounds in enumerate(low) if not bounds))]
        for file in files:
            yield from self.read(file, self.fields)

    def read(self, file: LiveFile, fields: Fields, *, whole: bool = False) -> Iterator[pa.Table]:
        """Yield rows of a data file under some fields, which may be of a later version.

        :param whole: whether deleted rows are read, too.
        """
        # for a column that a file lacks pyiceberg asks its partition spec, whose own columns may be gone by now
        metadata = self.table.metadata.model_copy(update={"partition_specs": []})
        scan = ArrowScan(metadata, self.table.io, fields.schema(), AlwaysTrue())
        with reaching({**self.where, "file": file.path}):
            for batch in scan.to_record_batches([file.scan(whole=whole)]):
                yield pa.Table.from_batches([batch]).cast(fields.columns)

    def columns_of(self, file: LiveFile, fields: Fields) -> pa.Table:
        """Return some columns of all rows of a data file, deleted ones included, in their order."""
        return pa.concat_tables([fields.columns.empty_table(), *self.read(file, fields, whole=True)])

    def deleted_in(self, file: LiveFile) -> IntArray:
        """Return the positions of the rows of a data file that are deleted already."""
        positions = [np.empty(0, dtype=np.int64)]
        with reaching({**self.where, "file": file.path}):
            for deletes in file.deletes:
                with self.table.io.new_input(deletes.file_path).open() as stream:
                    rows = pq.read_table(stream, columns=["file_path", "pos"])
                mine: BoolArray = np.array(rows.column("file_path")) == file.path
                positions.append(rows.column("pos").to_numpy()[mine])
        return np.unique(np.concatenate(positions))


def open_table(options: Mapping[str, str], location: str, version: int | None = None) -> IcebergTable:
    """Return the table of a location: ``<root>/<database>/<table>``.

    :param options: of the sink, secrets included.
    """
    folder = f"file://{location}" if location.startswith("/") else location
    folder = "" if folder.startswith("iceberg://") else folder
    return IcebergTable(open_catalog(options), identifier_of(location, options), location, folder, version)


def _says(snapshot: Snapshot) -> dict[str, Any]:
    """Return the application and batch of a snapshot's commit; empty for one of somebody else."""
    if snapshot.summary is None:
        return {}
    said: dict[str, Any] = json.loads(snapshot.summary.additional_properties.get(SAYS, "{}"))
    return said


def unchanged_since(snapshot: Snapshot) -> int | None:
    """Return a version whose rows a snapshot of our maintenance has, None for other snapshots."""
    said = None if snapshot.summary is None else snapshot.summary.additional_properties.get(UNCHANGED)
    return None if said is None or not _keeps_rows(snapshot) else int(said)


def _operation(snapshot: Snapshot) -> Operation:
    return Operation.OVERWRITE if snapshot.summary is None else snapshot.summary.operation


def _keeps_rows(snapshot: Snapshot) -> bool:
    """Return whether a commit is known to leave a table's rows as they are."""
    says = _says(snapshot)
    return MAINTENANCE in says or (_operation(snapshot) == Operation.REPLACE and not says)
