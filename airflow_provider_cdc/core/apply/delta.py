"""What a table must become: the parts that resolving gives and a writer commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from airflow_provider_cdc.core.model.schema import TableSchema


@dataclass(frozen=True, slots=True)
class RowFailure:
    """A row that could not be typed: where it came from and why; never its values."""

    topic: str
    partition: int
    offset: int
    column: str
    reason: str


@dataclass(slots=True)
class Part:
    """What one span of schemas without a barrier does to the table.

    :param epoch: index of the epoch whose schema the table has afterwards.
    :param clear: the rows stored before are gone (TRUNCATE).
    :param upserts: full typed rows, at most one per key; of a table without key all added rows.
    :param deletes: keys whose row is gone; of a table without key all removed rows, full.
    :param positions: of the changes that made the upserts, None where that is not known of each.
    """

    epoch: int
    schema: TableSchema
    clear: bool
    upserts: pa.Table
    deletes: pa.Table
    positions: Callable[[], pa.ChunkedArray] | None = None

    @property
    def keyed(self) -> bool:
        """Whether rows are told apart by a key."""
        return bool(self.schema.key)


@dataclass(slots=True)
class Delta:
    """Everything that a stretch of changes does to one table.

    :param parts: in order; each needs the content the one before left.
    :param failures: rows that were left out.
    :param lossy: counts of values that were not kept as they were, by kind, e.g. ``zero_date``.
    :param changes: rows by operation.
    """

    parts: list[Part]
    failures: list[RowFailure] = field(default_factory=list)
    lossy: Counter[str] = field(default_factory=Counter)
    changes: dict[str, int] = field(default_factory=dict)
