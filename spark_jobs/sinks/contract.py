# SPDX-License-Identifier: Apache-2.0
"""Define what a kind of table has to be able to do: open a table, commit to it, maintain it.

A kind is a module with ``open_sink`` that ``core.config.sinks.kinds`` names; tests/sinks runs one behaviour suite
over all of them. Rules for all:

1. A commit has its rows, its columns, ``Commit.app``, ``Commit.seq`` and ``Commit.facts``, or nothing of it is visible.
2. A commit goes onto the version that was opened. If somebody else committed since, it raises ``sink.commit_conflict``.
3. ``UnavailableError`` means that nothing of the commit is visible, and that it may succeed later.
4. Files of a failed commit stay unless nothing can name them.
5. Rows are read with the types that they were written with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self, TypeVar

import pyarrow as pa

from airflow_provider_cdc.core.apply.merge_plan import LaterRows
from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.apply.value_forms import ValueForms
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Choice, Commit, Owner
from spark_jobs.sinks.driver_side import SparkSide, StagedCommits
from spark_jobs.sinks.names import NameRule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Runner = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""Runs a function of a module over documents, in tasks, and returns the answers in the order of the documents."""

Verb = Literal["create", "append", "merge", "subtract", "overwrite"]


@dataclass(slots=True)
class WrittenRows:
    """Rows that a task wrote for an action that another one carries out.

    :param added: the sink's own descriptions of data files, which a commit adds or Spark reads.
    :param staged: names of parquet files, for the Spark writer.
    :param ranges: least and greatest value of each key column of the staged rows (``KeyRanges.document``).
    """

    added: list[Any] = field(default_factory=list)
    staged: list[str] = field(default_factory=list)
    ranges: dict[str, Any] = field(default_factory=dict)


class RowsMet(Protocol):
    """Takes the stored rows that a merge removes or replaces, and may prevent the commit.

    :ivar whole: rows are to be read whole, also where the writer needs only their keys.
    """

    @property
    def whole(self) -> bool:
        """Return whether rows are to be read whole."""

    def meet(self, rows: pa.Table) -> None:
        """Take rows under the action's columns: whole ones, or the columns of their key alone."""

    def demand_agreement(self) -> None:
        """Look at what was met, once that is every row; what it raises prevents the commit."""


@dataclass(slots=True)
class Action:
    """One commit to make.

    :param rows: to create with, append, overwrite with, or to put in by key.
    :param columns: of the table after the commit, which are those of ``rows``; None where it keeps its own.
    :param deletes: keys to remove, for ``merge``; whole rows, for each of which one goes, for ``subtract``.
    :param key: names of the key's columns, for ``merge``.
    :param later: rows that are typed while they are written, in addition to ``rows``, which has none then.
    :param remaining: for ``create`` and ``overwrite``, stored rows that the table keeps, read while it is written.
    :param unmatched: for ``subtract``, is called before the commit with the deletes that have no equal row.
    :param parts: rows that other tasks wrote, in addition to ``rows``, which has none then.
    :param forms: for ``subtract``, columns whose values a tool writes in several ways.
    :param typed: is called with the number of new rows when all are typed; what it raises prevents the commit.
    :param met: for ``merge``, takes the stored rows that go; a writer that cannot say which those are leaves it alone.
    """

    verb: Verb
    commit: Commit
    rows: pa.Table
    deletes: pa.Table | None = None
    key: Sequence[str] = field(default_factory=tuple)
    later: LaterRows | None = None
    remaining: Iterable[pa.Table] | None = None
    parts: Sequence[WrittenRows] = ()
    unmatched: Callable[[pa.Table], None] = field(default=lambda rows: None)
    forms: ValueForms = field(default_factory=lambda: ValueForms({}))
    typed: Callable[[int], None] = field(default=lambda rows: None)
    columns: TargetSchema | None = None
    met: RowsMet | None = None

    @property
    def order(self) -> list[str]:
        """Return the columns in whose order rows are to be written, none for that in which they come."""
        return [] if self.columns is None else self.columns.order

    def pieces(self) -> Iterator[pa.Table]:
        """Yield all rows, those that the table keeps first; to be called once."""
        yield from self.remaining or ()
        count = self.rows.num_rows
        if self.rows.num_rows:
            yield self.rows
        for piece in self.later.pieces() if self.later is not None else ():
            count += piece.num_rows
            yield piece
        self.typed(count)


