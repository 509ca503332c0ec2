"""Records that follow each other as they should, found in columns; what is left is followed one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from airflow_provider_cdc.core.formats.groups import Groups


class Parts(NamedTuple):
    """What :class:`core.formats.contract.Part` is for one record, for the records of a partition.

    :param known: whether a record is a part of a group at all.
    :param senders: names; ``sender`` has their numbers.
    :param number: running numbers, -1 where there is none or one that does not fit.
    """

    known: Any
    senders: Sequence[str]
    sender: Any
    number: Any
    place: Any
    total: Any


def follow(groups: Groups, parts: Parts, add: Callable[[int], None]) -> list[Any]:
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
    groups: Groups, name: str, records: Any, parts: Parts, add: Callable[[int], None]
) -> list[tuple[int, int]]:
    number, place, total = (column[records] for column in (parts.number, parts.place, parts.total))
    closes = np.flatnonzero(place + 1 == total)
    breaks = np.flatnonzero(~_linked(number, place, total))
    ends: Any = np.append(breaks[1:], len(records))
    afters = np.append(0, closes + 1)[np.searchsorted(closes, ends)]  # behind the last group that ends before
    runs = []
    for at, end, after in zip(breaks.tolist(), ends.tolist(), afters.tolist(), strict=True):
        while at < end:
            if at < after and place[at] == 0 and groups.awaits(name, int(number[at])):
                runs.append((at, after))
                groups.heard[name] = int(number[after - 1])
                at = after
            else:
                add(int(records[at]))
                at += 1
    return runs


def _linked(number: Any, place: Any, total: Any) -> Any:
    """Return which records of one sender continue what stands before them."""
    linked: Any = np.zeros(len(number), bool)
    begins = (place[1:] == 0) & (place[:-1] + 1 == total[:-1])
    continues = (place[1:] == place[:-1] + 1) & (total[1:] == total[:-1])
    linked[1:] = (number[:-1] >= 0) & (number[1:] == number[:-1] + 1) & (begins | continues)
    return linked
