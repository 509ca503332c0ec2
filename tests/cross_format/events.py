# SPDX-License-Identifier: Apache-2.0
"""One source history as neutral events, and what a writer of a wire format makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, runtime_checkable

from airflow_provider_cdc.core.model.schema import TableSchema

# int: integers, YEAR, BIT; Decimal: DECIMAL; float: FLOAT, DOUBLE; bytes: BINARY and BLOB families; str: all else as
# MySQL prints it with time_zone = UTC (ENUM by label, SET by labels with commas, TIME, DATE, DATETIME, TIMESTAMP with
# the declared fraction digits, JSON text)
Value = int | float | Decimal | str | bytes | None
Image = Mapping[str, Value]


@dataclass(frozen=True)
class Row:
    """One row change.

    :param op: ``insert``, ``update`` or ``delete``; ``init`` for a row of the full phase, where tools say so.
    :param schema: the table's columns and key at this moment.
    :param before: the row before, None for an insert; whole, unless the server writes partial images.
    :param after: the row after, None for a delete; a key may differ from ``before``.
    """

    op: str
    database: str
    table: str
    schema: TableSchema
    before: Image | None
    after: Image | None


@dataclass(frozen=True)
class Ddl:
    """One statement; ``database`` is the session's, ``table`` the first table it names.

    :param schema: the table's structure after it, None when it was dropped.
    :param initial: of the full phase.
    :param kind: ``CREATE``, ``ALTER``, ``DROP``, ``TRUNCATE`` or ``RENAME``; None: what the text begins with.
    """

    statement: str
    database: str
    table: str
    schema: TableSchema | None
    kind: str | None = None
    initial: bool = False

    @property
    def verb(self) -> str:
        """Return the kind of the statement in MySQL's words."""
        return self.kind or self.statement.split()[0].upper()

    @property
    def canal_type(self) -> str:
        """Return the kind in Canal's words (docs/wire/canal.md 4.2)."""
        return "ERASE" if self.verb == "DROP" else self.verb


@dataclass(frozen=True)
class Event:
    """A row change or a statement with its place in the source's log.

    :param file: number of the binlog file; ``pos`` rises strictly inside it, ``number`` counts all events from 1.
    :param time_ms: source time, milliseconds since the epoch, whole seconds, never falling.
    :param sent_ms: when the tool builds and sends the record, milliseconds since the epoch, always rising; an event
        that is sent again has the same number and place, and a later ``sent_ms``.
    :param transaction: number of the transaction, rising; several events may share it.
    """

    number: int
    file: int
    pos: int
    time_ms: int
    sent_ms: int
    transaction: int
    what: Row | Ddl


@dataclass(frozen=True)
class Message:
    """One Kafka record to be; ``topic`` is ``rows`` or, for tools with a topic of their own for DDL, ``schema``."""

    partition: int
    key: bytes | None
    value: bytes | None
    topic: str = "rows"
    headers: tuple[tuple[str, bytes], ...] = ()


class Writer(Protocol):
    """Writes events as one tool does; may have ``kept(value, type)``: what the tool leaves of a value.

    :param format: registered name of the wire format.
    :param options: ``source.options`` for reading it back.
    :param creates: whether a pipeline must state ``tables.<name>.create``, since the format carries no types or DDL.
    """

    format: str
    options: Mapping[str, str]
    creates: bool

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the records of one event; rows spread over partitions by key as the tool would."""
        ...


@runtime_checkable
class Waiting(Protocol):
    """Interface of a writer that may wait for more events before it writes a record."""

    def rest(self) -> list[Message]:
        """Return the records of the events that wait."""
        ...