@dataclass(frozen=True, slots=True)
class WriterRule:
    """Say which writer may make the commits of one table.

    :param settled: choice for all commits, None where it depends on what a merge touches.
    :param limit: bytes of files up to which a merge is the task writer's.
    :param memory: bytes that a task has.
    :param obstacle: why Spark cannot write in this batch, empty where it can.
    """

    settled: Choice | None
    limit: int
    memory: int
    obstacle: str = ""


class TableSize(NamedTuple):
    """Hold the rows of a table, None where its files do not say it, and the bytes of its files."""

    rows: int | None
    size: int | None


class Stored(Protocol):
    """Describe a location: a table in one version, or none.

    :ivar is_checked: the table is known to be ours to change; else each commit looks.
    """

    is_checked: bool

    @property
    def location(self) -> str:
        """Return where it lies."""

    @property
    def exists(self) -> bool:
        """Return whether there is a table."""

    def holds_files(self) -> bool:
        """Return whether anything lies there, be it of a table or not."""

    @property
    def version(self) -> int | None:
        """The version that was opened, None when there is no table; each commit of anybody makes a higher one."""

    @property
    def schema(self) -> pa.Schema:
        """The table's columns.

        :raises SinkError: ``sink.missing``.
        """

    def applied(self, app: str) -> int | None:
        """Return the newest batch that an application committed, None when it never did; maintenance keeps it."""

    def facts(self, app: str) -> dict[str, Any] | None:
        """Return the facts of an application's newest commit, None where they are no longer kept."""

    def newest_app(self, *, of_anybody: bool = True) -> str | None:
        """Return the application of the newest commit that may have changed rows.

        Empty where that names none, so it is not of a pipeline; None where that is no longer kept.

        :param of_anybody: whether it may name none; else the newest that names one.
        """

    def is_written_by(self, app: str) -> bool:
        """Return whether no other application of ours wrote after an application's newest commit.

        True also where that is no longer kept.
        """

    def foreign_commit(self, since: int, owner: Owner | None = None) -> str | None:
        """Return what a commit after a version did that may have changed rows and is not ours, None without one.

        :param owner: whose commits are ours, None for those of any pipeline.
        """

    def last_maintained(self, since: int) -> int:
        """Return the newest version up to which all commits after a version are known to leave the rows alone."""

    def holds_same(self, other: Self) -> bool:
        """Return whether two versions have the same rows and columns, as far as the files show."""

    def at_version(self, version: int) -> Self:
        """Open another version of the table."""

    def is_empty(self) -> bool:
        """Return whether the table has no rows, as far as that is known without reading any."""

    def size(self) -> TableSize:
        """Return what the table holds, without reading any row."""

    def added_bytes(self) -> int:
        """Return the bytes of the files that the commit of the opened version added, as its log states them."""

    def rows(self, keys: pa.Table | None = None) -> pa.Table:
        """Return all rows, columns in the table's order; with keys only those that may have one of them."""

    def pieces(self, first: str | None = None) -> Iterator[pa.Table]:
        """Yield all rows, columns in the table's order, some at a time.

        :param first: column in whose order the files are read.
        """


Table = TypeVar("Table", bound=Stored)
Opened = TypeVar("Opened", bound=Stored, contravariant=True)


class RowFiles(Protocol):
    """Takes the rows of one part of an action."""

    def add(self, rows: pa.Table) -> None:
        """Take rows."""

    def written(self) -> WrittenRows:
        """Write what is left; return what the action needs."""

    def discard(self) -> None:
        """Remove the files: the action does not get them."""


