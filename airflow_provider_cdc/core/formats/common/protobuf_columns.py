# SPDX-License-Identifier: Apache-2.0
"""Convert protobuf messages to Arrow columns, without Python code for each message."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import ptars
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message

from airflow_provider_cdc.core.arrays import BoolArray

# ptars 0.0.25 follows nested unknown groups on the stack without a limit, about 80 bytes of it for each: a message of a
# hundred thousand group starts ends the process. One with more bytes that could be group starts than this is parsed by
# protobuf first, which stops at a depth of 100.
_GROUPS = 32_768


class MessageReader:
    """Read messages of one type.

    A column is null where a field with presence (a message, ``optional``) is absent, else it holds proto3's default.

    :param message: generated class.
    :param fields: by message name the fields to read, of messages not named all; what is left out costs little time.
    :param closed: by message name the fields whose messages are returned as bytes and not read.
    """

    def __init__(
        self,
        message: type[Message],
        fields: Mapping[str, Collection[str]] | None = None,
        closed: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self._message = message
        key = message, _fixed(fields), _fixed(closed)
        if key not in _MADE:
            _MADE[key] = _make(*key)
        self._schema, self._handler = _MADE[key]

    def read(self, data: pa.Array) -> tuple[pa.RecordBatch, BoolArray]:
        """Return one row per message, and which messages are malformed: their rows are those of an empty message.

        :param data: binary, without nulls.
        """
        malformed: BoolArray = np.zeros(len(data), bool)
        sizes = pc.binary_length(data).to_numpy(zero_copy_only=False)
        for index in np.flatnonzero(sizes > _GROUPS):
            malformed[index] = not self._is_shallow(data[int(index)].as_buffer())
        data = emptied(data, malformed)
        batch = self._convert(data)
        if batch is None:
            self._search(data, 0, malformed)
            batch = self._convert(emptied(data, malformed))
        return batch, malformed

    def _is_shallow(self, data: pa.Buffer) -> bool:
        # the low bits of a tag's first byte are its wire type, 3 starts a group
        if np.count_nonzero(np.frombuffer(data, np.uint8) & 7 == 3) <= _GROUPS:
            return True
        try:
            self._message.FromString(data.to_pybytes())
        except DecodeError:
            return False
        return True

    def _convert(self, data: pa.Array) -> pa.RecordBatch | None:
        """Return the columns, None if a message is malformed: ptars does not say which."""
        try:
            return _with_texts(self._handler.array_to_record_batch(data), self._schema)
        except ValueError:
            return None
        except BaseException as error:
            # a length near 2**64 makes ptars 0.0.25 panic, and a panic is not an Exception
            if type(error).__name__ == "PanicException":
                return None
            raise

    def _search(self, data: pa.Array, start: int, malformed: BoolArray) -> None:
        """Find the malformed among messages that could not be read together, by halves."""
        if len(data) == 1:
            malformed[start] = True
            return
        half = len(data) // 2
        for part, index in ((data[:half], start), (data[half:], start + half)):
            if self._convert(part) is None:
                self._search(part, index, malformed)


def emptied(data: pa.Array, mask: BoolArray) -> pa.Array:
    """Return messages, the chosen ones without any field."""
    return pc.if_else(pa.array(mask), pa.scalar(b"", data.type), data) if mask.any() else data


def _with_texts(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns with the texts that the schema has in place of bytes; ValueError where one is not UTF-8."""
    columns = [
        column.view(kind) if _is_ascii(column, kind) else column.cast(kind)  # to look at all bytes at once is quick
        for column, kind in zip(batch.columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_ascii(array: pa.Array, kind: pa.DataType) -> bool:
    """Return whether all bytes in an array are ASCII that are texts in the array's type to be."""
    if pa.types.is_list(kind):
        return _is_ascii(array.values, kind.value_type)
    if pa.types.is_struct(kind):
        return all(_is_ascii(array.field(index), kind.field(index).type) for index in range(kind.num_fields))
    if not pa.types.is_string(kind):
        return True
    data = array.buffers()[2]
    return data is None or not data.size or int(np.frombuffer(data, np.int8).min()) >= 0


_Fixed = frozenset[tuple[str, frozenset[str]]]


def _fixed(fields: Mapping[str, Collection[str]] | None) -> _Fixed:
    return frozenset((name, frozenset(members)) for name, members in (fields or {}).items())


# a format is opened several times per task, and these few cost more than a small batch
_MADE: dict[tuple[type[Message], _Fixed, _Fixed], tuple[pa.Schema, Any]] = {}


def _make(message: type[Message], fields: _Fixed, closed: _Fixed) -> tuple[pa.Schema, Any]:
    """Return the columns of messages of a kind, and what reads them with bytes in place of texts.

    ptars is slow at checking texts: it reads bytes, and Arrow checks and makes texts of them.
    """
    file = _with_fields(message, dict(fields))
    _close(file, dict(closed))
    schema = _handler(message, file).array_to_record_batch(pa.nulls(0, pa.binary())).schema
    return schema, _handler(message, _without_texts(file))


def _handler(message: type[Message], file: FileDescriptorProto) -> Any:
    """Return what reads messages of a kind as a file describes them."""
    pool = DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName(message.DESCRIPTOR.full_name)
    return ptars.HandlerPool([descriptor.file]).get_for_message(descriptor)


def _without_texts(file: FileDescriptorProto) -> FileDescriptorProto:
    """Return the file with bytes in place of texts, which is the same on the wire."""
    copy = FileDescriptorProto()
    copy.CopyFrom(file)
    for kind in copy.message_type:
        for field in kind.field:
            if field.type == FieldDescriptorProto.TYPE_STRING:
                field.type = FieldDescriptorProto.TYPE_BYTES
    return copy


def _with_fields(message: type[Message], fields: Mapping[str, Collection[str]]) -> FileDescriptorProto:
    """Return the file of a message, with only some fields of some messages."""
    file = FileDescriptorProto()
    message.DESCRIPTOR.file.CopyToProto(file)
    for kind in file.message_type:
        if kind.name in fields:
            _keep(kind, fields[kind.name])
    return file


def _close(file: FileDescriptorProto, fields: Mapping[str, Collection[str]]) -> None:
    """Let a file declare bytes in place of some messages, which is the same on the wire."""
    for kind in file.message_type:
        for field in kind.field:
            if field.name in fields.get(kind.name, ()):
                field.type = FieldDescriptorProto.TYPE_BYTES
                field.ClearField("type_name")


def _keep(kind: DescriptorProto, names: Collection[str]) -> None:
    fields = [field for field in kind.field if field.name in names]
    # the oneof that stands for ``optional`` goes with its field, and those after it move up
    oneofs = sorted({field.oneof_index for field in fields if field.HasField("oneof_index")})
    declared = [kind.oneof_decl[number] for number in oneofs]
    for field in fields:
        if field.HasField("oneof_index"):
            field.oneof_index = oneofs.index(field.oneof_index)
    copy = DescriptorProto(name=kind.name, field=fields, oneof_decl=declared)
    for member in ("nested_type", "enum_type"):
        getattr(copy, member).extend(getattr(kind, member))
    kind.CopyFrom(copy)
