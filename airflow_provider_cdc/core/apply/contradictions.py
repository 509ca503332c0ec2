# SPDX-License-Identifier: Apache-2.0
"""Note changes that contradict the log or the table, unless a partition that is read less far may explain them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.apply.sequence_gaps import changes_behind_gaps
from airflow_provider_cdc.core.apply.source_order import of_snapshots
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.model.position_columns import event_of, generation_text_of, moment_of

KEY_THERE = "key_there"  # a row was inserted whose key another row has
KEY_MISSING = "key_missing"  # a row was updated or deleted that is not there
ROW_MISSING = "row_missing"  # the same of a table without key: no row there has all of its values
ROW_DIFFERS = "row_differs"  # the row before the change has other values than the one that is there
LOAD_OVERLAP = "load_overlap"  # a table without key changed while its full load was read
SEQUENCE_GAP = "sequence_gap"  # a change is missing before this one
_NAMED = 20  # contradictions of one kind that are named one by one


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A change that did not find what it says, or before which one is missing.

    :param key: digest of the key, the same for equal keys of one table; empty without key.
    :param column: first column whose value differs, empty where the row's being there is what differs.
    """

    kind: str
    topic: str
    partition: int
    offset: int
    position: str
    key: str
    column: str = ""

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Verification:
    """Say how far changes are compared with the rows that they found.

    :param share: of the rows of which values are compared, from 0 to 1, beyond the first thousand.
    :param whole: whether stored rows are read whole for that, where a commit needs only their keys.
    :param marks: the newest position that each ``topic/partition`` has shown: what one that is read less far may still
        bring explains what does not fit. None where all that there is was read.
    :param partitions: each ``topic/partition`` that there is.
    :param loaded_until: Kafka's time of the newest row of the table's full load, in milliseconds, where that has no
        exact place in the source's log; 0 without one.
    :param lacked: as of ``Proof.lacked``.
    :param base_time: newest source time among the stored rows, in microseconds since the epoch, None without any.
    """

    share: float = 1 / 16
    whole: bool = False
    marks: Mapping[str, str] | None = None
    partitions: Collection[str] = ()
    loaded_until: int = 0
    lacked: str = ""
    base_time: int | None = None

    def compares_rows(self, wire: Format) -> bool:
        """Return whether rows before changes are compared, too, and not only keys.

        To read and to type them costs a fifth of a batch in formats that a clock orders, whose images before have some
        columns only; what it shows is counted there and stops nothing. So it has to be asked for.
        """
        return self.whole or wire.order != "clock"


@dataclass(slots=True)
class Findings:
    """Hold the outcome of comparing.

    :param counts: contradictions by kind.
    :param first: the first of them.
    :param agreed: rows that had all values that the log says.
    :param undecided: contradictions that a partition which is read less far may explain; they are not among the others.
    :param lacked: what shows that the table's full load lacks all changes behind it (``Proof.lacked``).
    """

    counts: dict[str, int] = field(default_factory=dict)
    first: list[Contradiction] = field(default_factory=list)
    agreed: int = 0
    undecided: int = 0
    lacked: str = ""

    @staticmethod
    def joined(some: Iterable[Findings]) -> Findings:
        """Return those of several steps as one."""
        joined, counts = Findings(), Counter[str]()
        for one in some:
            counts.update(one.counts)
            joined.first += one.first
            joined.agreed += one.agreed
            joined.undecided += one.undecided
            joined.lacked = one.lacked or joined.lacked
        joined.counts = dict(counts)
        return joined


