# SPDX-License-Identifier: Apache-2.0
"""Define the plan that resolving makes and a writer commits: step by step what a table must become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.row_sets import group_numbers, numbers_in_groups
from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.model.schema import TableSchema

if TYPE_CHECKING:
    from airflow_provider_cdc.core.apply.contradictions import GapWitness


@dataclass(frozen=True, slots=True)
class RowFailure:
    """A row that could not be typed: where it came from and why; never its values."""

    topic: str
    partition: int
    offset: int
    column: str
    reason: str


class ImagesLack(Exception):
    """Rows lack columns, which other changes have to complete: resolve all keys of the table at once, not in pieces."""


@dataclass(frozen=True, slots=True)
class LaterRows:
    """Rows that are typed a piece at a time, when they are written.

    :param most: rows, if none of them fails.
    :param pieces: types them; to be called once. Raises :class:`ImagesLack`.
    """

    most: int
    pieces: Callable[[], Iterator[pa.Table]]


@dataclass(frozen=True, slots=True)
class OpenRemovals:
    """Removals of a table without key that have found no row so far.

    :param rows: the rows that they remove.
    :param positions: newest that the row which a removal waits for may have.
    """

    rows: pa.Table
    positions: pa.Array

    @staticmethod
    def joined(*some: OpenRemovals | None) -> OpenRemovals | None:
        """Return several as one, None where there is none."""
        there = [one for one in some if one is not None and one.rows.num_rows]
        if len(there) < 2:
            return there[0] if there else None
        return OpenRemovals(
            pa.concat_tables([one.rows for one in there]), pa.concat_arrays([one.positions for one in there])
        )

    def take(self, some: IntArray) -> OpenRemovals:
        """Return those of these indexes."""
        return OpenRemovals(self.rows.take(pa.array(some)), self.positions.take(pa.array(some)))


@dataclass(frozen=True, slots=True)
class Emptied:
    """The source's table was emptied by a TRUNCATE, or a full snapshot states all of its rows again.

    :param time: of the source, in microseconds since the epoch, None where that is not known.
    :param restated: whether it is a snapshot: its rows have its position.
    """

    position: str
    time: int | None = None
    restated: bool = False


@dataclass(slots=True)
class MergeStep:
    """Change the table as one span of schemas without a barrier does.

    :param version: index of the schema version that the source's table has afterwards.
    :param clear: the rows stored before are gone (TRUNCATE).
    :param emptied: where the mode of the table keeps them, what emptied the source's table before.
    :param upserts: full typed rows, at most one per key; of a table without key all added rows.
    :param deletes: keys whose row is gone; of a table without key all removed rows, full.
    :param positions: of the changes that made the upserts, None where that is not known of each.
    :param netted: of a table without key rows that were added and removed again; they are not among the others.
    :param open_until: of a table without key, returns the newest position of a row that each of the deletes may be of.
    :param open: of a table without key the removals of earlier batches that this step brings no row for.
    :param settled: how many it brings a row for.
    :param later: the upserts, if they are typed when they are written; ``upserts`` has none then.
    :param witness: compares the changes with the rows that they find, None where that is not asked for.
    """

    version: int
    schema: TableSchema
    clear: bool
    upserts: pa.Table
    deletes: pa.Table
    positions: Callable[[], pa.ChunkedArray] | None = None
    later: LaterRows | None = None
    netted: int = 0
    open_until: Callable[[], pa.Array] | None = None
    open: OpenRemovals | None = None
    settled: int = 0
    witness: GapWitness | None = None
    emptied: Emptied | None = None

    @property
    def adds(self) -> bool:
        """Return whether there are upserts, if none of them fails."""
        return bool(self.upserts.num_rows or (self.later is not None and self.later.most))

    @property
    def begins_empty(self) -> bool:
        """Return whether the source's table was emptied first."""
        return self.clear or self.emptied is not None

    def type_now(self) -> None:
        """Type the upserts that were left for later."""
        if self.later is not None:
            self.upserts = pa.concat_tables([self.upserts, *self.later.pieces()])
            self.later = None

    def still_open(self, unmatched: pa.Table) -> OpenRemovals | None:
        """Return all removals that are open after this step.

        :param unmatched: the deletes that found no stored row. Of equal ones the newest are those: a row that is still
            to come may be of any time before them.
        """
        mine = None
        if unmatched.num_rows:
            assert self.open_until is not None  # the table has no key
            groups = group_numbers(pa.concat_tables([self.deletes, unmatched]).columns)
            own, open_groups = np.split(groups, [self.deletes.num_rows])
            newest_first = numbers_in_groups(own[::-1])[::-1]
            some = np.flatnonzero(newest_first < np.bincount(open_groups, minlength=int(groups.max()) + 1)[own])
            mine = OpenRemovals(self.deletes, self.open_until()).take(some)
        return OpenRemovals.joined(self.open, mine)

    @property
    def keyed(self) -> bool:
        """Return whether a key identifies the rows."""
        return bool(self.schema.key)

    @property
    def key(self) -> list[str]:
        """The names of the key's columns in the stored table; none without a key."""
        return self.deletes.column_names if self.keyed else []


@dataclass(slots=True)
class MergePlan:
    """Everything that a stretch of changes does to one table.

    :param steps: in order; each needs the content that the step before left.
    :param failures: rows that were left out.
    :param lossy: counts of values that were not kept as they were, by kind, e.g. ``zero_date``.
    :param changes: rows by operation.
    """

    steps: list[MergeStep]
    failures: list[RowFailure] = field(default_factory=list)
    lossy: Counter[str] = field(default_factory=Counter)
    changes: dict[str, int] = field(default_factory=dict)

    @property
    def witnesses(self) -> list[GapWitness]:
        """The witness of each step that compares its changes with the rows that they find."""
        return [step.witness for step in self.steps if step.witness is not None]
