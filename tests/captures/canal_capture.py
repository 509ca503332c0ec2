# SPDX-License-Identifier: Apache-2.0
"""Read captures of Canal, and compare tables with their source."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from functools import cache
from pathlib import Path

from airflow_provider_cdc.demo.truth import SourceTable, differing
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.captures.replaying import Lake
from tests.locations import table_location
from tests.services.capture import Record, read

DATA = Path(__file__).parent / "data"
# text that is not UTF-8 in the database is read as UTF-8: these columns cannot be compared
UNREADABLE = {"shop.t_str": {"vg", "vl", "tg", "vk"}, "shop.r5": {"c0"}}
# CHAR CHARACTER SET binary is read as text, too; what has no UTF-8 is quarantined with its row
QUARANTINED = {"shop.t_bin": {"4", "6", "7"}}
JSON_TEXT = "numbers in JSON as Java prints them, dates in JSON as date-times"
SIGNED_ZERO = "the row holds -0.0, which SQL showed as 0"
CELLS = {
    ("canal-my8", "shop.t_json", "j", "8"): JSON_TEXT,
    ("canal-my8", "shop.t_json", "j", "51"): JSON_TEXT,
    ("canal-my8", "shop.t_json", "k", "9"): JSON_TEXT,
    ("canal-my8", "shop.t_num", "f", "7"): SIGNED_ZERO,
    ("canal-my8", "shop.t_num", "f53", "7"): SIGNED_ZERO,
    ("canal-my8", "shop.t_num", "db", "7"): SIGNED_ZERO,
}
# what changed in the database without a row event
UNSEEN = {
    "shop.odd_stmt": "changes were logged as statements: counted as errors",
}
# tables that say so themselves, with this in the reason
PARKED = {
    "shop.odd_child": "[apply.cascaded] a foreign key to shop.odd_par",
    "shop.part": "TRUNCATE PARTITION",
}
# row images MINIMAL and NOBLOB, which in flat JSON look like rows older than a column
PARTIAL = {"canal-my8-f", "canal-mdb-f"}
# flat JSON spread over partitions carries no order between rows and a rename or TRUNCATE of the same moment
UNORDERED = {
    ("canal-my8-f", "h"): {"other_db.rb_moved", "shop.r1", "shop.r2", "shop.r4"},
    ("canal-my8-f", "d"): {"other_db.rb_moved", "shop.r1", "shop.r2", "shop.r3", "shop.r4"},
    ("canal-mdb-f", "h"): {"shop.r1", "shop.r2", "shop.r4"},
    ("canal-mdb-f", "d"): {"other_db.rb_moved", "shop.r1", "shop.r2", "shop.r3", "shop.r4"},
}
# tables whose names cannot be topic names were left out by a filter
FILTERED = {"shop.we ird.na-me", "shop.订单"}


def load(path: Path) -> list[SourceTable]:
    """Read a Canal capture's ``source_final``."""
    tables = []
    with lzma.open(path, "rt") as lines:
        for line in lines:
            data = json.loads(line)
            types = tuple(column["data_type"] for column in data["columns"])
            rows = tuple(
                tuple(_text(value, kind) for value, kind in zip(row, types, strict=True)) for row in data["rows"]
            )
            names = tuple(column["name"] for column in data["columns"])
            tables.append(SourceTable(data["database"], data["table"], names, types, tuple(data["primary_key"]), rows))
    return tables


def _text(value: str | None, kind: str) -> str | None:
    """Return a value as Debezium's captures spell it: ENUM and SET by label, BIT as hexadecimal digits."""
    if value is None:
        return None
    if kind in ("enum", "set"):
        return value.split(":", 1)[1]
    return f"{int(value):x}" if kind == "bit" else value


@cache
def records(name: str) -> list[Record]:
    return list(read(DATA / name))


def problems(name: str, layout: str, lake: Lake, source: SourceTable) -> list[str]:
    """Return what differs, but for what Canal loses."""
    full = f"{source.database}.{source.table}"
    state = lake.state(source.database, source.table)
    if state is None:
        return [] if layout == "d" and full in FILTERED else [f"{full}: not there"]
    if state.state != "ok":
        return [] if _is_known(name, layout, full, state.reason) else [f"{full}: {state.state}: {state.reason}"]
    rows = DeltaLocation(table_location(str(lake.root), source.database, source.table), {}).rows()
    unreadable = UNREADABLE.get(full, set())
    indexes = [index for index, column in enumerate(source.columns) if column not in unreadable]
    readable = replace(
        source,
        columns=tuple(source.columns[index] for index in indexes),
        types=tuple(source.types[index] for index in indexes),
        rows=tuple(tuple(row[index] for index in indexes) for row in source.rows),
    )
    result = differing(readable, rows.drop_columns(sorted(unreadable)))
    return [f"{full}: {text}" for text in result if not _lost(name, full, text)]


def _is_known(name: str, layout: str, full: str, reason: str) -> bool:
    if full in PARKED:
        return PARKED[full] in reason
    if full == "shop.img":
        return name in PARTIAL and "apply.schema_missing" in reason
    unordered = full in UNORDERED.get((name, layout), set())
    return unordered and any(code in reason for code in ("apply.order_unknown", "apply.schema_missing"))


def _lost(name: str, full: str, problem: str) -> bool:
    if full in UNSEEN:
        return True
    if problem.startswith("missing ") and any(f"'{key}'" in problem for key in QUARANTINED.get(full, ())):
        return True
    column, _, rest = problem.partition(" of ")
    key = rest.partition(": ")[2].partition("}")[0].strip('"')
    return (name.rpartition("-")[0], full, column, key) in CELLS
