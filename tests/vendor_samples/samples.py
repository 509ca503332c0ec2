# SPDX-License-Identifier: Apache-2.0
"""State what each JSON text in the vendors' documents means, what is wrong with it as printed, and how it is taken."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """A row change; its images are those of the text itself.

    :param key: columns of the key that the decoder reports, None where the text names none of its columns.
    """

    op: str
    database: str
    table: str
    key: tuple[str, ...] | None


@dataclass(frozen=True)
class Ddl:
    """A schema change."""

    database: str
    statement: str


@dataclass(frozen=True)
class Mark:
    """A heartbeat: everything before this time, in milliseconds, was sent."""

    time: int


@dataclass(frozen=True)
class NoMessage:
    """A description of the form with words and comments in place of values, which no decoder may take for a message."""


@dataclass(frozen=True)
class Sample:
    """One text and its verdict.

    :param defect: what makes the text no JSON: as printed it is refused, with ``repair`` it has its meaning.
    :param repair: pattern and replacement.
    :param odd: what else is wrong with it and how that is taken.
    """

    format: str
    meaning: Row | Ddl | Mark | NoMessage
    defect: str = ""
    repair: tuple[str, str] = ("", "")
    odd: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


_COMMA = "a comma after the last column (docs/wire/oceanbase-oms.md 10.3)"
_WITHOUT_COMMA = (r",(?=\s*\})", "")
_NO_KEY = "record_primary_key names int8 and int16, no columns of it: no key is named (docs/wire/oceanbase-oms.md 10.7)"
# storeDataSequence is absent (docs/wire/oceanbase-oms.md 10.8); scn, 123456789, has no counter
_NO_SEQUENCE = {"sequenceEnabled": "false"}
_TYPES = f"__light_type does not name the columns: no types are stated (docs/wire/oceanbase-oms.md 10.31); {_NO_KEY}"
_COLUMNS = "schema.column and pk name columns of no image: neither is used (docs/wire/oceanbase-oms.md 10.20, 10.21)"

_insert, _update, _delete = (Row(op, "database", "table", None) for op in ("insert", "update", "delete"))
_default = {op: Row(op, "database", "table_name", None) for op in ("insert", "update", "delete")}
_works = {op: Row(op, "db", "tab", None) for op in ("insert", "update", "delete")}
_plex = {op: Row(op, "mock_database", "mock_table", None) for op in ("insert", "update", "delete")}

# by the number of the document and the heading and label above the text
SAMPLES = {
    "002": {
        "Key": Sample(
            "dtle-json",
            Row("snapshot", "inventory", "customers", ("id",)),
            "no comma after the name: a row with this key is refused",
            (r'(customers\.Key")', r"\1,"),
        ),
        "Value": Sample(
            "dtle-json",
            Row("snapshot", "inventory", "customers", ("id",)),
            odd="version 0.8.3.Final is Debezium's, dtle writes 0.0.1 (docs/wire/debezium-dtle.md A2)",
        ),
        "DDL": Sample(
            "dtle-json",
            Ddl("a", "CREATE TABLE `a` (\n `id` int(11) NOT NULL AUTO_INCREMENT,\n PRIMARY KEY (`id`)\n) ENGINE=InnoDB"
                " AUTO_INCREMENT=4 DEFAULT CHARSET=latin1"),
            odd="dtle never fills source.server and tableChanges: the statement counts (docs/wire/debezium-dtle.md A4)",
        ),
    },
    "003": {
        "Default": Sample("oms-default", NoMessage()),
        "Default INSERT": Sample("oms-default", _default["insert"], _COMMA, _WITHOUT_COMMA, _NO_KEY, _NO_SEQUENCE),
        "Default UPDATE": Sample("oms-default", _default["update"], _COMMA, _WITHOUT_COMMA, _NO_KEY, _NO_SEQUENCE),
        "Default DELETE": Sample(
            "oms-default",
            _default["delete"],
            odd=f"col16 where others have col6: names count, not places (docs/wire/oceanbase-oms.md 10.4); {_NO_KEY}",
            options=_NO_SEQUENCE,
        ),
        "Canal": Sample("oms-canal", NoMessage()),
        "Canal INSERT": Sample("oms-canal", Row("insert", "database", "table", ("col1", "col2"))),
        "Canal UPDATE": Sample(
            "oms-canal",
            Row("update", "database", "table", ("col1", "col2")),
            odd="old names a column string that data lacks: it is passed over (docs/wire/oceanbase-oms.md 10.12)",
        ),
        "Canal DELETE": Sample(
            "oms-canal", _delete, odd="pkNames has no columns of it: no key is named (docs/wire/oceanbase-oms.md 10.13)"
        ),
        "Dataworks": Sample("oms-dataworks", NoMessage()),
        "Dataworks 同步任务心跳消息": Sample(
            "oms-dataworks", Mark(1620457659000), "comments behind the values", (r"//.*", "")
        ),
        "Dataworks INSERT": Sample("oms-dataworks", _works["insert"], odd=_COLUMNS),
        "Dataworks UPDATE": Sample("oms-dataworks", _works["update"], odd=_COLUMNS),
        "Dataworks DELETE": Sample("oms-dataworks", _works["delete"], odd=_COLUMNS),
        "SharePlex": Sample("oms-shareplex", NoMessage()),
        "SharePlex INSERT": Sample(
            "oms-shareplex",
            _plex["insert"],
            odd="rowid lacks its separator: it is not read (docs/wire/oceanbase-oms.md 10.25)",
            options=_NO_SEQUENCE,
        ),
        "SharePlex UPDATE": Sample(
            "oms-shareplex",
            _plex["update"],
            odd="data has a column string that key lacks: it stands with the row after, so that typing, which knows the"
            " table, finds it (docs/wire/oceanbase-oms.md 10.26)",
            options=_NO_SEQUENCE,
        ),
        "SharePlex DELETE": Sample("oms-shareplex", _plex["delete"], options=_NO_SEQUENCE),
        "DefaultExtendColumnType": Sample("oms-default-extended", NoMessage()),
        "DefaultExtendColumnType INSERT": Sample("oms-default-extended", _insert, odd=_TYPES, options=_NO_SEQUENCE),
        "DefaultExtendColumnType UPDATE": Sample("oms-default-extended", _update, odd=_TYPES, options=_NO_SEQUENCE),
        "DefaultExtendColumnType DELETE": Sample("oms-default-extended", _delete, odd=_TYPES, options=_NO_SEQUENCE),
    },
    "004": {
        "": Sample(
            "drs-json", Row("update", "test01", "test ", ("id",)), odd="the table's name ends in a blank, which stays"
        ),
    },
}  # fmt: skip


def repaired(sample: Sample, text: str) -> str:
    """Return a sample's text without its defect."""
    return re.sub(*sample.repair, text) if sample.defect else text
