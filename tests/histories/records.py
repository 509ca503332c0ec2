"""What the connector sends: records, and units of records that belong together."""

from __future__ import annotations

from dataclasses import dataclass

from tests.histories.source import Picture


@dataclass(frozen=True)
class Record:
    """One Kafka record and where it goes."""

    topic: str
    partition: int
    time: int
    key: bytes | None
    value: bytes | None


@dataclass
class Unit:
    """Records that the connector sends as one: what one row or one DDL record becomes.

    :param repeatable: whether a repeat can be told from a new change: snapshot rows without key share one place.
    :param drifts: whether a repeat may land in another partition (records without key).
    :param picture: what the lake must hold once this and all units before it arrived; None inside a statement.
    """

    records: list[Record]
    repeatable: bool = True
    drifts: bool = False
    picture: Picture | None = None
