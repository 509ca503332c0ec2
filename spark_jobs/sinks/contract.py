# SPDX-License-Identifier: Apache-2.0
"""Define the action that a writer carries out on one table, and the rows of it that several tasks write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import pyarrow as pa
from deltalake.transaction import AddAction

from airflow_provider_cdc.core.apply.merge_plan import LaterRows
from airflow_provider_cdc.core.apply.value_forms import ValueForms
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.delta.table import DeltaLocation

Verb = Literal["create", "append", "merge", "subtract", "overwrite"]


@dataclass(slots=True)
class WrittenRows:
    """Rows that a task wrote for an action that another one carries out.

    :param added: files in the table's folder, which a commit adds or Spark reads.
    :param staged: names of parquet files, for the Spark writer.
    :param ranges: least and greatest value of each key column of the staged rows (``KeyRanges.document``).
    """

    added: list[AddAction] = field(default_factory=list)
    staged: list[str] = field(default_factory=list)
    ranges: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Action:
    """One commit to make.

    :param rows: to create with, append, overwrite with, or to put in by key.
    :param deletes: keys to remove, for ``merge``; whole rows, for each of which one goes, for ``subtract``.
    :param key: names of the key's columns, for ``merge``.
    :param later: rows that are typed while they are written, in addition to ``rows``, which has none then.
    :param remaining: for ``create`` and ``overwrite``, stored rows that the table keeps, read while it is written.
    :param unmatched: for ``subtract``, is called before the commit with the deletes that have no equal row.
    :param parts: rows that other tasks wrote, in addition to ``rows``, which has none then.
    :param forms: for ``subtract``, columns whose values a tool writes in several ways.
    :param typed: is called with the number of new rows when all are typed; what it raises prevents the commit.
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

    @property
    def touches(self) -> bool:
        """Return whether rows may be added or removed, if none fails."""
        adds = self.rows.num_rows or self.later is not None or self.parts
        return bool(adds or (self.deletes is not None and self.deletes.num_rows))

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


class RowFiles(Protocol):
    """Takes the rows of one part of an action."""

    def add(self, rows: pa.Table) -> None:
        """Take rows."""
        ...

    def written(self) -> WrittenRows:
        """Write what is left; return what the action needs."""
        ...

    def discard(self) -> None:
        """Remove the files: the action does not get them."""
        ...


class Writer(Protocol):
    """Makes commits; one behaviour suite runs over all of them."""

    def commit(self, target: DeltaLocation, action: Action) -> int | None:
        """Carry out one action in one commit that bears ``action.commit``.

        :return: the table's version then, None where that is known only later.
        :raises UnavailableError: nothing of it is visible; may succeed later.
        """
        ...

    def takes_parts(self, target: DeltaLocation, schema: pa.Schema) -> bool:
        """Return whether several tasks can write an action's rows."""
        ...

    def row_files(self, target: DeltaLocation, schema: pa.Schema, key: Sequence[str]) -> RowFiles | None:
        """Return what writes a part of an action's rows; None where one task has to write them all.

        :param schema: of the rows.
        :param key: names of the key's columns.
        """
        ...

    def adds_columns(self, target: DeltaLocation, schema: pa.Schema, *, merges: bool) -> bool:
        """Return whether a commit may have further columns behind the table's, which stored rows lack.

        :param merges: whether it merges rows, else it appends rows or nothing.
        """
        ...

    def subtracts(self, target: DeltaLocation) -> bool:
        """Return whether a commit may remove rows of a table without key where they are (``subtract``)."""
        ...
