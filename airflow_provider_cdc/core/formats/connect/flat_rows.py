# SPDX-License-Identifier: Apache-2.0
"""Read JSON rows that ExtractNewRecordState flattened as the messages that they were (docs/wire/debezium-dtle.md B12).

A row has its columns first, then ``__deleted``, then what the settings add. The columns' text stays as received.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_type_hints

import msgspec

from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord
from airflow_provider_cdc.core.formats.common.row_images import members_of
from airflow_provider_cdc.core.formats.connect.columns import flat_columns, row_columns
from airflow_provider_cdc.core.formats.connect.envelope import EnvelopeReader, Origin, origin_of, payload_members
from airflow_provider_cdc.core.formats.connect.flattening import DELETED, Flattening
from airflow_provider_cdc.core.formats.connect.json_messages import demand_known
from airflow_provider_cdc.core.formats.connect.messages import Payload, Source, Transaction, of_source
from airflow_provider_cdc.core.formats.contract import Headers

_MARK = f',"{DELETED}":'.encode()  # what stands behind the columns
_NAME = f'"{DELETED}"'.encode()
_DELETE = re.compile(rf'"{DELETED}"\s*:\s*"true"'.encode())
_NULL = msgspec.Raw(b"null")
_SETTINGS = "the transform's add.fields, add.headers and their prefixes have to be those of source.options"


class _Nothing(msgspec.Struct):
    """Check that a text is an object."""


class _Row(Payload, gc=False):
    """A row that was flattened, with its image at ``after``."""

    deleted: str = ""


_check = msgspec.json.Decoder(_Nothing).decode
_encode: Any = msgspec.json.Encoder().encode


class FlatRows:
    """Read flattened rows, and the other messages of a connector, which the transform passes on as they are.

    :param source: that the connector writes.
    """

    def __init__(self, source: type[Source], flattening: Flattening) -> None:
        self._source, types = source, _types(source)
        self._added = {DELETED: "", **flattening.fields}  # with what each was
        self._headers = {
            name: (member, types[member]) for name, member in flattening.headers.items() if member in types
        }
        attributes = {f"f{number}": name for number, name in enumerate(self._added)}
        fields: list[Any] = [("f0", Literal["true", "false"])]
        self._members: dict[str, dict[str, str]] = {"source": {}, "transaction": {}, "": {}}  # name -> attribute
        for attribute, name in attributes.items():
            member = self._added[name]
            kind = types.get(member, msgspec.Raw)
            if member in types:
                struct, _, short = member.rpartition(".")
                self._members[struct][short] = attribute
            if member:
                raw = kind is msgspec.Raw
                fields.append((attribute, kind, msgspec.Raw()) if raw else (attribute, kind | None, None))
        added = msgspec.defstruct("Added", fields, rename=attributes, forbid_unknown_fields=True, gc=False)
        self._decode_added = msgspec.json.Decoder(added).decode
        message, self._flat_row = of_source(source, Payload), of_source(source, _Row)
        self._decode: Callable[[bytes], Payload] = msgspec.json.Decoder(message).decode
        self._envelope = EnvelopeReader(message, decode=self._message, columns=self._columns)

    def read(self, value: bytes, headers: Headers = None) -> tuple[tuple[str, ...] | None, Payload]:
        """Return a message behind the columns that its schema gives a row (as JSON texts), None without a schema.

        :param headers: of the record, where the settings add some.
        :raises ValueError: it is not a message, or not flattened as the settings say.
        """
        columns, message = self._envelope.read(value)
        if isinstance(message, _Row):
            return columns, self._unflattened(message, headers)
        if message.source is None:
            demand_known(value)
        return columns, message

    def key(self, key: bytes | None) -> bytes | None:
        """Return a key in JSON, as the envelope's reader gives it."""
        return self._envelope.key(key)

    def near_miss(self, key: bytes | None, value: bytes) -> str | None:
        """Return what a record is that is not a message, in words for people; None where it is nothing known."""
        return self._envelope.near_miss(key, value)

    def origin(self, value: bytes) -> Origin:
        """Return the members that name a row's table, as far as the row has them.

        :raises ValueError: it is not a message, or these members have other types.
        """
        members = payload_members(value)
        if DELETED not in members:
            return origin_of(value)
        named = {member: members[name] for name, member in self._added.items() if name in members}
        source = {name.removeprefix("source."): named[name] for name in named if name.startswith("source.")}
        # its op may be in a header: nothing but rows is flattened
        return msgspec.json.decode(_encode({"source": source, "op": named.get("op", "u")}), type=Origin)

    def may_delete(self, value: bytes) -> bool:
        """Return whether a record is the delete of a row, or not any row; quotes inside of its texts are escaped."""
        return _DELETE.search(value) is not None or _NAME not in value

    def _message(self, text: Any) -> Payload:
        """Read a row, or any other message.

        :raises msgspec.MsgspecError: it is none.
        """
        value = bytes(text)
        cut = value.find(_MARK)
        if cut > 0:
            try:
                added = self._decode_added(b"{" + value[cut + 1 :])
                image = value[:cut] + b"}"
                _check(image)  # both are objects, so the cut is between two members of the whole
            except msgspec.DecodeError:
                return self._by_members(value)
            return self._row(added, image)
        return self._by_members(value)

    def _by_members(self, value: bytes) -> Payload:
        """Read a row whose members stand in another order or with spaces, or any other message."""
        members = members_of(value)
        if DELETED not in members:
            return self._decode(value)
        names = list(members)
        unknown = [name for name in names[names.index(DELETED) :] if name not in self._added]
        if unknown:
            raise UnsupportedRecord(
                "record.malformed", f"a flattened row with the member {unknown[0]} behind {DELETED}: {_SETTINGS}"
            )
        texts: tuple[list[bytes], list[bytes]] = ([], [])
        for name, cell in members.items():
            texts[name in self._added].append(_encode(name) + b":" + bytes(cell))
        image, added = (b"{" + b",".join(part) + b"}" for part in texts)
        return self._row(self._decode_added(added), image)

    def _row(self, added: Any, image: bytes) -> Payload:
        """Return a row with the members that it has."""
        row: _Row = self._flat_row(after=msgspec.Raw(image), deleted=added.f0)
        members = self._members
        row.source = self._source(**{name: getattr(added, attribute) for name, attribute in members["source"].items()})
        for name, attribute in members[""].items():
            setattr(row, name, getattr(added, attribute))
        order = {name: getattr(added, attribute) for name, attribute in members["transaction"].items()}
        row.transaction = None if order.get("total_order") is None else Transaction(**order)
        return row

    def _unflattened(self, row: _Row, headers: Headers) -> Payload:
        """Return the message that a row was."""
        if self._headers:
            self._fill(row, headers)
        if row.op is None or (row.op == "d") != (row.deleted == "true"):
            said = "without its op" if row.op is None else f"of op {row.op} with {DELETED} {row.deleted}"
            raise UnsupportedRecord("record.malformed", f"a flattened row {said}: {_SETTINGS}")
        if row.op == "d":
            row.before, row.after = row.after, msgspec.Raw()
        return row

    def _fill(self, row: _Row, headers: Headers) -> None:
        """Give a row the members that stand in headers; of several of one name the last counts."""
        texts = {name: value for name, value in headers or () if name in self._headers and value is not None}
        order = {}
        for name, value in texts.items():
            member, kind = self._headers[name]
            struct, _, short = member.rpartition(".")
            cell = _header(value, kind)
            if struct == "transaction":
                order[short] = cell
                continue
            part = row.source if struct else row
            if getattr(part, short) in (None, msgspec.Raw(), _NULL):
                setattr(part, short, cell)
        if row.transaction is None and order.get("total_order") is not None:
            row.transaction = Transaction(**order)

    def _columns(self, schema: bytes) -> tuple[str, ...] | None:
        columns = flat_columns(schema, DELETED, self._added)
        return row_columns(schema) if columns is None else columns


def _types(source: type[Source]) -> Mapping[str, Any]:
    """Return the types of what a row may keep of its message, by the members' paths."""
    return {
        f"{prefix}{name}": kind
        for prefix, struct in (("source.", source), ("transaction.", Transaction), ("", Payload))
        for name, kind in get_type_hints(struct, include_extras=True).items()
        if prefix or name in ("op", "ts_ms", "ts_us")
    }


def _header(value: bytes, kind: Any) -> Any:
    """Read a header's value: the text itself (SimpleHeaderConverter), or JSON (JsonConverter).

    :raises ValueError: it is none.
    """
    text: Any = value.decode()
    if text.startswith('{"schema"'):
        text = msgspec.json.decode(text)["payload"]
    elif text.startswith('"'):
        text = msgspec.json.decode(text)
    if text is None:
        return None
    if kind is msgspec.Raw:
        return msgspec.Raw(_encode(text))
    return msgspec.convert(text, kind, strict=False)
