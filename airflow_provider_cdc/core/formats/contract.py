# SPDX-License-Identifier: Apache-2.0
"""Define a wire format: a pure function from records to changes, with knowledge of its own values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.relation import RelationChange
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema

# One flat schema for all formats; the contract between decoders, change log and apply (docs/design/change-record.md).
# ``tool_time`` is when the tool built the record, by its own clock: only formats without positions give it, it orders
# their records across partitions. ``tool_batch`` is the number of the records that the tool built side by side, for
# several topics at once: their tool times do not order those topics.
# ``transaction_order`` numbers the changes of one table in one transaction from 1, without holes.
# ``built`` is when the tool built the record of a row, in microseconds since the epoch, where several rows may share
# place and content: one that was sent again was built again (``core.apply.alike_rows``).
# ``dialect`` is that of ``statement`` (``core.ddl.parser.parse``).
CHANGE_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("index", pa.int32()),
        ("kafka_time", pa.timestamp("ms", "UTC")),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("op", pa.dictionary(pa.int32(), pa.string())),
        ("database", pa.dictionary(pa.int32(), pa.string())),
        ("schema", pa.dictionary(pa.int32(), pa.string())),
        ("table", pa.dictionary(pa.int32(), pa.string())),
        ("position", pa.string()),
        ("source_time", pa.timestamp("us", "UTC")),
        ("tool_time", pa.timestamp("ms", "UTC")),
        ("tool_batch", pa.int64()),
        ("transaction_id", pa.string()),
        ("transaction_order", pa.int64()),
        ("built", pa.int64()),
        ("before", pa.string()),
        ("after", pa.string()),
        ("columns", pa.dictionary(pa.int32(), pa.string())),
        ("statement", pa.string()),
        ("default_database", pa.string()),
        ("dialect", pa.string()),
        ("table_changes", pa.string()),
        ("error_code", pa.string()),
        ("error", pa.string()),
        ("raw", pa.binary()),
    ]
)


Headers = Sequence[tuple[str, bytes | None]] | None


class SliceInfo(NamedTuple):
    """One record as part of a group: records that only make sense together.

    :param sender: the records of one sender follow and count on each other, those of others may stand between them.
    :param number: running number that the sender gave the record in its partition, None where it gave none.
    :param slice_index: index in the group, from 0.
    :param total: records in the group.
    """

    sender: str
    number: int | None
    slice_index: int
    total: int


@dataclass(slots=True)
class Records:
    """Kafka records of one partition, in offset order, as columns.

    :param timestamps: milliseconds since the epoch, None where the record has none.
    :param headers: name and value pairs a record, None where it has none.
    :param heard: for formats with groups: the senders known from earlier records of the partition, with the last
        running number of each.
    """

    topic: str
    partition: int
    offsets: Sequence[int]
    timestamps: Sequence[int | None]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers] = field(default_factory=list)
    heard: Mapping[str, int | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of one record: everything before ``source_time_ms`` was sent to its partition."""

    source_time_ms: int
    heartbeat: bool


@dataclass(frozen=True, slots=True)
class Description:
    """Columns as a record describes them.

    :param names: member names of its images, in order.
    :param key: names of the key's columns; None when the record does not say.
    :param details: per column name what the format knows in addition to the name, None without types.
    :param complete: whether ``names`` are all columns of the table; a partial image names those it has.
    :param members: what a column is called in the images, where that is not its name (:class:`AdjustsNames`).
    """

    names: tuple[str, ...]
    key: tuple[str, ...] | None
    details: Mapping[str, Any] | None
    complete: bool = True
    members: Mapping[str, str] = field(default_factory=dict, kw_only=True)


