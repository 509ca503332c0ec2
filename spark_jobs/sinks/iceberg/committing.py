# SPDX-License-Identifier: Apache-2.0
"""Make one commit in a catalog: rows, columns and marks go together, onto the version that was read, or not at all.

Not through pyiceberg's transactions: after a conflict they remove the manifests that they wrote, also where a first
try landed and its answer was lost; the newest snapshot is unreadable then (0.12, over REST; apache/iceberg#14583).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import Field
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, NamespaceAlreadyExistsError
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSpecUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.errors import UnavailableError
from airflow_provider_cdc.core.json_documents import json_bytes
from spark_jobs.sinks.commits import MAINTENANCE, Commit
from spark_jobs.sinks.iceberg.catalogs import UNKNOWN, Existing, Refused, as_sink_error, reaching
from spark_jobs.sinks.iceberg.columns import COLUMNS, Fields, first_fields, next_fields
from spark_jobs.sinks.iceberg.comments import holdable, with_comment
from spark_jobs.sinks.iceberg.live_files import LiveFiles
from spark_jobs.sinks.iceberg.new_files import NewFiles, PartitionedFiles
from spark_jobs.sinks.iceberg.partitions import SPEC, RowPartitions, spec_after, spec_by_id, spec_property
from spark_jobs.sinks.iceberg.snapshots import FileChange, SnapshotWriter
from spark_jobs.sinks.iceberg.table import APPLIED, COMMIT, FACTS, SAYS, UNCHANGED, IcebergTable, unchanged_since
from spark_jobs.sinks.table_properties import PropertyChange, property_change

_NEW_TABLE = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


class _NumberedSchemaUpdate(AddSchemaUpdate):  # type: ignore[misc]
    """Adds a schema with the number that pyiceberg leaves out (0.12), without which Nessie answers 500."""

    last_column_id: int = Field(alias="last-column-id")


def _numbered(update: TableUpdate, last_column_id: int) -> TableUpdate:
    """Return an update, one that adds a schema with the number."""
    if not isinstance(update, AddSchemaUpdate):
        return update
    return _NumberedSchemaUpdate(schema=update.schema_, **{"last-column-id": last_column_id})


@dataclass(frozen=True, slots=True)
class Prepared:
    """Hold what the catalog has to be asked for, for one commit to one table.

    :param mark: the commit's own, which the table has once it went through.
    :param version: that it makes.
    """

    identifier: tuple[str, ...]
    requirements: tuple[TableRequirement, ...]
    updates: tuple[TableUpdate, ...]
    mark: str
    version: int

    def document(self) -> dict[str, Any]:
        """Return plain JSON data, as the catalog's protocol has it."""
        plain = {"by_alias": True, "exclude_none": True, "mode": "json"}
        return {
            "identifier": {"namespace": list(self.identifier[:-1]), "name": self.identifier[-1]},
            "requirements": [one.model_dump(**plain) for one in self.requirements],
            "updates": [one.model_dump(**plain) for one in self.updates],
        }