class Writer(Protocol[Opened]):
    """Makes the commits of one table.

    :ivar choice: which writer made the newest commit and why, None before the first.
    """

    choice: Choice | None

    def commit(self, target: Opened, action: Action) -> int | None:
        """Carry out one action in one commit that bears ``action.commit``.

        :return: the table's version then, None where the driver is to make the commit.
        :raises UnavailableError: nothing of it is visible; may succeed later.
        """

    def may_need_spark(self, target: Opened) -> bool:
        """Return whether a merge into the table may be one for the Spark writer, if the batch had a session."""

    def takes_parts(self, target: Opened, columns: TargetSchema) -> bool:
        """Return whether several tasks can write an action's rows."""

    def row_files(self, target: Opened, columns: TargetSchema) -> RowFiles | None:
        """Return what writes a part of an action's rows; None where one task has to write them all.

        :param columns: of the rows.
        """

    def evolves(self, target: Opened, old: TargetSchema, new: TargetSchema, *, merges: bool) -> bool:
        """Return whether a commit may change the table's columns while its stored rows stay where they are.

        Stored rows have NULL in a column that is new, and equal values in one whose type is another.

        :param merges: whether it merges rows, else it appends rows or nothing.
        """

    def subtracts(self, target: Opened) -> bool:
        """Return whether a commit may remove rows of a table without key where they are (``subtract``)."""


class PreviewWriter(Writer[Opened], Protocol[Opened]):
    """Says what a commit would touch, and commits nothing.

    :ivar files: files that the commit would write again.
    :ivar file_bytes: their size.
    """

    files: int
    file_bytes: int


class Sink(Protocol[Table]):
    """Opens and writes the tables of one kind in one store.

    :ivar spark: the half that lets Spark take large merges, None for a kind that single tasks write.
    :ivar names: how its tables are named.
    """

    spark: SparkSide | None
    names: NameRule

    def open(self, location: str, version: int | None = None) -> Table:
        """Open what lies at a location.

        :param version: None for the newest.
        :raises SinkError: ``sink.unreadable``.
        :raises UnavailableError: the store failed.
        """

    def writer(self, rule: WriterRule, storage: Storage, folder: str) -> Writer[Table]:
        """Return the writer of a table.

        :param storage: takes what is staged for Spark, in a folder.
        """

    def task_writer(self) -> Writer[Table]:
        """Return a writer that makes each commit in this process."""

    def preview(self, rule: WriterRule) -> PreviewWriter[Table]:
        """Return the writer of a preview."""

    def discard(self, location: str, rows: Sequence[WrittenRows]) -> None:
        """Remove files that tasks wrote and that no commit tried to add."""

    def committer(self, session: SparkSession | None, storage: Storage, run: Runner) -> StagedCommits | None:
        """Return what commits on the driver the actions that tasks staged in a lake; None where they make theirs.

        :param session: None in a batch without one.
        :param run: hands out tasks.
        """

    def remove(self, target: Table) -> None:
        """Remove a table that was opened before it was made, and all that lies there: for the table of a probe only.

        What was made to hold it goes, too: an empty folder, a namespace. Nothing happens where nothing is.

        :raises CdcError: some of it is left.
        """

    def maintain(
        self,
        target: Table,
        report: TableMaintenance,
        maintenance: Maintenance,
        first: str | None,
        layout: TableLayout | None = None,
    ) -> None:
        """Put small files together, and remove files of older versions and what grows with each commit.

        Doing it again does nothing. A batch may commit at the same time: its commit comes first then. Of a table that
        is purged no file is left but those of its newest version, and none of these has a row that it deletes; then no
        batch may be at work.

        :param report: takes what was done.
        :param first: column in whose order neighbouring files are found.
        :param layout: how the files are to lie, None as they do.
        :raises UnavailableError: ``sink.commit_conflict``: to be done again; or the store failed.
        """
