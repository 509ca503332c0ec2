# SPDX-License-Identifier: Apache-2.0
"""At least once: a tool that starts again repeats a stretch of its log, a record is sent twice, old ones come back."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.histories.records import Record, Sending, Unit
from tests.histories.source import Picture

FAR = 40  # units that a tool goes back at most


@dataclass(frozen=True)
class Sent:
    """One record in the order of sending.

    :param picture: what the lake must hold when exactly everything up to this record has arrived, None inside a
        statement.
    """

    record: Record
    picture: Picture | None


def sent(
    units: Sequence[Unit], rnd: random.Random, *, restarts: int, doubles: float, replays: int, by_clock: bool = False
) -> list[Sent]:
    """Return all records in the order of sending.

    :param restarts: how often the tool starts again from an older place.
    :param doubles: chance of a unit to be sent twice in a row.
    :param replays: how often somebody sends an old range again, on any partition.
    :param by_clock: repeats are not recognised; tables are right when a repeated stretch is complete.
    """
    if not units:
        return []
    points = sorted(rnd.randrange(len(units)) for _ in range(restarts))
    old = sorted(rnd.randrange(len(units)) for _ in range(replays))
    if by_clock:
        old = [_second_ends(units, index) for index in old]
    result: list[Sent] = []
    begun = 0
    for index, unit in enumerate(units):
        begun = index if unit.begins else begun
        records = _sent(unit, Sending.FIRST, unit.picture)
        if not records and result:  # a statement that the tool does not send
            result[-1] = replace(result[-1], picture=unit.picture)
        result += records
        if unit.repeatable and rnd.random() < doubles:
            result += _sent(unit, Sending.AGAIN, unit.picture)
        for _ in range(points.count(index)):
            stretch = range(rnd.randint(max(0, index - FAR), index), index + 1)
            # whatever comes again comes whole: a TRUNCATE without the rows behind it empties a table
            if not by_clock or all(units[older].repeatable for older in stretch):
                result += _again(units, stretch, begun, Sending.AGAIN, unit.picture, by_clock)
        for _ in range(old.count(index)):
            start, end = sorted((rnd.randint(0, index), rnd.randint(0, index)))
            result += _again(units, range(start, end + 1), begun, Sending.ANYWHERE, unit.picture, by_clock)
    return result


def _second_ends(units: Sequence[Unit], index: int) -> int:
    """Return the last unit of the source's second: a tool does not pause in it (docs/formats, Order)."""
    while index + 1 < len(units) and units[index + 1].second == units[index].second:
        index += 1
    return index


def _again(
    units: Sequence[Unit], stretch: range, begun: int, why: Sending, picture: Picture | None, by_clock: bool
) -> Iterator[Sent]:
    """Send a stretch once more: nothing new, so what the newest complete statement left still holds.

    :param begun: the unit that the newest snapshot begins with.
    """
    repeated = [number for number in stretch if units[number].repeatable]
    for number in repeated:
        still = None if by_clock and number < repeated[-1] else picture
        yield from _sent(units[number], Sending.FIRST if number < begun else why, still)


def _sent(unit: Unit, why: Sending, picture: Picture | None) -> list[Sent]:
    records = unit.write(why)
    return [Sent(record, picture if number == len(records) else None) for number, record in enumerate(records, 1)]