class GapWitness:
    """Note the changes of one step whose predecessor in their transaction is missing.

    :param rows: row index of each event; a change that moves a key has two.
    :param keys: of the events, None for a table without key.
    :param applied: of every change whether the stored rows went through it.
    :param base_position: newest position that the stored rows went through.
    :param numbered: changes of the table whose numbers count, ascending; None for all.
    :param lacks: of a table without key, returns what shows that a snapshot that sees one moment of the source was read
        before changes; nothing where that may not be so.
    :ivar findings: what was found so far.
    :ivar is_spread: whether the table's changes come on several partitions.
    """

    def __init__(
        self,
        typer: RowTyper,
        rows: IntArray,
        keys: pa.Table | None,
        applied: BoolArray,
        base_position: str,
        verification: Verification,
        numbered: IntArray | None = None,
        lacks: Callable[[IntArray], str] | None = None,
    ) -> None:
        self._typer, self._verification = typer, verification
        self._by_clock = typer.wire.order == "clock"
        self._event_rows, self._event_keys = rows, keys
        self.findings = Findings()
        self._positions = typer.changes.rows.column("position").take(pa.array(rows))
        self.is_spread = False
        self._certain = self._is_read()
        numbered = np.flatnonzero(~typer.foreign) if numbered is None else numbered
        self._note(SEQUENCE_GAP, self._behind_gaps(numbered, applied, base_position))
        if lacks is not None:
            self._note_overlap(applied, lacks)

    @property
    def whole(self) -> bool:
        """Return whether stored rows are to be read whole, where only their keys are needed."""
        return self._verification.whole

    @property
    def of_later_log(self) -> bool:
        """Return whether changes are of a log that began again: what its source did before it may be in no log."""
        if self._by_clock:
            return False  # nothing shows it
        generations = pc.unique(generation_text_of(self._positions)).to_pylist()
        return any(int(generation) for generation in generations)

    def meet(self, rows: pa.Table) -> None:
        """Take stored rows that go or are replaced."""

    def finish(self) -> Findings:
        """Return the outcome, once all stored rows of the changed keys were met."""
        return self.findings

    def _may_be_loaded(self, skew: int) -> BoolArray:
        """Return of which events the table's full load may have what they did: those from before it was written.

        :param skew: milliseconds that the clocks of source and broker may differ by.
        """
        rows, until = self._typer.changes.rows, self._verification.loaded_until
        name = "source" if self._by_clock else "source_time"
        if not until or name not in rows.column_names:
            none: BoolArray = np.zeros(len(self._event_rows), dtype=bool)
            return none
        times = rows.column(name).cast(pa.int64()).take(pa.array(self._event_rows))
        may: BoolArray = pc.less_equal(times, (until + skew) * 1_000).fill_null(True).to_numpy()
        return may

    def _note_overlap(self, applied: BoolArray, lacks: Callable[[IntArray], str]) -> None:
        """Note the changes of a table without key that its full load may have; its rows may show that it lacks them."""
        rows, wire = self._event_rows, self._typer.wire
        new = ~applied[rows] & ~of_snapshots(self._typer.changes.rows)[rows]
        overlapping = np.flatnonzero(self._may_be_loaded(skew=0) & new)
        if not len(overlapping):
            return
        lacked = lacks(rows[overlapping]) if "younger_snapshots" in wire.carries else ""
        if not lacked:
            self._note(LOAD_OVERLAP, overlapping)
        elif self._certain[overlapping[0]]:  # no earlier one can come
            self.findings.lacked = lacked

    def _behind_gaps(self, numbered: IntArray, applied: BoolArray, base_position: str) -> IntArray:
        """Return events whose predecessor in their transaction is missing; it may be one that counts no more."""
        rows = self._typer.changes.rows
        fresh = pc.greater(rows.column("position").take(pa.array(numbered)), base_position).to_numpy()
        behind = changes_behind_gaps(rows, numbered[~applied[numbered] & fresh])
        of_rows, events = np.unique(self._event_rows, return_index=True)
        behind_gaps: IntArray = events[np.isin(of_rows, behind)]
        return behind_gaps

    def _is_read(self) -> BoolArray:
        """Return behind which events every partition of the table's topics is read."""
        marks, every = self._verification.marks, np.ones(len(self._positions), dtype=bool)
        if marks is None:
            return every
        rows = self._typer.changes.rows.column("topic").take(pa.array(self._event_rows))
        topics = set(rows.cast(pa.string()).unique().to_pylist())
        names = {name for name in {*marks, *self._verification.partitions} if name.rpartition("/")[0] in topics}
        self.is_spread = len(names) > 1
        if not self.is_spread:
            return every
        read = [marks.get(name, "") for name in names]
        # other rows of the newest event may lie on a partition that is read up to the one before
        event = moment_of if self._by_clock else event_of
        behind: BoolArray = pc.less(event(self._positions), event(pa.scalar(min(read)))).to_numpy()
        return behind

    def _found_on_their_partition(self, event: IntArray) -> BoolArray:
        """Return which changes must have found what stands before them on their own partition: that of their key."""
        schema = self._typer.timeline.schema
        key = {column.name for column in schema.key_columns}
        on_own: BoolArray = np.zeros(len(event), dtype=bool)
        if key and "keyed_partitions" in self._typer.wire.carries:
            on_own = self._typer.have_key(self._event_rows[event], key)
        return on_own

    def _note(self, kind: str, event: IntArray, columns: list[str] | None = None) -> None:
        """Note the changes of some events as contradictions."""
        findings = self.findings
        certain = self._certain[event] | (kind == LOAD_OVERLAP)
        if kind in (KEY_MISSING, ROW_DIFFERS) and not certain.all():
            certain = certain | self._found_on_their_partition(event)
        findings.undecided += int((~certain).sum())
        columns = [name for name, one in zip(columns, certain, strict=True) if one] if columns else None
        event = event[certain]
        if not len(event):
            return
        findings.counts[kind] = findings.counts.get(kind, 0) + len(event)
        rows = self._typer.changes.rows
        named = sum(other.kind == kind for other in findings.first)
        for number, one in enumerate(event[: max(0, _NAMED - named)].tolist()):
            row_index = int(self._event_rows[one])
            where = {
                name: rows.column(name)[row_index].as_py() for name in ("topic", "partition", "offset", "position")
            }
            column = columns[number] if columns else ""
            findings.first.append(Contradiction(kind, **where, key=_digest(self._event_keys, one), column=column))


def _digest(keys: pa.Table | None, row: int) -> str:
    if keys is None:
        return ""
    text = repr([keys.column(name)[row].as_py() for name in keys.column_names])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
