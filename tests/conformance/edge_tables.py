# SPDX-License-Identifier: Apache-2.0
"""Tables with the edges of every type, by every writer, and readers that leave files out by their statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder

from airflow_provider_cdc.core.apply.merge_plan import LaterRows
from airflow_provider_cdc.core.documents import Maintenance, TableState
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.sink import open_sink
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter
from spark_jobs.tasks.maintain_table import maintain_table
from tests.sinks.actions import columns_of

D = Decimal
_MOMENTS = [
    datetime(1, 1, 1, 0, 0, 0, 1),
    datetime(1, 1, 1),
    datetime(1582, 10, 10, 12),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1970, 1, 1),
    datetime(2026, 1, 2, 3, 4, 5, 1),
    datetime(2026, 1, 2, 3, 4, 5, 999999),
    datetime(9999, 12, 31, 23, 59, 59, 998999),
    datetime(9999, 12, 31, 23, 59, 59, 999000),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
]
_TEXTS = [
    "", " ", "a", "A", "á", "a ", "null", "\x00", "a\x00b", "\n'\"\\`\t", "%_", "x" * 31, "x" * 32, "x" * 33,
    "z" * 5000, "é" * 40, "\ud7ff" * 40, "\ue000", "\U0010ffff", "x" * 31 + "\U0010ffff" + "y",
    "\U0010ffff" * 32, "😀" * 40,
]  # fmt: skip


def _number(digits: int, scale: int) -> list[Any]:
    """Return the edges of a decimal: both ends, the digits that a double does not have, the least above zero."""
    most = 10**digits - 1
    numbers = {0, 1, -1, most, -most, most - 1, most // 7, 2**63, 2**63 - 1, 2**63 + 1, 2**53 + 1, 10**scale}
    exact = Context(prec=digits)
    return [D(n).scaleb(-scale, exact) for n in sorted(numbers) if abs(n) <= most]


def _whole(low: int, high: int) -> list[Any]:
    return [n for n in (low, low + 1, -1, 0, 1, 2**31, 2**53 + 1, high - 1, high) if low <= n <= high]


_FLOAT, _DOUBLE = 3.4028234663852886e38, 1.7976931348623157e308
_DAYS = [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)]
_BIG = [D(n) for n in (0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1025, 2**64 - 1)]
GROUPS: dict[str, list[tuple[ColumnType, list[Any]]]] = {
    "numbers": [
        (ColumnType("tinyint"), _whole(-(2**7), 2**7 - 1)),
        (ColumnType("tinyint", 1), [True, False]),
        (ColumnType("tinyint", unsigned=True), _whole(0, 2**8 - 1)),
        (ColumnType("smallint"), _whole(-(2**15), 2**15 - 1)),
        (ColumnType("int"), _whole(-(2**31), 2**31 - 1)),
        (ColumnType("int", unsigned=True), _whole(0, 2**32 - 1)),
        (ColumnType("bigint"), _whole(-(2**63), 2**63 - 1)),
        (ColumnType("bigint", unsigned=True), _BIG),
        (ColumnType("bit", 1), [False, True]),
        (ColumnType("bit", 63), _whole(0, 2**63 - 1)),
        (ColumnType("bit", 64), _BIG),
        (ColumnType("year"), [0, 1901, 2155]),
        (ColumnType("float"), [0.0, -0.0, 1e-45, 1.1754943508222875e-38, -_FLOAT, _FLOAT]),
        (ColumnType("double"), [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 0.1, 1e22, -_DOUBLE, _DOUBLE]),
        (ColumnType("double", 53), [_DOUBLE, 9007199254740993.0, 123456789.123456789, -0.1]),
    ],
    "decimals": [
        *((ColumnType("decimal", digits, scale), _number(digits, scale)) for digits, scale in (
            (1, 0), (5, 5), (10, 8), (15, 2), (16, 16), (17, 2), (18, 2), (18, 18), (19, 4), (20, 0), (28, 6), (38, 0),
            (38, 10), (38, 38),
        )),
        (ColumnType("decimal", 65, 30), ["9" * 35 + "." + "9" * 30, "0." + "0" * 29 + "1", "-" + "9" * 35 + ".5", "0"]),
    ],
    "others": [
        (ColumnType("date"), _DAYS),
        (ColumnType("datetime", 6), _MOMENTS),
        (ColumnType("timestamp", 6), [moment.replace(tzinfo=UTC) for moment in _MOMENTS]),
        (ColumnType("time", 6), ["-838:59:59.000000", "00:00:00.000001", "838:59:59.000000"]),
        (ColumnType("varchar", 5000), _TEXTS),
        (ColumnType("enum", labels=("", "a")), ["", "a"]),
        (ColumnType("json"), ["null", '{"a": 1e-8}']),
        (ColumnType("varbinary", 100), [b"", b"\x00", b"\xff" * 40, b"a'\\"]),
        (ColumnType("geometry"), [b"\x00" * 25, b"\x01"]),
        (ColumnType("vector"), [[0.5, -0.0], [], [1e-45]]),
    ],
}  # fmt: skip
# no reader knows bounds of these: a file that has one is read by everybody
UNBOUNDED = {"double": [math.inf, -math.inf], "float": [math.inf], "varchar": ["\U0010ffff" * 33]}


def edge_rows(*groups: str) -> pa.Table:
    """Return rows with each edge of each type of some groups, and NULL; the key is ``id``."""
    columns = [column for group in groups for column in GROUPS[group]]
    count = 1 + max(len(values) for _, values in columns)
    ids = pa.array(range(count + 3), pa.int64())
    arrays = {"id": ids}
    for number, (kind, values) in enumerate(columns):
        extra = UNBOUNDED.get(kind.name, [])
        cycle = [[*values, None][row % (len(values) + 1)] for row in range(count)]
        rest = [extra[row] if row < len(extra) else values[-1] for row in range(3)]
        name = f"c{number}_{kind.name}_{kind.length or ''}"
        arrays[name] = pa.array([*cycle, *rest], arrow_type(kind, TypeOptions(tinyint1_as_boolean=True)))
    return pa.table(arrays)


def _commit(seq: int) -> Commit:
    return Commit("cdc/p/t/0", seq, {"app": "cdc/p/t/0", "seq": seq})


def _do(location: str, verb: Any, rows: pa.Table, seq: int, **more: Any) -> None:
    assert TaskWriter().commit(DeltaLocation(location, {}), Action(verb, _commit(seq), rows, **more)) is not None


def _each(rows: pa.Table) -> Iterator[pa.Table]:
    return (rows.slice(number, 1) for number in range(rows.num_rows))


def _first_commit(location: str, rows: pa.Table) -> None:
    _do(location, "create", rows, 1)


def _appends(location: str, rows: pa.Table) -> None:
    """Write a file for each row: its bounds are the row's values."""
    _do(location, "create", rows.slice(0, 0), 1)
    for seq, row in enumerate(_each(rows), 2):
        _do(location, "append", row, seq)