class TableCommit:
    """One commit to a table that is being prepared.

    :param columns: of the table after it; None where it keeps its own.
    :ivar io: reads and writes the table's files.
    :ivar folder: the table's.
    :ivar fields: of the rows that it adds.
    :ivar spec: by which their files are partitioned.
    """

    def __init__(self, target: IcebergTable, columns: TargetSchema | None, commit: Commit | None) -> None:
        self._target, self._commit = target, commit
        columns = None if columns is None else holdable(columns, target.catalog)
        self._layout = layout = None if columns is None else columns.layout
        self._order = [] if columns is None else columns.order
        self._created: tuple[TableUpdate, ...] = ()
        with reaching(target.where):
            if target.exists:
                self._metadata, self.io = target.table.metadata, target.table.io
                self.fields = fields_after(target, columns)
                self.spec = self._metadata.spec()
                if layout is not None:
                    self.spec = spec_after(self.fields, layout, self._metadata, target.where)
            else:
                assert columns is not None, "a table is made with columns"
                self.fields = first_fields(columns)
                self.spec = spec_after(self.fields, columns.layout, None, target.where)
                self._metadata, self.io = self._staged()
            stored = self._metadata.properties
        self._changed = PropertyChange()
        if columns is not None:
            change = property_change(stored, columns.layout.properties, _NEW_TABLE)
            self._changed = with_comment(change, stored, columns)
        self.folder = self._metadata.location.rstrip("/")

    def _staged(self) -> tuple[TableMetadata, FileIO]:
        """Let the catalog say where a new table lies; nothing is visible yet."""
        target, namespace = self._target, self._target.identifier[:-1]
        for depth in range(1, len(namespace) + 1):
            with suppress(NamespaceAlreadyExistsError):
                target.catalog.create_namespace(namespace[:depth])
                target.made.append(namespace[:depth])
        new = target.catalog.create_table_transaction(
            target.identifier,
            self.fields.schema(),
            location=target.folder or None,
            partition_spec=self.spec,
            properties=_NEW_TABLE,
        )
        staged = new.table_metadata
        self._created = tuple(_numbered(update, staged.last_column_id) for update in new._updates)
        target.folder = staged.location
        assert [field.field_id for field in staged.schema().fields] == list(self.fields.fields), "numbered in order"
        assert staged.spec() == self.spec, "numbered in order"
        return staged, new._table.io

    def new_files(
        self, file_bytes: int | None = None, order: Sequence[str] | None = None
    ) -> NewFiles | PartitionedFiles:
        """Return what writes the rows that the commit adds.

        :param file_bytes: size that ends a file, None for the usual one.
        :param order: columns in whose order rows are written, None for that of the rule.
        """
        order = self._order if order is None else order
        make = partial(NewFiles, self.io, self.folder, self.fields, file_bytes, order, self.spec.spec_id)
        if self.spec.is_unpartitioned():
            return make()
        return PartitionedFiles(RowPartitions(self.spec, self.fields, self._target.where), self.fields.columns, make)

    def make(self, change: FileChange, operation: Operation) -> int:
        """Commit; return the version that it made.

        :raises UnavailableError: ``sink.commit_conflict``, or the catalog failed; nothing of it is visible.
        """
        prepared = self.prepare(change, operation)
        settle(self._target, prepared)
        return prepared.version

    def make_empty(self) -> None:
        """Make the table, without rows and without the batch's mark.

        :raises UnavailableError: as :meth:`make`.
        """
        mark = uuid.uuid4().hex
        properties = {name: value for name, value in self._properties(mark).items() if not name.startswith(APPLIED)}
        updates = _properties_once((*self._created, *_property_updates(self._changed, properties)))
        settle(self._target, Prepared(self._target.identifier, (AssertCreate(),), updates, mark, 0))

    def prepare(self, change: FileChange, operation: Operation) -> Prepared:
        """Write the commit's files; return what the catalog has to be asked for."""
        target, metadata, base = self._target, self._metadata, self._target.snapshot
        mark = uuid.uuid4().hex
        if any(file.spec_id != self.spec.spec_id for file in change.added):  # written before the spec was another one
            raise conflict(target)
        with reaching(target.where):
            schema, evolved = self._schema()
            live = target.live if target.exists else LiveFiles(None, self.io)
            number = int(metadata.last_sequence_number) + 1
            spec_of = {**spec_by_id(metadata), self.spec.spec_id: self.spec}
            writer = SnapshotWriter(self.io, f"{self.folder}/metadata", _new_id(metadata), base, schema, spec_of)
            snapshot = writer.write(live, change, operation, number, self._says())
        updates = (
            *self._created,
            *evolved,
            *self._partitioned(),
            *_property_updates(self._changed, self._properties(mark)),
            AddSnapshotUpdate(snapshot=snapshot),
            SetSnapshotRefUpdate(
                snapshot_id=snapshot.snapshot_id,
                parent_snapshot_id=snapshot.parent_snapshot_id,
                ref_name=MAIN_BRANCH,
                type=SnapshotRefType.BRANCH,
            ),
        )
        return Prepared(target.identifier, self._requirements(base), _properties_once(updates), mark, number)

    def _requirements(self, base: Snapshot | None) -> tuple[TableRequirement, ...]:
        if self._created:
            return (AssertCreate(),)
        metadata = self._metadata
        return (
            AssertTableUUID(uuid=metadata.table_uuid),
            AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=None if base is None else base.snapshot_id),
            AssertCurrentSchemaId(current_schema_id=metadata.current_schema_id),
            AssertDefaultSpecId(default_spec_id=metadata.default_spec_id),
        )

    def _partitioned(self) -> Iterator[TableUpdate]:
        """Yield the updates that make the spec the table's."""
        metadata, number = self._metadata, self.spec.spec_id
        if self._created or metadata.default_spec_id == number:
            return
        is_new = number not in spec_by_id(metadata)
        if is_new:
            yield AddPartitionSpecUpdate(spec=self.spec)
        yield SetDefaultSpecUpdate(spec_id=-1 if is_new else number)

    def _schema(self) -> tuple[Schema, tuple[TableUpdate, ...]]:
        """Return the schema after the commit, and the updates that make it the table's."""
        metadata = self._metadata
        schema = self.fields.schema(metadata.current_schema_id)
        if self._created or metadata.schema().fields == schema.fields:
            return metadata.schema(), ()
        known = next((one for one in metadata.schemas if one.fields == schema.fields), None)
        if known is not None:
            return known, (SetCurrentSchemaUpdate(schema_id=known.schema_id),)
        fresh = self.fields.schema(1 + max(one.schema_id for one in metadata.schemas))
        last = max(metadata.last_column_id, fresh.highest_field_id)
        numbered = _numbered(AddSchemaUpdate(schema=fresh), last)
        return fresh, (numbered, SetCurrentSchemaUpdate(schema_id=-1))

    def _properties(self, mark: str) -> dict[str, str]:
        commit, before = self._commit, self._metadata.properties.get(COLUMNS, "[]")
        if commit is None:  # maintenance
            return {COMMIT: mark}
        partitioned = not self.spec.is_unpartitioned() or SPEC in self._metadata.properties
        return {
            **({SPEC: spec_property(self.spec, self._layout)} if self._layout is not None and partitioned else {}),
            COMMIT: mark,
            f"{APPLIED}{commit.app}": str(commit.seq),
            FACTS: json_bytes(commit.facts).decode(),
            COLUMNS: self.fields.property(before),
        }

    def _says(self) -> Mapping[str, str]:
        commit, base = self._commit, self._target.snapshot
        facts = {} if commit is None else {"app": commit.app, "seq": commit.seq, **commit.facts}
        mine = {name: facts[name] for name in ("app", "seq", MAINTENANCE) if name in facts}
        says = {SAYS: json.dumps(mine)} if mine else {}
        if not mine or MAINTENANCE in mine:
            says[UNCHANGED] = str((base and unchanged_since(base)) or self._target.version)
        return says


