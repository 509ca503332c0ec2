# SPDX-License-Identifier: Apache-2.0
"""Read what records of Kafka Connect's JSON converter state about columns: embedded schemas, keys, member names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from airflow_provider_cdc.core.formats.common.exact_structs import exact_struct
from airflow_provider_cdc.core.formats.common.interning import Interner
from airflow_provider_cdc.core.formats.common.row_images import members_of
from airflow_provider_cdc.core.formats.contract import Description
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema

# parameters that say how values of a column are written; Connect writes every parameter as text
_NUMBERS = ("scale", "connect.decimal.precision", "length")
_NUMBER = re.compile(r"-?[0-9]{1,10}")


class _ColumnSchema(msgspec.Struct):
    """Check a column of an embedded schema before it is used."""

    field: str
    type: str = ""
    optional: bool = True
    name: str | None = None
    parameters: dict[str, str] | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS if self.parameters else ():
            if not _NUMBER.fullmatch((self.parameters or {}).get(name, "0")):
                raise ValueError(f"the parameter {name} of a column is not a number")


class _Member(msgspec.Struct):
    field: str | None = None
    fields: list[msgspec.Raw] | None = None


class _Envelope(msgspec.Struct):
    fields: list[_Member] | None = None


class _Key(msgspec.Struct):
    schema: _Envelope


_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_envelope_decoder = msgspec.json.Decoder(_Envelope)
_key_decoder = msgspec.json.Decoder(_Key)
_column_decoder = msgspec.json.Decoder(_ColumnSchema)
_encode: Any = msgspec.json.Encoder().encode
_ENVELOPE = {"schema", "payload"}


def row_columns(schema: bytes) -> tuple[str, ...] | None:
    """Return the row columns of an embedded envelope schema as JSON texts (hashable), None for other schemas.

    :raises msgspec.MsgspecError: a column is not described as Connect does.
    """
    for member in _envelope_decoder.decode(schema).fields or ():
        if member.field == "after" and member.fields is not None:
            for item in member.fields:
                _column_decoder.decode(item)
            return tuple(bytes(item).decode() for item in member.fields)
    return None


class KeyNames:
    """Read the column names of one table's keys, in key order; keys that are like the one before are not parsed.

    What a schema names counts, not what stands behind it: a key's values are those of its row.
    """

    def __init__(self) -> None:
        self.head = b""  # all that stands before a key's payload, empty where only the whole key shows the names
        self._names: tuple[str, ...] | None = None
        self._read: Any = None  # reads keys with these members

    def names(self, key: bytes) -> tuple[str, ...]:
        """Return the names; the same object for the same names in a row.

        :raises msgspec.MsgspecError: it is not a JSON object.
        """
        if self._names is not None and (key.startswith(self.head) if self.head else self._alike(key)):
            return self._names
        self.head, names = _by_schema(key)
        self._read = None
        if not names:
            names = _by_members(key)
            if names == self._names and set(names) != _ENVELOPE:  # the second time: worth a struct
                self._read = exact_struct(names).decode
        if names != self._names or self._names is None:
            self._names = names
        return self._names

    def _alike(self, key: bytes) -> bool:
        """Return whether a key has the same members in the same order: a struct does not see it, its text does."""
        if self._read is None or self._names is None:
            return False
        try:
            read = self._read(key)
        except msgspec.MsgspecError:
            return False
        return len(self._names) == 1 or bool(_encode(read) == key)


def _by_schema(key: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return what stands before a key's payload and the columns named there; empty where it names none."""
    before, payload, _ = key.partition(b'"payload":')
    if payload:
        try:
            fields = _key_decoder.decode(before + b'"payload":null}').schema.fields
        except msgspec.DecodeError:
            return b"", ()
        names = tuple(member.field for member in fields or () if member.field is not None)
        if names:
            return before + payload, names
    return b"", ()


def _by_members(key: bytes) -> tuple[str, ...]:
    members = members_of(key)
    if set(members) == _ENVELOPE:
        with suppress(msgspec.MsgspecError):  # else two columns of a key are called so
            return tuple(members_of(members["payload"]))
    return tuple(members)


