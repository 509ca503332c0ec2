# SPDX-License-Identifier: Apache-2.0
"""Model what a tool sends: records, and units of records that belong together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from tests.histories.source import Picture


@dataclass(frozen=True)
class Record:
    """One Kafka record and where it goes."""

    topic: str
    partition: int
    time: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class Sending(Enum):
    """Why a unit is sent."""

    FIRST = "first"
    AGAIN = "again"  # the tool repeats it
    ANYWHERE = "anywhere"  # somebody repeats it on whatever partition


@dataclass
class Unit:
    """Records that a tool sends as one: what one row, one DDL or one statement becomes.

    :param write: returns the records; called in the order of sending, once for each time that the unit is sent.
    :param repeatable: whether it may be sent again: no, where a repeat looks like a new change.
    :param picture: what the lake must hold once this and all units before it arrived; None inside a statement.
    :param second: of the source.
    :param begins: whether the tool takes a new full snapshot here. What was sent before stays on its partition when it
        is sent again: on one that has only rows of the snapshot it would look like another log.
    """

    write: Callable[[Sending], list[Record]]
    repeatable: bool = True
    picture: Picture | None = None
    second: int = 0
    begins: bool = False