def _in_pieces(location: str, rows: pa.Table) -> None:
    none = rows.slice(0, 0)
    _do(location, "create", none, 1)
    _do(location, "append", none, 2, later=LaterRows(rows.num_rows, lambda: _each(rows)))


def _in_parts(location: str, rows: pa.Table) -> None:
    """Write the files of key buckets, which one commit adds."""
    none, parts = rows.slice(0, 0), []
    _do(location, "create", none, 1)
    for piece in _each(rows):
        files = TaskWriter().row_files(DeltaLocation(location, {}), columns_of(rows.schema, "id"))
        assert files is not None
        files.add(piece)
        parts.append(files.written())
    _do(location, "merge", none, 2, parts=parts, deletes=none.select(["id"]), key=["id"])


def _merges(location: str, rows: pa.Table) -> None:
    """Write files again that hold changed and deleted rows, and leave others."""
    _do(location, "create", rows.slice(0, 0), 1)
    moved = rows.set_column(0, "id", pa.array([n + 1 for n in range(rows.num_rows)], pa.int64()))
    for seq, row in enumerate(_each(moved), 2):
        _do(location, "append", row, seq)
    gone = pa.table({"id": pa.array([rows.num_rows], pa.int64())})
    _do(location, "merge", rows.slice(0, 9), 98, deletes=gone, key=["id"])
    _do(location, "merge", rows.slice(9), 99, deletes=gone, key=["id"])


def _subtracts(location: str, rows: pa.Table) -> None:
    """Take one of two equal rows out of files that have several."""
    _do(location, "create", pa.concat_tables([rows, rows.slice(0, 5)]), 1)
    _do(location, "append", rows.slice(5), 2)
    _do(location, "subtract", rows.slice(0, 0), 3, deletes=rows)


def _new_columns(location: str, rows: pa.Table) -> None:
    """Add all columns but the key to a table that has none, with the rows that have them."""
    _do(location, "create", rows.select(["id"]), 1)
    _do(location, "merge", rows, 2, deletes=rows.slice(0, 0).select(["id"]), key=["id"])


def _new_layout(location: str, rows: pa.Table) -> None:
    _do(location, "create", rows.select(["id"]), 1)
    _do(location, "overwrite", rows.slice(0, 0), 2, remaining=_each(rows))


def _maintained(location: str, rows: pa.Table) -> None:
    _appends(location, rows)
    root, _, name = location.rpartition("/")
    report = maintain_table(
        open_sink({}), TableState("t", "shop", "t", name), Maintenance(1 << 27, keep_hours=0), root, "p"
    )
    assert (report.error, report.written) == (None, 1)
    DeltaTable(location).create_checkpoint()