class MemberNames:
    """Read the member names of one table's images, sorted.

    Images like the one before are recognised by a struct, for a third of what listing their members costs: their
    order, which no one needs, is not seen by it.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._read: Any = None  # reads images with these members

    def names(self, image: bytes) -> tuple[str, ...]:
        """Return an image's member names; the same object for the same names.

        :raises msgspec.MsgspecError: it is not a JSON object.
        """
        if self._read is not None:
            try:
                self._read(image)
                return self._names
            except msgspec.ValidationError:
                self._read = None
        members = tuple(members_of(image))
        names = tuple(sorted(members))
        if names == self._names:  # the second time: worth a struct
            self._read = exact_struct(members).decode
            return self._names
        self._names = names
        return names


class ColumnTexts:
    """Number the ``columns`` texts of rows in the order of first sight: they are long and repeat.

    :param no_key: the key's columns where a record has no key: none, or not known.
    """

    def __init__(self, no_key: tuple[str, ...] | None) -> None:
        self._no_key = no_key
        self._texts = Interner[str]()
        self.texts = self._texts.values
        self._text_ids: dict[Any, int] = {}
        self._tables: dict[tuple[str, str], _Newest] = {}
        self._newest = _Newest()  # of the row before

    @property
    def key_names(self) -> tuple[str, ...] | None:
        """The columns of the key of the row that was numbered last, None where they are not known."""
        return self._newest.key_names

    def number(
        self,
        columns: tuple[str, ...] | None,
        key: bytes | None,
        table: tuple[str, str],
        image: bytes = b"",
        snapshot: bool | None = None,
    ) -> int:
        """Return the number of the text that a row has.

        :param columns: as its embedded schema gives them; without one the members of ``image`` count.
        :param table: database and table.
        :param snapshot: part of the text where it changes how values are read.
        :raises msgspec.MsgspecError: the key or the image is not a JSON object.
        """
        newest = self._newest
        if columns is None or columns is not newest.columns or snapshot is not newest.snapshot:
            newest = self._newest = self._tables.get(table) or self._tables.setdefault(table, _Newest())
        alike = columns is not None and columns is newest.columns and snapshot is newest.snapshot
        if alike and newest.key_head and key is not None and key.startswith(newest.key_head):
            return newest.number
        names: tuple[str, ...] | None = self._no_key
        head = b""
        if key is not None:
            names = None  # a text that a StringConverter wrote names no column
            if key[:1] == b"{":
                names, head = newest.key.names(key), newest.key.head
        typed = columns is not None
        if columns is None:
            columns = newest.members.names(image)
        if columns is newest.columns and names is newest.key_names and snapshot is newest.snapshot:
            newest.key_head = head
            return newest.number
        mark = (columns, names, snapshot, typed)
        number = self._text_ids.get(mark)
        if number is None:
            number = self._text_ids[mark] = self._texts.id_of(_text(columns, names, snapshot, typed))
        newest.columns, newest.key_names, newest.key_head = columns, names, head
        newest.snapshot, newest.number = snapshot, number
        return number


class _Newest:
    """Hold the description of one table's newest row; the rows that follow usually have the same."""

    __slots__ = ("columns", "key", "key_head", "key_names", "members", "number", "snapshot")

    def __init__(self) -> None:
        self.members = MemberNames()
        self.key = KeyNames()
        self.columns: tuple[str, ...] | None = None
        self.key_head = b""  # of the key that ``key_names`` are of
        self.key_names: tuple[str, ...] | None = None
        self.snapshot: bool | None = None
        self.number = -1


def _text(columns: tuple[str, ...], key: tuple[str, ...] | None, snapshot: bool | None, typed: bool) -> str:
    items = [msgspec.Raw(item.encode()) if typed else {"field": item} for item in columns]
    more = {} if snapshot is None else {"snapshot": snapshot}
    return msgspec.json.encode({"columns": items, "key": key, **more}).decode()


def describe(columns: str) -> Description:
    """Read a ``columns`` text; ``snapshot``, where it is stated, becomes a detail of each column."""
    data = _decoder.decode(columns)
    more = {"snapshot": data["snapshot"]} if "snapshot" in data else {}
    details = {item["field"]: {**item, **more} for item in data["columns"]}
    typed = all("type" in item for item in details.values())
    key = None if data["key"] is None else tuple(data["key"])
    return Description(tuple(details), key, details if typed else None)