class Format(Protocol):
    """One wire format.

    ``name`` is what a pipeline states, ``summary`` one line for people.
    ``order`` is ``exact`` where records carry positions of the source's log, ``clock`` where they carry none: then
    ``position`` is null in what :meth:`decode` gives, and landing makes one of tool time, partition and offset.
    ``carries`` names what the format has: ``rows``, ``ddl``, ``progress``, ``transactions``, ``types``,
    ``ad_hoc_snapshots`` (of a table, on request, with positions among its changes), ``transaction_orders``,
    ``full_snapshots`` (rows of op ``snapshot`` are of snapshots of whole tables, each of which replaces a table's
    content; what else happened to a table only its rows show), ``deleted_keys`` (of a deleted row only the key is
    certain), ``keyed_partitions`` (all changes of one record key come on one partition), ``own_places`` (a streamed
    change that is sent again may have another first number in its position; the others identify it),
    ``build_times`` (changes without key that may share place and content say when the tool built them, ``built``),
    ``younger_snapshots`` (rows of a snapshot may have what changes did that stand behind them and have older times),
    ``transaction_counts`` (the end of a transaction says how many changes of each table it has: its ``transaction_id``
    is that of the rows, a colon and the first number of positions behind it, its ``statement`` a JSON list).
    """

    name: str
    summary: str
    order: Literal["exact", "clock"]
    carries: frozenset[str]
    options: Mapping[str, str]
    updates_move_keys: bool  # whether an update may carry another key before than after
    # whether ``before`` of an update may name only columns that it changed; the row had the others as ``after`` has.
    # Such a text is as msgspec writes it, without spaces, and names escaped in one way
    updates_name_changes: bool
    ddl_among_rows: bool  # whether schema changes come in the data topics, not in a topic of their own
    splits_partitions: bool  # whether pieces of one partition may be read apart; never where ``order`` is ``clock``
    partial_images: bool  # whether a column that an update's after image lacks is unchanged; else such a row fails
    # whether a column that an insert's image lacks has its default; None where other rows of the table have to show it;
    # else such a row fails
    inserts_lack_defaults: bool | None
    chosen_keys: bool  # whether the columns of a record's key may be chosen: then they need not be the table's key
    # what positions number the rows of one event in: ``event`` as the source does, or each ``record`` again
    row_numbers: Literal["event", "record"]
    # positions of snapshot rows: ``shared`` by all rows of one snapshot, ``numbered`` each with its own, so that a
    # repeat is recognised, or ``unnumbered``
    snapshot_rows: str

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order, as :data:`CHANGE_SCHEMA`; never raises for bad bytes.

        Those of ignored records may stand behind all others.
        """
        ...

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return how far one record says the source is, or None; cheap enough for a sensor.

        Of several changes in a record the oldest counts: a range is cut before the record.
        """
        ...

    def describe(self, columns: str) -> Description:
        """Read the ``columns`` text of a change that :meth:`decode` wrote."""
        ...

    def encoding_of(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return the encoding of a column of this source type in the images."""
        ...

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Read the ``table_changes`` text: (database, table, structure after the change or None when dropped)."""
        ...

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from the record's own description, or None when it carries no types."""
        ...


@runtime_checkable
class NamesTopics(Protocol):
    """Extend a format whose tool names topics after their tables."""

    def topic_prefix(self, schema_topic: str | None) -> str | None:
        """Return what the names of all topics of the tool begin with, None if the schema topic's does not say it."""
        ...

    def table_of_topic(self, topic: str, schema_topic: str | None) -> tuple[str, str] | None:
        """Return database and table of a topic, None if it is not named so."""
        ...


@runtime_checkable
class IdentifiesTables(Protocol):
    """Extend a format whose schema changes may name tables and columns by numbers of the source's catalogue.

    :ivar dialect: of its statements (:func:`core.ddl.parser.parse`).
    """

    dialect: str | None

    def relation(self, table_changes: str) -> RelationChange | None:
        """Read the ``table_changes`` text; None where it names them by name.

        :raises ValueError: the text is none that the format writes.
        """
        ...


@runtime_checkable
class Grouped(Protocol):
    """Extend a format some of whose records only make sense together.

    ``decode`` then needs whole groups (:func:`core.formats.common.record_groups.whole_groups`), and a range never ends
    inside one.
    """

    def part_of(self, value: bytes | None, headers: Headers) -> SliceInfo | None:
        """Return the place of a record in its group, None if it does not belong to a group."""
        ...


@runtime_checkable
class Tombstoned(Protocol):
    """Extend a format whose tool writes a record without a value behind each delete, with its key."""

    def may_delete(self, value: bytes) -> bool:
        """Return whether a record is a row's delete, or too damaged to say what it is."""
        ...


@runtime_checkable
class ReadsHeaders(Protocol):
    """Extend a format that may find parts of its messages in the headers of records."""

    reads_headers: bool


def needs_headers(fmt: Format) -> bool:
    """Return whether records have to be read with their headers."""
    return isinstance(fmt, Grouped) or (isinstance(fmt, ReadsHeaders) and fmt.reads_headers)


@runtime_checkable
class LosesTruncates(Protocol):
    """Extend a format whose tool may leave out each TRUNCATE: nothing but an INSERT of a key that is there shows it."""

    loses_truncates: bool


@runtime_checkable
class AdjustsNames(Protocol):
    """Extend a format whose encoding cannot spell each name of a column: its tool writes another one.

    :ivar adjusted_names_hint: what to do where it is not certain which column a name stands for.
    """

    adjusted_names_hint: str

    def can_spell(self, column: str) -> bool:
        """Return whether a column is called by its own name in all records."""
        ...

    def spellings(self, pattern: str) -> set[str]:
        """Return shell patterns of the names that may stand for columns which one matches; it may have ``*``."""
        ...

    def columns_of(self, names: Sequence[str], columns: Collection[str], others: Collection[str]) -> Mapping[str, str]:
        """Return which column each name of a row stands for, where it is not the name itself; empty if not certain.

        :param columns: of the table.
        :param others: columns that the row may have, too.
        """
        ...


@runtime_checkable
class Registered(Protocol):
    """Extend a format whose records name schemas that a registry has; what decodes them teaches it those before.

    A format fetches nothing: see :class:`core.formats.common.schema_supply.SchemaSupply`.
    """

    def missing(self, frames: Iterable[bytes | None]) -> set[int]:
        """Return the ids that keys and values name and that nothing was learned of."""
        ...

    def learn(self, schemas: Mapping[int, Mapping[str, Any] | None]) -> None:
        """Take schemas by their ids.

        :param schemas: as the registry answers (``schema``, ``schemaType``, ``references``), None where it has none.
        """
        ...
