# SPDX-License-Identifier: Apache-2.0
"""Join the slices in envelopes of Tencent DTS to whole groups.

Rules: docs/wire/tencent-dts.md 4, 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.formats.common.change_builder import RAW_LIMIT
from airflow_provider_cdc.core.formats.common.protobuf_columns import MessageReader
from airflow_provider_cdc.core.formats.common.record_group_runs import SliceColumns, follow
from airflow_provider_cdc.core.formats.common.record_groups import SliceGroup, SliceGroups
from airflow_provider_cdc.core.formats.contract import Records, SliceInfo
from airflow_provider_cdc.core.formats.dts.notices import Notices
from airflow_provider_cdc.core.formats.dts.producers import sender_of, senders_of
from airflow_provider_cdc.core.formats.dts.values import offsets_of

VERSION = 1


class Slices:
    """Join the slices of some records; a record that is not part of a whole group gets its notice at once.

    :param envelopes: reads envelopes.
    :param notices: takes the notices.
    :ivar wholes: the last record of each whole group.
    :ivar open: whether a group was not at its end with the last record; ``heard`` are the senders known by then.
    """

    def __init__(self, records: Records, envelopes: MessageReader, notices: Notices) -> None:
        self._records, self._notices = records, notices
        self._lost: dict[int, int] = {}
        self._explained: set[int] = set()
        self._apart: dict[int, list[int]] = {}  # by last record all records, of whole groups with others between them
        batch, malformed = envelopes.read(pa.array([value or b"" for value in records.values], pa.binary()))
        self._contents = batch.column("data")
        self._numbers = [batch.column(name).to_numpy().astype(np.int64) for name in ("version", "index", "total")]
        self._malformed = malformed
        self.wholes: Any = self._follow()
        total = np.maximum(self._numbers[2][self.wholes], 1)
        total[np.isin(self.wholes, list(self._apart))] = 1
        self._firsts: Any = self.wholes - total + 1

    def _follow(self) -> Any:
        """Return the last record of each whole group."""
        groups, wholes = SliceGroups(self._records.heard), list[int]()
        ended = list[SliceGroup]()
        parts = self._parts()
        runs = follow(groups, parts, lambda record: ended.extend(self._add(groups, record)))
        lasts = [np.array([], np.int64)]
        for run in runs:
            closes = parts.slice_index[run] + 1 == parts.total[run]
            self._notices.ignore(run[~closes])
            lasts.append(run[closes])
            self._note_apart(run, closes, parts.total)
        self.open, self.heard = groups.open, groups.heard
        ended += groups.rest()
        for group in ended:
            self._note(group)
            if group.state == "whole":
                wholes.append(group.records[-1])
                if group.records[-1] - group.records[0] >= len(group.records):
                    self._apart[group.records[-1]] = group.records
        return np.sort(np.concatenate([*lasts, np.array(wholes, np.int64)]))

    def _parts(self) -> SliceColumns:
        version, index, total = self._numbers
        senders = senders_of(self._records.headers, len(self._records))
        total = np.maximum(total, 1)
        known = senders.known & ~self._malformed & (version == VERSION) & (index < total)
        # an empty value reads as an envelope without a version
        return SliceColumns(known, senders.names, senders.sender, senders.number, index, total)

    def _note_apart(self, run: Any, closes: Any, total: Any) -> None:
        ends = np.flatnonzero(closes)
        firsts = ends - total[run[ends]] + 1
        for first, last in zip(firsts.tolist(), ends.tolist(), strict=True) if run[-1] - run[0] >= len(run) else ():
            if run[last] - run[first] > last - first:
                self._apart[int(run[last])] = run[first : last + 1].tolist()

    def _add(self, groups: SliceGroups, record: int) -> list[SliceGroup]:
        """Add a record with its notices; return the groups that end with it."""
        value, part = self._records.values[record], self._part(record)
        if value is None:
            self._notices.ignore([record])
            return []
        if isinstance(part, str):
            self._notices.error(record, 0, "record.malformed", part, bytes(value[:RAW_LIMIT]))
            return []
        repeated, missing, ended = groups.add(record, part)
        if repeated:
            self._notices.ignore([record])
        if missing:
            self._lost[record] = missing
        return list(ended)

    def _part(self, record: int) -> SliceInfo | str:
        """Return which part of a group a record is, or why it is none."""
        if self._malformed[record]:
            return "no DTS envelope"
        version, index, total = (int(numbers[record]) for numbers in self._numbers)
        headers = self._records.headers
        return part_of(version, index, total, sender_of(headers[record] if headers else None))

    def _note(self, group: SliceGroup) -> None:
        """Note the records of a group, except the last record of a whole one."""
        *others, last = group.records
        self._notices.ignore(others)
        if group.state == "torn" and not self._sent_again(group):
            text = f"only {len(group.records)} of a group's {group.total} slices are there"
            raw = bytes((self._records.values[last] or b"")[:RAW_LIMIT])
            self._notices.error(last, 0, "record.slices_missing", text, raw)
        elif group.state != "whole":
            self._notices.ignore([last])

    def _sent_again(self, group: SliceGroup) -> bool:
        """Return whether the group that came in place of a torn one begins as it did."""
        if group.replaced_by is None:
            return False
        one, other = self._part(group.records[0]), self._part(group.replaced_by)
        alike = (
            isinstance(one, SliceInfo)
            and isinstance(other, SliceInfo)
            and one[2:] == other[2:]
            and one.slice_index == 0
        )
        return alike and bool(self._contents[group.records[0]] == self._contents[group.replaced_by])

    def joined(self) -> pa.Array:
        """Return the content of each whole group."""
        count = len(self.wholes)
        if not count:
            return pa.array([], pa.binary())
        # the contents lie one behind the other: those of a group's records are all bytes from its first to its last
        offsets = offsets_of(self._contents)
        bounds: Any = np.empty(2 * count, np.int32)
        bounds[::2], bounds[1::2] = offsets[self._firsts], offsets[self.wholes + 1]
        buffers = [None, pa.py_buffer(bounds), self._contents.buffers()[2]]
        contents = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
        if not self._apart and (bounds[2::2] == bounds[1:-1:2]).all():
            buffers[1] = pa.py_buffer(np.append(bounds[::2], bounds[-1]))
            return pa.Array.from_buffers(pa.binary(), count, buffers)
        contents = contents.take(pa.array(np.arange(0, 2 * count, 2)))
        apart = np.isin(self.wholes, list(self._apart))
        if not apart.any():
            return contents
        content = [self._content(group) for group in np.flatnonzero(apart).tolist()]
        return pc.replace_with_mask(contents, pa.array(apart), pa.array(content, pa.binary()))

    def _content(self, group: int) -> bytes:
        first, last = int(self._firsts[group]), int(self.wholes[group])
        records = self._apart.get(last) or range(first, last + 1)
        return b"".join(self._contents[record].as_py() for record in records)

    def refuse(
        self,
        group: int,
        number: int,
        problem: tuple[str, str],
        table: tuple[str | None, str | None] = (None, None),
    ) -> None:
        """Note a change that could not be carried; the first one of a group has the bytes.

        :param problem: code and sentence.
        :param table: database and table of the change, where they are known.
        """
        last, raw = int(self.wholes[group]), None
        if group not in self._explained:
            self._explained.add(group)
            alone = self._firsts[group] == last and last not in self._apart
            raw = (self._records.values[last] or b"") if alone else self._content(group)
            raw = bytes(raw[:RAW_LIMIT])
        self._notices.error(last, number, *problem, raw, table)

    def note_lost(self, sizes: Any) -> None:
        """Note numbers that were left out, after the changes of the record behind them.

        :param sizes: changes of each whole group.
        """
        if not self._lost:
            return
        changes = dict(zip(self.wholes.tolist(), sizes.tolist(), strict=True))
        for record, missing in self._lost.items():
            text = f"{missing} records before this one are missing: the numbers in header ps have a gap"
            self._notices.error(record, changes.get(record, 1), "record.lost", text, None)


def part_of(version: int, index: int, total: int, sender: tuple[str, int | None] | str) -> SliceInfo | str:
    """Return which part of a group an envelope is, or why it is none."""
    total = total or 1
    if version != VERSION:
        return f"envelope version {version} is not known"
    if index >= total:
        return "a slice's index is beyond its group's total"
    return sender if isinstance(sender, str) else SliceInfo(*sender, index, total)