def _checkpointed(location: str, rows: pa.Table) -> None:
    """Let the last of the appends write a checkpoint."""
    _do(location, "create", rows.slice(0, 0), 1)
    DeltaTable(location).alter.set_table_properties({"delta.checkpointInterval": str(rows.num_rows + 1)})
    for seq, row in enumerate(_each(rows), 2):
        _do(location, "append", row, seq)
    assert (Path(location) / "_delta_log" / "_last_checkpoint").exists()


WRITERS: dict[str, Callable[[str, pa.Table], None]] = {
    "first commit": _first_commit,
    "appends": _appends,
    "in pieces": _in_pieces,
    "in parts": _in_parts,
    "merges": _merges,
    "subtracts": _subtracts,
    "new columns": _new_columns,
    "new layout": _new_layout,
    "maintained": _maintained,
    "checkpointed": _checkpointed,
}
Looked = tuple[str, Any, pa.DataType]  # column, value, type


def looked_for(rows: pa.Table) -> list[tuple[Looked, int]]:
    """Return what a reader may look for, each with the number of rows that have it."""
    result = []
    for field in rows.schema:
        values = rows.column(field.name).to_pylist()
        if pa.types.is_list(field.type):
            continue
        for value in {repr(value): value for value in values}.values():
            same = [v for v in values if v == value and (v is None) == (value is None)]
            result.append(((field.name, value, field.type), len(same)))
    return result


def by_dataset(location: str, looked: Iterable[Looked]) -> list[int]:
    """Count by delta-rs' dataset for pyarrow."""
    dataset = DeltaTable(location).to_pyarrow_dataset()
    filters = (
        ds.field(name).is_null() if value is None else ds.field(name) == pa.scalar(value, kind)
        for name, value, kind in looked
    )
    return [dataset.count_rows(filter=condition) for condition in filters]


def by_filters(location: str, looked: Iterable[Looked]) -> list[int]:
    """Count the rows of ``to_pyarrow_table``."""
    table = DeltaTable(location)
    return [
        table.to_pyarrow_table(filters=ds.field(name).is_null()).num_rows
        if value is None
        else table.to_pyarrow_table(filters=[(name, "=", pa.scalar(value, kind))]).num_rows
        for name, value, kind in looked
    ]


def by_datafusion(location: str, looked: Iterable[Looked]) -> list[int]:
    """Count by delta-rs' own SQL engine."""
    table = QueryBuilder().register("t", DeltaTable(location))
    queries = [f'SELECT count(*) AS n FROM t WHERE "{name}" {_condition(value, kind)}' for name, value, kind in looked]
    return [pa.table(table.execute(query).read_all()).column("n")[0].as_py() for query in queries]


def _condition(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return "IS NULL"
    types = pa.types
    if types.is_string(kind):
        return "= '" + value.replace("'", "''") + "'"
    if types.is_binary(kind):
        return f"= X'{value.hex()}'"
    if types.is_boolean(kind):
        return f"= {str(value).lower()}"
    named = {pa.float32(): "Float32", pa.float64(): "Float64", pa.date32(): "Date32"}.get(kind)
    if types.is_timestamp(kind):
        zone = "None" if kind.tz is None else 'Some("UTC")'
        named, value = f"Timestamp(Microsecond, {zone})", value.replace(tzinfo=None).isoformat()
    elif types.is_decimal(kind):
        named, value = f"Decimal128({kind.precision}, {kind.scale})", f"{value:f}"
    elif types.is_integer(kind):
        named = str(kind).capitalize()
    return f"= arrow_cast('{value}', '{named}')"


def by_polars(location: str, looked: Iterable[Looked]) -> list[int]:
    """Count by polars, which reads Delta's statistics itself."""
    import polars

    frame = polars.scan_delta(location)
    counts = []
    for name, value, kind in looked:
        column = polars.col(name)
        known_as = polars.from_arrow(pa.array([], kind)).dtype
        same = column.is_null() if value is None else column == polars.lit(value, dtype=known_as)
        counts.append(frame.filter(same).select(polars.len()))
    return [answer.item() for answer in polars.collect_all(counts)]


READERS: dict[str, Callable[[str, list[Looked]], list[int]]] = {
    "dataset": by_dataset,
    "DataFusion": by_datafusion,
    "polars": by_polars,
}


def not_found(read: Callable[[str, list[Looked]], list[int]], location: Path | str, rows: pa.Table) -> list[str]:
    """Return what a reader finds in another number of rows than have it."""
    counted = looked_for(rows)
    answers = read(str(location), [looked for looked, _ in counted])
    return [
        f"{name} = {value!r}: {answer} of {count}"
        for ((name, value, _), count), answer in zip(counted, answers, strict=True)
        if answer != count
    ]