def fields_after(target: IcebergTable, columns: TargetSchema | None) -> Fields:
    """Return the fields that a table has after a commit.

    :param columns: None where the table keeps its own.
    """
    if columns is None:
        return target.fields
    if not target.exists:
        return first_fields(columns)
    return next_fields(columns, target.fields, target.table.metadata)


def _property_updates(change: PropertyChange, own: Mapping[str, str]) -> Iterator[TableUpdate]:
    """Yield the updates that change properties.

    :param own: further ones to set.
    """
    yield SetPropertiesUpdate(updates={**change.updates, **own})
    if change.removals:
        yield RemovePropertiesUpdate(removals=list(change.removals))


def _properties_once(updates: tuple[TableUpdate, ...]) -> tuple[TableUpdate, ...]:
    """Return updates that set properties once: Nessie refuses a second time."""
    stated = [update.updates for update in updates if isinstance(update, SetPropertiesUpdate)]
    every = {name: value for some in stated for name, value in some.items()}
    others = tuple(update for update in updates if not isinstance(update, SetPropertiesUpdate))
    return (*others, SetPropertiesUpdate(updates=every)) if stated else updates


def set_properties(target: IcebergTable, layout: TableLayout) -> bool:
    """Give a table the properties that its rule states; return whether it lacked some, or had others."""
    change = property_change(target.properties, layout.properties, _NEW_TABLE)
    if change:
        mark = uuid.uuid4().hex
        updates = tuple(_property_updates(change, {COMMIT: mark}))
        requirements = (AssertTableUUID(uuid=target.table.metadata.table_uuid),)
        settle(target, Prepared(target.identifier, requirements, updates, mark, 0))
    return bool(change)


