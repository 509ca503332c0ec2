# SPDX-License-Identifier: Apache-2.0
"""The floors next to a format's decoder: its envelope alone, and a plain decoder that makes a dict of every row.

`python -m tests.bench.envelopes BOOTSTRAP RANGES FORMAT [--nothing]` is a bare consumer loop over one format's records.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

Decode = Callable[[bytes], Any]


_PLACE = {"file": int | str | None, "pos": int | None, "row": int | None, "ts_ms": int | None}
_CONNECT = {"payload": {"op": str, "source": {"db": str, "table": str, **_PLACE}, "before": Raw, "after": Raw}}
_CANAL = {
    **{"database": str | None, "table": str | None, "type": str, "es": int | None, "ts": int | None},
    **{"isDdl": bool | None, "sql": str | None, "data": list[Raw] | None, "old": list[Raw] | None},
}
_META = {"db": str, "table_name": str, "storeDataSequence": int | str, "timestamp": str}
_OMS = {"allMetaData": _META, "recordType": str, "prevStruct": Raw, "postStruct": Raw}
_SHAREPLEX = {"op": str, "table": str, "time": str, "posttime": str, "scn": int | str, "trans": str}
# What a JSON record says around its images: operation, table, place and times; a mapping is an object in the record.
ENVELOPES: Mapping[str, Mapping[str, Any]] = {
    **dict.fromkeys(("debezium-json", "dtle-json"), _CONNECT),
    **dict.fromkeys(("canal-json", "drs-json", "drs-json-c", "oms-canal"), _CANAL),
    **dict.fromkeys(("oms-default", "oms-default-extended"), _OMS),
    "oms-shareplex": {"meta": _SHAREPLEX, "data": Raw, "key": Raw},
    "oms-dataworks": {
        "schema": {"source": {"dbName": str, "table": str}},
        "payload": {
            "op": str,
            "timestamp": {"eventTime": int, "systemTime": int},
            "scn": int | str,
            "before": Raw,
            "after": Raw,
        },
    },
}


def envelope_decoder(name: str, sample: bytes) -> Decode:
    """Return what reads a record's envelope and leaves its images as they are.

    :param sample: a record, whose order of members is that in which they are found fastest.
    """
    if name.endswith("avro"):
        return len  # Avro has no envelope: nothing can be found without reading all before it
    if name.endswith("protobuf"):
        return _envelope_message(name)
    return msgspec.json.Decoder(_envelope(ENVELOPES[name], json.loads(sample))).decode


def _envelope(members: Mapping[str, Any], sample: Mapping[str, Any]) -> Any:
    fields: list[Any] = []
    for member in sorted(members, key=[*sample, *(member for member in members if member not in sample)].index):
        kind = members[member]
        if kind is Raw:
            fields.append((member, Raw, Raw()))
        else:
            within = _envelope(kind, sample.get(member) or {}) if isinstance(kind, Mapping) else kind
            fields.append((member, within | None, None))
    return msgspec.defstruct("Envelope", fields, gc=False)


def _envelope_message(name: str) -> Decode:
    if name == "canal-protobuf":
        from airflow_provider_cdc.core.formats.generated import canal_packet_pb2

        return lambda value: canal_packet_pb2.Messages.FromString(canal_packet_pb2.Packet.FromString(value).body)
    from airflow_provider_cdc.core.formats.generated import dts_pb2

    return dts_pb2.Envelope.FromString  # type: ignore[no-any-return]


def plain_decoder(
    name: str, options: Mapping[str, str], schemas: Mapping[int, Mapping[str, Any] | None] | None = None
) -> Decode:
    """Return what a skilled user writes first: each record to Python objects, each row to a dict; returns the rows.

    :param schemas: of the registry, by id.
    """
    if name == "canal-protobuf":
        return _plain_canal
    if name == "dts-protobuf":
        return _plain_dts()
    if name == "drs-avro":
        return _plain_avro(options)
    if name == "debezium-avro":
        return _plain_frames(schemas or {})
    return lambda value: [json.loads(value)]


def _plain_canal(value: bytes) -> list[dict[str, Any]]:
    from airflow_provider_cdc.core.formats.generated import canal_entry_pb2, canal_packet_pb2

    rows = []
    for item in canal_packet_pb2.Messages.FromString(canal_packet_pb2.Packet.FromString(value).body).messages:
        entry = canal_entry_pb2.Entry.FromString(item)
        if entry.entryType != canal_entry_pb2.ROWDATA:
            continue
        header, change = entry.header, canal_entry_pb2.RowChange.FromString(entry.storeValue)
        event = {
            "op": change.eventType,
            "database": header.schemaName,
            "table": header.tableName,
            "position": (header.logfileName, header.logfileOffset),
            "time": header.executeTime,
        }
        for row in change.rowDatas:
            before = {column.name: None if column.isNull else column.value for column in row.beforeColumns}
            after = {column.name: None if column.isNull else column.value for column in row.afterColumns}
            rows.append({**event, "before": before, "after": after})
    return rows


def _plain_dts() -> Decode:
    from airflow_provider_cdc.core.formats.generated import dts_pb2

    entries_of, slices = _vendor_entries().FromString, list[bytes]()
    dml, no_value, text, content = dts_pb2.DML, dts_pb2.NIL, dts_pb2.STRING, dts_pb2.BYTES

    def value_of(data: Any) -> Any:
        kind = data.dataType
        if kind == text:
            return data.bv.decode()
        if kind == no_value:
            return None
        return data.bv if kind == content else data.sv

    def decode(value: bytes) -> list[dict[str, Any]]:
        envelope = dts_pb2.Envelope.FromString(value)
        slices.append(envelope.data)
        if envelope.index + 1 < envelope.total:
            return []
        rows, items = [], entries_of(b"".join(slices)).items
        slices.clear()
        for entry in items:
            header = entry.header
            if header.messageType != dml:
                continue
            change = entry.event.dmlEvent
            event = {
                "op": change.dmlEventType,
                "database": header.schemaName,
                "table": header.tableName,
                "position": header.seqId,
                "time": header.timestamp,
            }
            names = [column.name for column in change.columns]
            for row in change.rows:
                before = dict(zip(names, map(value_of, row.oldColumns), strict=False))
                after = dict(zip(names, map(value_of, row.newColumns), strict=False))
                rows.append({**event, "before": before, "after": after})
        return rows

    return decode


def _vendor_entries() -> Any:
    """Return DTS's Entries as the vendor declares them: columns are messages, which upb reads along with the rest."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    from airflow_provider_cdc.core.formats.generated import dts_pb2

    file = FileDescriptorProto()
    dts_pb2.DESCRIPTOR.CopyToProto(file)
    event = next(message for message in file.message_type if message.name == "DMLEvent")
    columns = next(field for field in event.field if field.name == "columns")
    columns.type, columns.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{file.package}.Column"
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.Entries"))


