# SPDX-License-Identifier: Apache-2.0
"""Name records that come close to a format and are none: what they are, and what to do about it.

A format asks where it cannot read a record, and detection where no format fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

_REGISTRY_ID = 5  # bytes: a zero and the number of a schema (Confluent; Apicurio has eight after it)
_JSON = frozenset(b"{[")
_GLUE = b"\x03"  # first byte of the AWS Glue schema registry's header
_LONGEST = 1 << 20  # bytes of a record that is looked into
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_CHANGES = {"insert", "update", "delete", "bootstrap-insert", "bootstrap-start", "bootstrap-complete"}
_SIMPLE = {"WATERMARK", "BOOTSTRAP", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "QUERY", "TRUNCATE", "RENAME"}

_REGISTRY = (
    "a frame of a schema registry (Confluent, Apicurio): a zero and the number of a schema. If it is Debezium's Avro, "
    "state format: debezium-avro and name the registry's connection in source.schema_registry; else let the tool write "
    "JSON (value.converter=org.apache.kafka.connect.json.JsonConverter)"
)
_REGISTERED_JSON = (
    "JSON behind the number of a registered schema (JSON Schema). If it is Debezium's, state format: debezium-avro and "
    "name the registry's connection in source.schema_registry; else let the tool write JSON "
    "(value.converter=org.apache.kafka.connect.json.JsonConverter)"
)
_GLUE_FRAME = (
    "a frame of the AWS Glue schema registry, which no format reads: let the tool write JSON "
    "(value.converter=org.apache.kafka.connect.json.JsonConverter)"
)
_OPEN = "TiCDC's open protocol, which no format reads: let the changefeed write canal-json, and read that"
_SIMPLE_TICDC = "TiCDC's simple protocol, which no format reads: let the changefeed write canal-json, and read that"
_STRUCT = (
    "a value as Kafka Connect's StringConverter prints it (Struct{...}), which nobody can read back: set "
    "value.converter=org.apache.kafka.connect.json.JsonConverter"
)
_CLOUD_EVENT = (
    "a CloudEvent, with the record in its data: let the tool write the record itself "
    "(value.converter=org.apache.kafka.connect.json.JsonConverter)"
)
_MAXWELL = "a record of Maxwell, which no format reads: it has no place in the binlog for each row, and no types"
_DMS = "a record of AWS DMS, which no format reads: it has no place in the source's log"
_HISTORY = (
    "a record of the connector's internal schema history: source.schema_topic is the topic that is called as "
    "topic.prefix, not schema.history.internal.kafka.topic"
)
_DTLE = "a statement as dtle writes it: take dtle-json"
_FLAT = (
    "a row without its envelope, flattened by the transform ExtractNewRecordState: remove the transform, or set its "
    "delete.tombstone.handling.mode to rewrite and let add.fields keep the row's place in the log ({}), and "
    "state both settings in source.options"
)
_FLATTENED = (
    "a message whose members stand side by side, as Kafka Connect's transform Flatten writes it (after.id, "
    "source.file): remove the transform"
)
_TEXT = "a JSON text inside of a JSON text: a converter wrote it twice (StringConverter behind a JSON text)"


def near_miss(key: bytes | None, value: bytes | None) -> str | None:
    """Return what a record is that no format reads, in words for people; None where it is nothing known."""
    if not value:
        return None
    named = _of_bytes(key or b"", value)
    if named is not None or len(value) > _LONGEST:
        return named
    try:
        message = _decode(value)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    payload = message.get("payload")
    enveloped = isinstance(payload, dict) and message.keys() <= {"schema", "schemaId", "payload"}
    inner: Mapping[str, Any] = payload if enveloped and isinstance(payload, dict) else message
    # imported here: the readers of these connectors' records ask for near misses
    from airflow_provider_cdc.core.formats.connect.connectors.registry import place_members, refusal

    said = refusal(str(_source(inner).get("connector")))
    said = said or next((sentence for fits, sentence in _OF_JSON if fits(inner)), None)
    return said or (_FLAT.format(place_members()) if _is_flat(inner) else None)


def _of_bytes(key: bytes, value: bytes) -> str | None:
    """Return what the first bytes show."""
    if key[:7] == bytes(7) and b'"ts":' in key:
        return _OPEN
    if value[:1] == b"\0" and len(value) > _REGISTRY_ID:
        return _REGISTERED_JSON if value[_REGISTRY_ID] in _JSON and value[-1:] in (b"}", b"]") else _REGISTRY
    if value[:2] in (_GLUE + b"\0", _GLUE + b"\5"):
        return _GLUE_FRAME
    if value.startswith(b"Struct{"):
        return _STRUCT
    if value.startswith(b'"{'):
        return _TEXT
    return None


def _source(message: Mapping[str, Any]) -> Mapping[str, Any]:
    source = message.get("source")
    return source if isinstance(source, dict) else {}


def _is_history(message: Mapping[str, Any]) -> bool:
    return bool(_source(message).get("server")) and "position" in message and "ddl" in message


def _is_dtle(message: Mapping[str, Any]) -> bool:
    return _source(message).get("server") == "" and "position" in message and "ddl" in message


def _is_maxwell(message: Mapping[str, Any]) -> bool:
    return {"database", "table", "type", "data"} <= message.keys() and str(message["type"]) in _CHANGES


def _is_simple(message: Mapping[str, Any]) -> bool:
    return {"version", "type", "commitTs"} <= message.keys() and str(message["type"]) in _SIMPLE


def _is_dms(message: Mapping[str, Any]) -> bool:
    metadata = message.get("metadata")
    return isinstance(metadata, dict) and {"record-type", "operation"} <= metadata.keys()


def _is_cloud_event(message: Mapping[str, Any]) -> bool:
    return {"specversion", "id", "source", "type"} <= message.keys()


def _is_flattened(message: Mapping[str, Any]) -> bool:
    return any(name.startswith(("after.", "before.", "after_", "before_")) for name in message) and any(
        name.startswith(("source.", "source_")) for name in message
    )


def _is_flat(message: Mapping[str, Any]) -> bool:
    """Return whether a record is nothing but the columns of a row; SMTs may add members that begin with ``__``."""
    marked = {"__op", "__deleted", "__table", "__source_ts_ms"} & message.keys()
    if not marked and any(name in message for name in ("before", "after", "op", "source", "database", "ddl", "status")):
        return False
    scalars = all(not isinstance(cell, dict | list) for cell in message.values())
    return bool(marked) or (scalars and len(message) > 1 and not message.keys() <= {"ts_ms", "ts_us", "ts_ns"})


_OF_JSON: tuple[tuple[Callable[[Mapping[str, Any]], bool], str], ...] = (
    (_is_cloud_event, _CLOUD_EVENT),
    (_is_history, _HISTORY),
    (_is_dtle, _DTLE),
    (_is_maxwell, _MAXWELL),
    (_is_simple, _SIMPLE_TICDC),
    (_is_dms, _DMS),
    (_is_flattened, _FLATTENED),
)
