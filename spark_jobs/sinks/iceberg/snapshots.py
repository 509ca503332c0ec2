# SPDX-License-Identifier: Apache-2.0
"""Write the snapshot of a commit: its manifests, the list of them, and what it says of itself.

pyiceberg's own producers know no delete files, copy the table's metadata 18 times a commit, and keep a manifest of
removed files for ever with each merge (0.12): what a commit costs grows with all commits before it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotSummaryCollector, Summary, update_snapshot_summaries

from spark_jobs.sinks.iceberg.live_files import LiveFiles
from spark_jobs.sinks.iceberg.partitions import lost_sources

_CODEC = "deflate"
_MOST_MANIFESTS = 24  # more are put together: each is read by every merge and every reader


@dataclass(slots=True)
class FileChange:
    """The files that a commit adds and removes.

    :param added: data files.
    :param deletes: files of position deletes.
    :param removed: data files, and deletes, that go.
    """

    added: list[DataFile] = field(default_factory=list)
    deletes: list[DataFile] = field(default_factory=list)
    removed: dict[str, DataFile] = field(default_factory=dict)

    def remove(self, *files: DataFile) -> None:
        """Remove files."""
        self.removed.update({file.file_path: file for file in files})

    def include(self, other: FileChange) -> None:
        """Add another part of the same commit."""
        self.added += other.added
        self.deletes += other.deletes
        self.removed.update(other.removed)


class _DeleteManifestWriter(ManifestWriterV2):  # type: ignore[misc]  # pyiceberg is read without its types
    """Writes a manifest of delete files, which pyiceberg only reads."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class SnapshotWriter:
    """Writes one snapshot.

    :param folder: of the table's metadata.
    :param parent: the snapshot that it follows, None for the first.
    :param schema: of the table then.
    :param spec_of: each partition spec of the table then, by its number.
    """

    def __init__(
        self,
        io: FileIO,
        folder: str,
        snapshot_id: int,
        parent: Snapshot | None,
        schema: Schema,
        spec_of: Mapping[int, PartitionSpec],
    ) -> None:
        self._io, self._folder, self._id, self._parent, self._schema = io, folder, snapshot_id, parent, schema
        self._spec_of = spec_of
        self._mark, self._count = uuid.uuid4(), 0

    def write(
        self, live: LiveFiles, change: FileChange, operation: Operation, sequence_number: int, says: Mapping[str, str]
    ) -> Snapshot:
        """Write the snapshot's files; return it.

        :param live: files of the parent.
        :param says: further properties of its summary.
        """
        new = [*self._added(ManifestContent.DATA, change.added), *self._added(ManifestContent.DELETES, change.deletes)]
        manifests = [*new, *self._others(live, change.removed)]
        path = f"{self._folder}/snap-{self._id}-0-{self._mark}.avro"
        parent_id = None if self._parent is None else self._parent.snapshot_id
        with write_manifest_list(
            2, self._io.new_output(path), self._id, parent_id, sequence_number, avro_compression=_CODEC
        ) as writer:
            writer.add_manifests(manifests)
        return Snapshot(
            snapshot_id=self._id,
            parent_snapshot_id=parent_id,
            manifest_list=path,
            sequence_number=sequence_number,
            summary=self._summary(change, operation, says),
            schema_id=self._schema.schema_id,
        )

    def _added(self, content: ManifestContent, files: Sequence[DataFile]) -> list[ManifestFile]:
        entries = [
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=self._id,
                sequence_number=None,
                file_sequence_number=None,
                data_file=file,
            )
            for file in files
        ]
        return self._manifests(content, entries)

    def _others(self, live: LiveFiles, removed: Mapping[str, DataFile]) -> list[ManifestFile]:
        """Return the manifests of the files that stay, and write those again whose files go; many become one."""
        others: list[ManifestFile] = []
        again = len(live.manifests) > _MOST_MANIFESTS
        for content in ManifestContent:
            mine = [manifest for manifest in live.manifests if manifest.content == content]
            entries = []
            for manifest in mine:
                of_manifest = live.entries(manifest) if removed or again else []
                gone = any(entry.data_file.file_path in removed for entry in of_manifest)
                if not gone and not again:
                    others.append(manifest)
                    continue
                entries += [self._with_status(entry, removed) for entry in of_manifest]
            others += self._manifests(content, entries)
        return others

    def _with_status(self, entry: ManifestEntry, removed: Mapping[str, DataFile]) -> ManifestEntry:
        goes = entry.data_file.file_path in removed
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.DELETED if goes else ManifestEntryStatus.EXISTING,
            snapshot_id=self._id if goes else entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )

    def _manifests(self, content: ManifestContent, entries: Sequence[ManifestEntry]) -> list[ManifestFile]:
        """Write entries into a manifest for each partition spec."""
        by_spec: dict[int, list[ManifestEntry]] = {}
        for entry in entries:
            spec_id = entry.data_file.spec_id
            if entry.status == ManifestEntryStatus.DELETED and lost_sources(self._spec_of[spec_id], self._schema):
                continue  # of what has no type any more nothing can be written, and no reader misses it
            by_spec.setdefault(spec_id, []).append(entry)
        return [self._manifest(content, some, self._spec_of[spec_id]) for spec_id, some in by_spec.items()]

    def _manifest(
        self, content: ManifestContent, entries: Sequence[ManifestEntry], spec: PartitionSpec
    ) -> ManifestFile:
        kind = _DeleteManifestWriter if content == ManifestContent.DELETES else ManifestWriterV2
        output = self._io.new_output(f"{self._folder}/{self._mark}-m{self._count}.avro")
        self._count += 1
        with kind(spec, self._schema, output, self._id, _CODEC) as writer:
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    def _summary(self, change: FileChange, operation: Operation, says: Mapping[str, str]) -> Summary:
        collector = SnapshotSummaryCollector()
        for file in (*change.added, *change.deletes):
            collector.metrics.add_file(file)  # its own way wants the partition of each file as a path
        for file in change.removed.values():
            collector.metrics.remove_file(file)
        before = None if self._parent is None else self._parent.summary
        # pyiceberg takes the totals of a replacement for unknown (0.12)
        summary = update_snapshot_summaries(Summary(Operation.OVERWRITE, **collector.build(), **says), before)
        return Summary(operation, **summary.additional_properties)