def expire(target: IcebergTable, snapshot_ids: list[int]) -> None:
    """Remove snapshots from a table; those that are gone already are no error of it."""
    mark = uuid.uuid4().hex
    metadata, newest = target.table.metadata, target.snapshot
    requirements = (
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=None if newest is None else newest.snapshot_id),
    )
    updates = (RemoveSnapshotsUpdate(snapshot_ids=snapshot_ids), SetPropertiesUpdate(updates={COMMIT: mark}))
    settle(target, Prepared(target.identifier, requirements, updates, mark, 0))


def settle(target: IcebergTable, prepared: Prepared) -> None:
    """Make a commit, and look whether it went through where the catalog's answer leaves it open.

    :raises UnavailableError: ``sink.commit_conflict``, nothing of it is visible.
    :raises SinkError: the catalog refuses it.
    """
    metadata = target.table.metadata if target.exists else None
    table = target.table if metadata is not None else _Named(target.identifier)
    try:
        _ask(target.catalog, table, prepared)
    except (*UNKNOWN, Existing) as error:
        now = target.newest()
        if now.exists and now.properties.get(COMMIT) == prepared.mark:
            return
        if isinstance(error, Refused):  # no repeat helps
            raise as_sink_error(error, target.where) from error
        raise conflict(target, error) from error


def _ask(catalog: Catalog, table: Any, prepared: Prepared) -> None:
    """Ask a catalog for a commit, by REST with a body of our own: pyiceberg 0.12 drops what its classes do not have."""
    session = getattr(catalog, "_session", None)
    if session is None:
        catalog.commit_table(table, prepared.requirements, prepared.updates)
        return
    from pyiceberg.catalog.rest import Endpoints, TableIdentifier
    from pyiceberg.catalog.rest.response import _handle_non_200_response

    name = TableIdentifier(namespace=prepared.identifier[:-1], name=prepared.identifier[-1])
    path = catalog.url(Endpoints.update_table, prefixed=True, **catalog._split_identifier_for_path(name))
    token = table.config.get("token")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = session.post(path, data=json_bytes(prepared.document()), headers=headers)
    try:
        answer.raise_for_status()
    except OSError as error:  # of requests, which pyiceberg brings
        unknown = dict.fromkeys((500, 502, 504), CommitStateUnknownException)
        _handle_non_200_response(error, {409: CommitFailedException, **unknown})


def conflict(target: IcebergTable, error: Exception | None = None) -> UnavailableError:
    """Return the error of a commit that did not go through."""
    why = "" if error is None else f", or the catalog failed: {type(error).__name__}"
    return UnavailableError(
        "sink.commit_conflict",
        f"another writer committed to the table at the same moment{why}",
        where=target.where,
        hint="run again; keep other writers away from this table",
    )


class _Named:
    """Names a table that is to be made, as far as a catalog asks for it."""

    def __init__(self, identifier: tuple[str, ...]) -> None:
        self._identifier = identifier
        self.config: dict[str, str] = {}

    def name(self) -> tuple[str, ...]:
        """Return the table's name."""
        return self._identifier


def _new_id(metadata: TableMetadata) -> int:
    known = {snapshot.snapshot_id for snapshot in metadata.snapshots}
    while (number := uuid.uuid4().int >> 66) in known:
        pass
    return number
