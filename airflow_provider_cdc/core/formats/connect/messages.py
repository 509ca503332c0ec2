# SPDX-License-Identifier: Apache-2.0
"""Define a message of Debezium as all of its connectors write it, in any encoding (docs/wire/debezium-dtle.md B1)."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Protocol

import msgspec

from airflow_provider_cdc.core.formats.common.epoch_times import EpochMicros, EpochMillis
from airflow_provider_cdc.core.formats.connect.envelope import Message, Origin
from airflow_provider_cdc.core.formats.contract import Headers

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
RowCount = Annotated[int, msgspec.Meta(ge=0, le=9_999_999_999)]
RowText = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,10}\Z")]


class Transaction(msgspec.Struct, gc=False):
    """Hold what ``provide.transaction.metadata`` adds to a row change; Debezium's pages print the numbers as texts."""

    total_order: RowCount | RowText
    data_collection_order: RowCount | RowText | None = None


class Source(msgspec.Struct, gc=False):
    """Members of ``source`` that connectors share, in the order in which they are written; each has more of its own.

    ``ts_sec`` is the layout before 0.10. ``snapshot`` is a text, up to 0.9 a boolean.
    """

    connector: str | None = None
    name: str | None = None
    ts_ms: EpochMillis | None = None
    ts_sec: EpochMillis | None = None
    snapshot: msgspec.Raw = msgspec.Raw()
    db: str | None = None
    ts_us: EpochMicros | None = None
    table: str | None = None

    def time(self) -> int | None:
        """Return when the change was made at the source, in microseconds since the epoch."""
        if self.ts_us is not None:
            return self.ts_us
        if self.ts_ms is not None:
            return self.ts_ms * 1000
        return None if self.ts_sec is None else self.ts_sec * 1_000_000


class Payload(Message, gc=False):
    """Any message of a connector: row, schema change, transaction mark, heartbeat or notification."""

    before: msgspec.Raw = msgspec.Raw()
    after: msgspec.Raw = msgspec.Raw()
    source: Source | None = None
    transaction: Transaction | None = None
    op: str | None = None
    ts_ms: EpochMillis | None = None
    ts_us: EpochMicros | None = None
    ddl: str | None = None
    databaseName: str | None = None
    tableChanges: msgspec.Raw = msgspec.Raw()
    historyRecord: str | None = None
    status: str | None = None
    id: str | None = None
    aggregate_type: str | None = None
    data_collections: msgspec.Raw = msgspec.Raw()


@cache
def of_source(source: type[Source], message: type[Payload]) -> type[Any]:
    """Return a message with the ``source`` of one connector."""
    return msgspec.defstruct(message.__name__, [("source", source | None, None)], bases=(message,), gc=False)


class MessageReader(Protocol):
    """Read messages in one encoding."""

    def read(self, value: bytes, headers: Headers = None) -> tuple[tuple[str, ...] | None, Payload]:
        """Return a message behind the columns that its schema gives a row (as JSON texts), None without a schema.

        :param headers: of the record, where the format reads them.
        :raises ValueError: it is not a message.
        """
        ...

    def key(self, key: bytes | None) -> bytes | None:
        """Return a key in JSON: where a schema names its columns, what stands behind the schema may be left out.

        :raises ValueError: it is of a schema that is not known.
        """
        ...

    def near_miss(self, key: bytes | None, value: bytes) -> str | None:
        """Return what a record is that is not a message, in words for people; None where it is nothing known."""
        ...

    def may_delete(self, value: bytes) -> bool:
        """Return whether a record is a row's delete."""
        ...

    def origin(self, value: bytes) -> Origin:
        """Return the members that name a message's table, whatever else in it cannot be read.

        :raises ValueError: it is not a message, or these members have other types.
        """
        ...
