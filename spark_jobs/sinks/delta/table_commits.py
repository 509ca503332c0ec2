# SPDX-License-Identifier: Apache-2.0
"""Make the commits of a table that add and remove files: by delta-rs, or by our own where it has no such commit."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
from deltalake import CommitProperties, Schema
from deltalake.transaction import AddAction, RemoveAction

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.errors import SinkError, UnavailableError
from airflow_provider_cdc.core.json_documents import json_bytes
from airflow_provider_cdc.core.model.table_comments import NO_COMMENTS
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.delta.comments import Said, said_after, said_by
from spark_jobs.sinks.delta.commit_marks import COMPACTION, custom_metadata, properties
from spark_jobs.sinks.delta.deletion_vectors import write_vectors
from spark_jobs.sinks.delta.logged_files import logged_files
from spark_jobs.sinks.delta.own_commits import (
    LaterFiles,
    checkpoint_is_due,
    first_commit,
    has_local_times,
    later_commit,
)
from spark_jobs.sinks.delta.sink_errors import conflict, refused
from spark_jobs.sinks.delta.stored_files import all_files
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.table_properties import property_change


class TableCommits:
    """Makes commits to one table.

    :param columns: give the table its properties and comments with the next commit; None where it keeps them.
    """

    def __init__(self, target: DeltaLocation, columns: TargetSchema | None = None) -> None:
        self._target, self._layout = target, None if columns is None else columns.layout
        self._comments = NO_COMMENTS if columns is None else columns.comments
        self._said: Said | None = None  # by the table after the commit, None where that stays

    def commit_files(
        self,
        schema: pa.Schema,
        added: list[AddAction],
        removed: list[RemoveAction],
        mode: str,
        commit: Commit,
        deleted: Mapping[str, IntArray] | None = None,
    ) -> None:
        """Commit files that were written; creates the table where there is none.

        :param mode: ``error`` for a new table, ``append``, or ``overwrite``: all other files go.
        :param deleted: positions of all deleted rows of files that stay, by path.
        :raises SinkError: files of other types would stand next to those that stay.
        """
        target = self._target
        if not target.exists:
            target.guarded(lambda: self._create(schema, added, commit))
            return
        if mode == "error":
            raise conflict(target.location)
        target.demand_ours(commit)
        if mode != "overwrite":
            target.demand_types(schema)
        goes = removed or deleted or mode == "overwrite"
        if (target.properties.get("delta.appendOnly") or "").lower() == "true" and goes:
            raise refused("it may only be appended to", target.location, target.properties)
        changes = mode == "append" and bool(target.lacks_columns(schema))
        changes = changes or mode == "overwrite" or (has_local_times(schema) and not self._has_local_times)
        says_otherwise = self._says_otherwise(schema, mode)
        self._said = self._said_after(schema) if changes or says_otherwise else None
        if target.deleted or deleted:
            columns = schema if changes else None
            target.guarded(lambda: self._commit_vectors(columns, added, removed, mode, commit, deleted or {}))
        elif changes and (mode != "overwrite" or (has_local_times(schema) and not self._has_local_times)):
            target.guarded(lambda: self._change(schema, added, removed, mode, commit))
        elif self._configuration is not None or says_otherwise:
            columns = schema if mode == "overwrite" else None
            target.guarded(lambda: self._change(columns, added, removed, mode, commit))
        else:
            target.guarded(lambda: self._commit(schema, added, removed, mode, commit))

    @property
    def _configuration(self) -> dict[str, str | None] | None:
        """The table's properties after the commit, None where they stay."""
        stored = self._target.properties
        change = None if self._layout is None else property_change(stored, self._layout.properties)
        return change.applied_to(stored) if change else None

    def _said_after(self, schema: pa.Schema) -> Said:
        """Return what the table says of itself after a commit."""
        return said_after(self._target.table if self._target.exists else None, schema.names, self._comments)

    def _says_otherwise(self, schema: pa.Schema, mode: str) -> bool:
        """Return whether a commit has to say so that the table says something else of itself."""
        if not self._comments.mark:
            return False
        now, then = said_by(self._target.table), self._said_after(schema)
        return now.description != then.description or (mode != "overwrite" and now.columns != then.columns)

    def _columns(self, schema: pa.Schema) -> Schema:
        """Return columns with their comments."""
        return self._said_after(schema).on(Schema.from_arrow(schema))

    @property
    def _has_local_times(self) -> bool:
        return "timestampNtz" in (self._target.table.protocol().writer_features or ())

    def _commit(
        self, schema: pa.Schema, added: list[AddAction], removed: list[RemoveAction], mode: str, commit: Commit
    ) -> None:
        """Commit by delta-rs."""
        table = self._target.table
        columns = self._columns(schema) if mode == "overwrite" else table.schema()
        table.create_write_transaction([*added, *removed], mode, columns, commit_properties=properties(commit))

    def _commit_vectors(
        self,
        schema: pa.Schema | None,
        added: list[AddAction],
        removed: list[RemoveAction],
        mode: str,
        commit: Commit | None,
        deleted: Mapping[str, IntArray],
    ) -> None:
        """Commit to a table that has deletion vectors, or gets some."""
        target = self._target
        if mode == "overwrite":
            removed = [file.removal() for file in all_files(target.live, None)]
        vectors = write_vectors(target.storage, deleted)
        had = [file.path for file in removed if target.has_deleted(file.path)]
        before = logged_files(target.storage, target.table.version(), [*had, *vectors])
        marks = {"cdc": json_bytes(COMPACTION).decode()} if commit is None else custom_metadata(commit)
        transaction = None if commit is None else (commit.app, commit.seq)
        files = LaterFiles(added, removed, vectors, before)
        mine = (marks, transaction, self._configuration, self._said)
        self._create_commit(*later_commit(target.table, schema, files, *mine))

    def _change(
        self, schema: pa.Schema | None, added: list[AddAction], removed: list[RemoveAction], mode: str, commit: Commit
    ) -> None:
        """Commit what gives the table other columns, features or properties.

        :param schema: None where the columns stay.
        """
        target = self._target
        if mode == "overwrite":
            removed = [file.removal() for file in all_files(target.live, None)]
        mine = (custom_metadata(commit), (commit.app, commit.seq), self._configuration, self._said)
        self._create_commit(*later_commit(target.table, schema, LaterFiles(added, removed), *mine))

    def _create(self, schema: pa.Schema, added: list[AddAction], commit: Commit) -> None:
        mine = (custom_metadata(commit), (commit.app, commit.seq), self._configuration or {})
        self._create_commit(*first_commit(schema, added, *mine, self._said_after(schema)))

    def _create_commit(self, name: str, content: bytes) -> None:
        # as delta-rs; the rows' files do not wait either
        if not self._target.storage.create(name, content, durable=False):
            raise conflict(self._target.location)

    def write_due_checkpoint(self, version: int) -> None:
        """Write a checkpoint of the log if a commit of ours made the version of one: opening reads what came since.

        A process that dies before it, or a store that fails, leaves the table as it is: the next one is ten commits
        away. Two writers write the same.
        """
        target = self._target
        if not checkpoint_is_due(version, target.properties):
            return
        with suppress(UnavailableError, SinkError), target.writing():
            target.newest_version()
            target.table.create_checkpoint()

    def set_properties(self, layout: TableLayout) -> None:
        """Give the table the properties that its rule states; where delta-rs has to commit, none goes (1.6.6)."""
        target = self._target
        change = property_change(target.properties, layout.properties)
        if not change:
            return
        if target.takes_files:
            configuration = change.applied_to(target.properties)
            content = later_commit(target.table, None, LaterFiles([], []), {}, None, configuration)
            target.guarded(lambda: self._create_commit(*content))
        elif change.updates:
            alter = target.table.alter
            target.guarded(lambda: alter.set_table_properties(dict(change.updates), raise_if_not_exists=False))

    def replace_files(self, added: list[AddAction], removed: list[RemoveAction]) -> None:
        """Commit files with the rows of others, in whose place they come; what others committed meanwhile may stay."""
        target, files = self._target, [replace(file, data_change=False) for file in added]
        if target.deleted:
            target.guarded(lambda: self._commit_vectors(None, files, removed, "append", None, {}))
            return
        marks = CommitProperties(custom_metadata={"cdc": json_bytes(COMPACTION).decode()})
        actions = [*files, *removed]
        target.guarded(
            lambda: target.table.create_write_transaction(
                actions, "append", target.table.schema(), commit_properties=marks
            )
        )
