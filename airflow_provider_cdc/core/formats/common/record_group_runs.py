# SPDX-License-Identifier: Apache-2.0
"""Track slice groups in columns; records that are out of sequence go one by one to ``SliceGroups.add``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from airflow_provider_cdc.core.formats.common.record_groups import SliceGroups


class SliceColumns(NamedTuple):
    """Hold :class:`core.formats.contract.SliceInfo` of the records of a partition, in columns.

    :param known: whether a record is a part of a group at all.
    :param senders: names; ``sender`` has their numbers.
    :param number: running numbers, -1 where there is none or one that does not fit.
    """

    known: Any
    senders: Sequence[str]
    sender: Any
    number: Any
    slice_index: Any
    total: Any


def follow(groups: SliceGroups, parts: SliceColumns, add: Callable[[int], None]) -> list[Any]:
    """Take the records of a partition; return the runs of them that are whole groups, one behind the other.

    A run is what its sender was to send next: no number is left out or repeated and no place of a group, and no group
    is open before or after it. That is all that :meth:`Groups.add` would find of its records.

    :param add: takes a record that is in no run; those of one sender come in order.
    """
    for record in np.flatnonzero(~parts.known).tolist():
        add(record)
    runs = []
    records = np.flatnonzero(parts.known)
    records = records[np.argsort(parts.sender[records], kind="stable")]
    bounds: Any = np.searchsorted(parts.sender[records], np.arange(len(parts.senders) + 1))
    for sender, name in enumerate(parts.senders):
        own = records[bounds[sender] : bounds[sender + 1]]
        for begin, end in _follow_sender(groups, name, own, parts, add) if len(own) else ():
            runs.append(own[begin:end])
    return runs


def _follow_sender(
    groups: SliceGroups, name: str, records: Any, parts: SliceColumns, add: Callable[[int], None]
) -> list[tuple[int, int]]:
    number, slice_index, total = (column[records] for column in (parts.number, parts.slice_index, parts.total))
    closes = np.flatnonzero(slice_index + 1 == total)
    breaks = np.flatnonzero(~_linked(number, slice_index, total))
    ends: Any = np.append(breaks[1:], len(records))
    afters = np.append(0, closes + 1)[np.searchsorted(closes, ends)]  # behind the last group that ends before
    runs = []
    for at, end, after in zip(breaks.tolist(), ends.tolist(), afters.tolist(), strict=True):
        while at < end:
            if at < after and slice_index[at] == 0 and groups.awaits(name, int(number[at])):
                runs.append((at, after))
                groups.heard[name] = int(number[after - 1])
                at = after
            else:
                add(int(records[at]))
                at += 1
    return runs


def _linked(number: Any, slice_index: Any, total: Any) -> Any:
    """Return which records of one sender continue what stands before them."""
    linked: Any = np.zeros(len(number), bool)
    begins = (slice_index[1:] == 0) & (slice_index[:-1] + 1 == total[:-1])
    continues = (slice_index[1:] == slice_index[:-1] + 1) & (total[1:] == total[:-1])
    linked[1:] = (number[:-1] >= 0) & (number[1:] == number[:-1] + 1) & (begins | continues)
    return linked