def _plain_avro(options: Mapping[str, str]) -> Decode:
    import io

    import fastavro

    schema = fastavro.parse_schema(json.loads(options["schema"]))
    return lambda value: [fastavro.schemaless_reader(io.BytesIO(value), schema)]


def _plain_frames(schemas: Mapping[int, Mapping[str, Any] | None]) -> Decode:
    import io

    import fastavro

    parsed = {
        identity.to_bytes(4, "big"): fastavro.parse_schema(json.loads(answer["schema"]))
        for identity, answer in schemas.items()
        if answer
    }
    return lambda value: [fastavro.schemaless_reader(io.BytesIO(value[5:]), parsed[value[1:5]])]


def main() -> None:
    """Read the ranges in one process, decoding each record's envelope or nothing at all."""
    from confluent_kafka import Consumer, TopicPartition

    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("ranges", type=json.loads)
    parser.add_argument("format")
    options = parser.parse_args()
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": "bare",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 5,
            "queued.min.messages": 100_000,
        }
    )
    ends = {(t, int(p)): end for t, spans in options.ranges.items() for p, (start, end) in spans.items() if end > start}
    consumer.assign([TopicPartition(t, p, options.ranges[t][str(p)][0]) for t, p in ends])
    gc.disable()
    count, decode = 0, None
    while ends:
        for message in consumer.consume(20_000, timeout=0.2):
            if message.error() is not None:
                raise SystemExit(str(message.error()))
            value = message.value()
            if value:
                decode = decode or envelope_decoder(options.format, value)
                decode(value)
                count += 1
            partition = (message.topic(), message.partition())
            if message.offset() + 1 >= ends.get(partition, 1 << 62):
                del ends[partition]
    consumer.close()
    print(json.dumps({"records": count}))


if __name__ == "__main__":
    main()