_INFERRED = {
    "int8": ColumnType("tinyint"),
    "int16": ColumnType("smallint"),
    "int32": ColumnType("int"),
    "int64": ColumnType("bigint"),
    "float32": ColumnType("float"),
    "float": ColumnType("float"),
    "float64": ColumnType("double"),
    "double": ColumnType("double"),
    "boolean": ColumnType("bit", 1),
    "string": ColumnType("longtext"),
    "bytes": ColumnType("longblob"),
}
_INFERRED_LOGICAL = {
    "io.debezium.time.Date": ColumnType("date"),
    "org.apache.kafka.connect.data.Date": ColumnType("date"),
    "io.debezium.time.Timestamp": ColumnType("datetime", 3),
    "org.apache.kafka.connect.data.Timestamp": ColumnType("datetime", 3),
    "io.debezium.time.MicroTimestamp": ColumnType("datetime", 6),
    "io.debezium.time.NanoTimestamp": ColumnType("datetime", 6),
    "io.debezium.time.Time": ColumnType("time", 3),
    "org.apache.kafka.connect.data.Time": ColumnType("time", 3),
    "io.debezium.time.MicroTime": ColumnType("time", 6),
    "io.debezium.time.NanoTime": ColumnType("time", 6),
    "io.debezium.time.ZonedTimestamp": ColumnType("timestamp", 6),
    "io.debezium.time.Year": ColumnType("year"),
    "io.debezium.time.IsoDate": ColumnType("date"),
    "io.debezium.time.IsoTimestamp": ColumnType("datetime", 6),
    # the texts have as many digits as a value needs: a column that has some needs its declared type
    "io.debezium.time.IsoTime": ColumnType("time"),
    "io.debezium.data.Json": ColumnType("json"),
    "io.debezium.data.FloatVector": ColumnType("vector"),
    "io.debezium.data.DoubleVector": ColumnType("vector"),
}
# what the column's own type says, where the connector is set to send it (column.propagate.source.type), and Connect's
# type does not: Connect's type and the source's -> type
_SOURCE_TYPE, _SOURCE_LENGTH = "__debezium.source.column.type", "__debezium.source.column.length"
_PROPAGATED = {
    ("int64", "BIGINT UNSIGNED"): ColumnType("bigint", unsigned=True),
    ("int64", "BIGINT UNSIGNED ZEROFILL"): ColumnType("bigint", unsigned=True),
    ("string", "TIMESTAMP"): ColumnType("timestamp", 6),
    **{
        ("string", name): ColumnType("longblob")
        for name in ("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB")
    },
}


def inferred_schema(description: Description) -> TableSchema | None:
    """Return a schema made from the Connect types of a record; None without types, or where its key is not known."""
    if description.details is None or description.key is None:
        return None
    columns = []
    for number, name in enumerate(description.names, 1):
        detail = description.details[name]
        columns.append(Column(number, name, _inferred_type(detail), nullable=bool(detail.get("optional", True))))
    by_name = {column.name: column.id for column in columns}
    return TableSchema(tuple(columns), tuple(by_name[name] for name in description.key or () if name in by_name))


def _inferred_type(detail: Mapping[str, Any]) -> ColumnType:
    logical, parameters = detail.get("name") or "", detail.get("parameters") or {}
    if logical in _INFERRED_LOGICAL:
        digits = parameters.get(_SOURCE_LENGTH, "")
        exact = logical == "io.debezium.time.IsoTime" and digits in ("1", "2", "3", "4", "5", "6")
        return ColumnType("time", int(digits)) if exact else _INFERRED_LOGICAL[logical]
    propagated = _PROPAGATED.get((detail.get("type", ""), parameters.get(_SOURCE_TYPE, "").upper()))
    if propagated is not None and not logical:
        return propagated
    if logical == "org.apache.kafka.connect.data.Decimal":
        return ColumnType(
            "decimal", int(parameters.get("connect.decimal.precision", 38)), int(parameters.get("scale", 0))
        )
    if logical == "io.debezium.data.Bits":
        return ColumnType("bit", int(parameters.get("length", 64)))
    if logical.startswith("io.debezium.data.geometry."):
        return ColumnType("geometry")
    return _INFERRED.get(detail.get("type", ""), ColumnType("longtext"))
