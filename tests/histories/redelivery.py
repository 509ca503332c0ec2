"""At least once: a connector that starts again repeats a stretch of its log, a producer sends a record twice."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.histories.records import Record, Unit
from tests.histories.source import Picture


@dataclass(frozen=True)
class Sent:
    """One record in the order of sending.

    :param picture: what the lake must hold when exactly everything up to this record has arrived, None inside a
        statement.
    """

    record: Record
    picture: Picture | None


def sent(units: Sequence[Unit], rnd: random.Random, *, restarts: int, doubles: float, partitions: int) -> list[Sent]:
    """Return all records in the order of sending.

    :param restarts: how often the connector starts again from an older place.
    :param doubles: chance of a unit to be sent twice in a row.
    """
    points = sorted(rnd.randrange(len(units)) for _ in range(restarts))
    result: list[Sent] = []
    for place, unit in enumerate(units):
        result += _of(unit, unit.picture)
        if unit.repeatable and rnd.random() < doubles:
            result += _of(_again(unit, rnd, partitions), unit.picture)
        for _ in range(points.count(place)):
            for older in units[rnd.randint(max(0, place - 40), place) : place + 1]:
                if older.repeatable:
                    # nothing new: what the newest complete statement left still holds
                    result += _of(_again(older, rnd, partitions), unit.picture)
    return result


def _again(unit: Unit, rnd: random.Random, partitions: int) -> Unit:
    if not unit.drifts:
        return unit
    return Unit([replace(record, partition=rnd.randrange(partitions)) for record in unit.records])


def _of(unit: Unit, picture: Picture | None) -> list[Sent]:
    return [*(Sent(record, None) for record in unit.records[:-1]), Sent(unit.records[-1], picture)]
