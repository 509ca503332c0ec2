# SPDX-License-Identifier: Apache-2.0
"""Read Debezium's messages as JSON."""

from __future__ import annotations

from airflow_provider_cdc.core.formats.connect.envelope import EnvelopeReader, may_delete, payload_members
from airflow_provider_cdc.core.formats.connect.messages import Payload, Source, of_source
from airflow_provider_cdc.core.formats.contract import Headers

# members of messages that are no rows and name no source; a row without its envelope may have columns of their names
_HEARTBEAT = {"ts_ms", "ts_us", "ts_ns"}
_TRANSACTION = {"status", "id", "event_count", "data_collections", *_HEARTBEAT}
_NOTIFICATION = {"id", "type", "aggregate_type", "additional_data", "timestamp"}


class JsonMessages(EnvelopeReader[Payload]):
    """Read messages with such a ``source``, with and without embedded schema."""

    def __init__(self, source: type[Source]) -> None:
        super().__init__(of_source(source, Payload))

    may_delete = staticmethod(may_delete)

    def read(self, value: bytes, headers: Headers = None) -> tuple[tuple[str, ...] | None, Payload]:
        """Return a message behind the columns that its embedded schema gives a row.

        :raises ValueError: it is not a message.
        """
        columns, message = super().read(value)
        if message.source is None:
            demand_known(value)
        return columns, message


def demand_known(value: bytes) -> None:
    """Demand a message that is not a row to have just the members of a heartbeat, transaction mark or notification.

    :raises ValueError: it has others.
    """
    names = payload_members(value).keys()
    if not any(names <= known for known in (_HEARTBEAT, _TRANSACTION, _NOTIFICATION)):
        raise ValueError("neither row, schema change, transaction mark nor heartbeat")
