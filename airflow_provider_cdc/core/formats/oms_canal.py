"""The method "Canal" of OceanBase Migration Service (OMS): Canal's members, with values as OMS writes them.

Numbers are JSON numbers, bytes base64, TIMESTAMP an epoch; there is no place in the source's log, and the text of a
schema change is empty (specs/oceanbase-oms.md, sections 4, 7 and 10).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.formats import oms_images
from airflow_provider_cdc.core.formats.canal_evidence import of_oms
from airflow_provider_cdc.core.formats.canal_statements import session_database
from airflow_provider_cdc.core.formats.change_columns import ChangeColumns
from airflow_provider_cdc.core.formats.contract import Progress, Records
from airflow_provider_cdc.core.formats.oms_columns import speaks_oracle
from airflow_provider_cdc.core.formats.oms_options import DB_TYPE, NULL_IN_BOTH, TIMEZONE, OmsOptions

# milliseconds up to the year 9999: what a timestamp column can hold
_Millis = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]

# ROW is a row of the full load elsewhere in OMS; of this method the sheet says to accept it (section 4)
_ROW_OPS = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete", "ROW": "snapshot"}
# what a schema change without text still says by its type, in Canal's words; RENAME says too little
_TEXTLESS = {"TRUNCATE": "TRUNCATE TABLE {}.{}", "ERASE": "DROP TABLE {}.{}"}
_UNTOLD = "RENAME"


class _Message(msgspec.Struct, gc=False):
    """Any record; ``sqlType`` is not needed, it tells types less exactly than ``mysqlType`` (section 10, 14)."""

    database: str | None = None
    table: str | None = None
    type: str | None = None
    data: list[msgspec.Raw] | None = None
    old: list[msgspec.Raw] | None = None
    pkNames: msgspec.Raw = msgspec.Raw()
    mysqlType: msgspec.Raw = msgspec.Raw()
    es: _Millis | None = None
    ts: _Millis | None = None
    isDdl: bool | None = None
    sql: str | None = None


class _Times(msgspec.Struct, gc=False):
    es: _Millis | None = None
    type: str | None = None


_message = msgspec.json.Decoder(_Message)
_times = msgspec.json.Decoder(_Times)
_types = msgspec.json.Decoder(dict[str, str | None] | None)
_names = msgspec.json.Decoder(list[str] | None)


class WireFormat(oms_images.OmsFormat):
    """``oms-canal``: rows of the method Canal."""

    name = "oms-canal"
    summary = "OceanBase OMS, method Canal"
    evidence = staticmethod(of_oms)
    order = "second"
    carries = frozenset({"rows", "types"})
    updates_move_keys = True
    # schema changes are records among the rows, even if their text is empty: rows tell of unknown tables only, since
    # their types have no lengths and a renamed column would look like a dropped and an added one
    ddl_among_rows = True
    splits_partitions = False
    partial_images = False
    options: Mapping[str, str] = {"dbType": DB_TYPE, "timezone": TIMEZONE, "null_in_both": NULL_IN_BOTH}

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = OmsOptions(options or {}, sequenced=False)
        self.partial_images = self._options.null_is_unchanged
        self._descriptions = oms_images.Descriptions()
        self._numbers: dict[Any, int] = {}

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        out = ChangeColumns(self._descriptions.texts)
        for place, (key, value) in enumerate(zip(records.keys, records.values, strict=True)):
            if value is None:
                out.add(place, "ignored")
                continue
            try:
                message = _message.decode(value)
                op = _ROW_OPS.get(message.type or "")
                if op is not None and not message.isDdl:
                    self._rows(out, place, message, op)
                elif message.isDdl or (message.data is None and message.sql):
                    self._schema_change(out, place, message, key, value)
                else:
                    raise ValueError("unknown type")
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                reason = str(error).split(" - at `$", 1)[0][:120]
                out.error(place, "record.malformed", f"no OMS Canal message: {reason}", key, value)
        return out.batch(records)

    def _rows(self, out: ChangeColumns, place: int, message: _Message, op: str) -> None:
        if not message.data or not message.database or not message.table:
            raise ValueError("a row without data, database or table")
        time = None if message.es is None else message.es * 1000
        olds = message.old or [] if op == "update" else None
        if olds is not None and len(olds) != len(message.data):
            raise ValueError("an update whose old does not have an entry for each row of data")
        changes: list[tuple[Any, ...]] = []
        for number, data in enumerate(message.data):
            members = oms_images.members_of(data)
            if not members:
                raise ValueError("a row without columns")
            image, names = bytes(data), tuple(members)
            before: bytes | None = None
            after: bytes | None = image
            complete = True
            if olds is not None:
                before, after, names = self._update(members, image, oms_images.members_of(olds[number]))
                complete = len(names) == len(members)
            elif op == "delete":
                before, after = image, None
            columns = self._columns(message, names, complete)
            where = message.database, message.table, None, None, None
            changes.append((place, number, "row", op, *where, time, before, after, columns))
        first = len(out.changes)
        out.changes.extend(changes)
        for row in range(first, len(out.changes)):
            out.note(row, "tool_time", message.ts)

    def _schema_change(
        self, out: ChangeColumns, place: int, message: _Message, key: bytes | None, value: bytes
    ) -> None:
        """Take the text of a schema change, or what its type says where the text is empty, as documented."""
        statement = message.sql or ""
        if not statement.strip():
            if message.type == _UNTOLD:
                out.error(place, "record.ddl_without_text", "a RENAME that does not say what it renamed", key, value)
                return
            statement = _said_by_type(message)
        out.add(
            place,
            "schema",
            database=message.database or "",
            table=message.table or None,
            source_time=None if message.es is None else message.es * 1000,
            tool_time=message.ts,
            statement=statement,
            default_database=session_database(statement, message.database or "", message.table or ""),
        )

    def _update(
        self, members: dict[str, msgspec.Raw], image: bytes, old: dict[str, msgspec.Raw]
    ) -> tuple[bytes, bytes, tuple[str, ...]]:
        """Return both images of an update and the columns of the one after it.

        The row before is as after, but for the columns that ``old`` lists. A sample lists a column that the row does
        not have (section 10, 12): none is invented.
        """
        if not old.keys() <= members.keys():
            old = {name: token for name, token in old.items() if name in members}
        before = {**members, **old}
        names = tuple(members)
        if self._options.null_is_unchanged:
            image, names = oms_images.without_unchanged_nulls(before, members)
        return msgspec.json.encode(before), image, names

    def _columns(self, message: _Message, names: tuple[str, ...], complete: bool) -> int:
        """Return the number of the ``columns`` text for a row."""
        mark = names, bytes(message.mysqlType), bytes(message.pkNames), complete
        number = self._numbers.get(mark)
        if number is None:
            types = (_types.decode(message.mysqlType) if message.mysqlType else None) or {}
            said = {name: text for name, text in types.items() if text is not None}
            # null is a table without key; a record that lacks the member does not say
            key = tuple(_names.decode(message.pkNames) or ()) if message.pkNames else None
            oracle = speaks_oracle(self._options.source)
            number = self._numbers[mark] = self._descriptions.number(names, key, said, oracle, complete)
        return number

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the source time of a record; the method is not known to have heartbeats."""
        if value is None:
            return None
        try:
            message = _times.decode(value)
        except (msgspec.MsgspecError, RecursionError):
            return None
        return None if message.es is None or message.type is None else Progress(message.es, heartbeat=False)


def _said_by_type(message: _Message) -> str:
    template = _TEXTLESS.get(message.type or "")
    if template is None:
        return ""
    if not message.database or not message.table:
        raise ValueError(f"{message.type} without database or table")
    return template.format(*("`" + name.replace("`", "``") + "`" for name in (message.database, message.table)))
