# SPDX-License-Identifier: Apache-2.0
"""Compare rows of a table in the lake with the same rows in the source database."""

from __future__ import annotations

import json
import math
import random
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import repeat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from airflow_provider_cdc.sinks.contract import StoredTable

Row = Mapping[str, Any]
Key = tuple[Any, ...]

_KEYS_IN_A_QUERY = 100
_SINGLE_PRECISION = 1e-6
_FILES = 8  # that a sample is taken from, where a table has so many


@dataclass
class SampleComparison:
    """Count what a comparison of one table's sample showed.

    :param compared: rows that both sides can be compared in.
    :param changed_since: rows that changed at the source after the batch, which are left out.
    :param missing: keys of rows that the source does not have.
    :param different: columns that differ, by the row's key.
    """

    compared: int = 0
    changed_since: int = 0
    missing: list[Key] = field(default_factory=list)
    different: dict[Key, list[str]] = field(default_factory=dict)

    @property
    def wrong(self) -> int:
        """Return the number of rows that are not as at the source."""
        return len(self.missing) + len(self.different)

    def __str__(self) -> str:
        columns = sorted({name for names in self.different.values() for name in names})
        parts = [f"{len(self.different)} of {self.compared} rows differ (in {', '.join(columns)})"] if columns else []
        parts += [f"{len(self.missing)} rows are not at the source"] if self.missing else []
        return " and ".join(parts) or f"{self.compared} rows agree"


def count_rows(table: StoredTable, condition: pc.Expression | None = None) -> int:
    """Return the number of rows of which a condition holds."""
    return table.count() if condition is None else int(table.dataset().count_rows(filter=condition))


def sample_rows(
    table: StoredTable, columns: Sequence[str], number: int, seed: int, condition: pc.Expression | None = None
) -> list[dict[str, Any]]:
    """Return random rows of a table; the same seed returns the same rows of a version.

    The rows are of some random files, of as many as the sample needs: the others are not opened.

    :param number: rows to return, at most.
    :param condition: of the rows.
    """
    chance = random.Random(seed)
    files = sorted(table.dataset().get_fragments(), key=lambda file: str(file.path))
    chance.shuffle(files)
    opened: list[tuple[Any, int]] = []
    held = 0
    for file in files:
        if held >= number and len(opened) >= _FILES:
            break
        opened.append((file, held))
        held += file.count_rows(filter=condition)
    numbers = sorted(chance.sample(range(held), min(held, number)))
    rows: list[dict[str, Any]] = []
    for (file, first), end in zip(opened, [*(first for _, first in opened[1:]), held], strict=True):
        indexes = [one - first for one in numbers[bisect_left(numbers, first) : bisect_left(numbers, end)]]
        rows += file.scanner(columns=list(columns), filter=condition).take(indexes).to_pylist() if indexes else []
    return rows


def newest_value(table: StoredTable, column: str) -> Any:
    """Return the greatest value of a column; None without any."""
    import pyarrow.compute as pc

    values = (pc.max(batch.column(0)).as_py() for batch in table.dataset().scanner(columns=[column]).to_batches())
    return max((value for value in values if value is not None), default=None)


def source_rows(
    hook: Any, name: str, key: Sequence[str], columns: Sequence[str], keys: Iterable[Key]
) -> dict[Key, dict[str, Any]]:
    """Return the source's rows with these keys, by key in the form of :func:`comparable_key`.

    :param hook: hook of the source database, as ``common.sql`` defines it.
    :param name: quoted name of the table.
    """
    quote = quoting(hook)
    selected = ", ".join(map(quote, [*key, *columns]))
    rows: dict[Key, dict[str, Any]] = {}
    # Not get_records: the hook logs the parameters of a statement, and keys are values of rows.
    with closing(hook.get_conn()) as connection, closing(connection.cursor()) as cursor:
        for part in _parts(list(keys), _KEYS_IN_A_QUERY):
            marks = _placeholders(hook, len(part) * len(key))
            terms = [" AND ".join(f"{quote(column)} = {next(marks)}" for column in key) for _ in part]
            sql = f"SELECT {selected} FROM {name} WHERE {' OR '.join(f'({term})' for term in terms)}"
            cursor.execute(sql, [value for one in part for value in one])
            for values in cursor.fetchall():
                rows[comparable_key(values[: len(key)])] = dict(zip(columns, values[len(key) :], strict=True))
    return rows


def compare(
    mine: Iterable[Row], theirs: Mapping[Key, Row], key: Sequence[str], columns: Sequence[str],
    json_columns: Container[str] = (),
    changed_column: str | None = None, newest: Any = None,
) -> SampleComparison:  # fmt: skip
    """Compare rows of the lake with the source's.

    :param theirs: rows by key, as :func:`source_rows` returns them.
    :param json_columns: columns whose texts are compared as JSON: databases write spaces where a log has none.
    :param changed_column: column that the source sets with each change of a row: a row whose value is not before
        ``newest``, the greatest that the table holds, has changed since the batch and is left out.
    """
    result = SampleComparison()
    for row in mine:
        identity = tuple(row[name] for name in key)
        other = theirs.get(comparable_key(identity))
        if other is None:
            result.missing.append(identity)
            continue
        if changed_column is not None and _is_since(other[changed_column], newest):
            result.changed_since += 1
            continue
        result.compared += 1
        differing = [name for name in columns if not is_same(row[name], other[name], name in json_columns)]
        if differing:
            result.different[identity] = differing
    return result


def quoting(hook: Any) -> Any:
    """Return the function that quotes a name for a database."""
    mark = "`" if getattr(hook, "conn_type", "") == "mysql" else '"'
    return lambda name: f"{mark}{name.replace(mark, mark * 2)}{mark}"


def comparable_key(values: Iterable[Any]) -> Key:
    """Return a key in a form that is equal for equal values of both sides."""
    return tuple(_comparable(value) for value in values)


def is_same(mine: Any, theirs: Any, is_json: bool = False) -> bool:
    """Return whether a stored value is the source's, whatever types the database's driver uses."""
    if mine is None or theirs is None:
        return mine is theirs
    if isinstance(mine, float) or isinstance(theirs, float):
        # A driver returns FLOAT with fewer digits than the number has.
        return math.isclose(float(mine), float(theirs), rel_tol=_SINGLE_PRECISION) or mine == theirs
    if is_json:
        return bool(json.loads(mine) == (json.loads(theirs) if isinstance(theirs, str | bytes) else theirs))
    if isinstance(theirs, set | frozenset):
        return set(str(mine).split(",")) - {""} == set(theirs)
    if isinstance(theirs, bytes | memoryview) and isinstance(mine, int | Decimal):  # BIT
        return int(mine) == int.from_bytes(bytes(theirs), "big")
    return bool(_comparable(mine) == _comparable(theirs))


def _comparable(value: Any) -> Any:
    """Return a value in a form that is equal for equal values of both sides."""
    if isinstance(value, bool | int | Decimal):
        return Decimal(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, datetime):
        return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return _time_text(value) if isinstance(value, timedelta) else str(value)


def _time_text(value: timedelta) -> str:
    """Return TIME as the lake holds it."""
    sign, rest = ("-", -value) if value < timedelta(0) else ("", value)
    seconds, fraction = divmod(rest // timedelta(microseconds=1), 1_000_000)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}" if fraction else text


def _is_since(value: Any, newest: Any) -> bool:
    if value is None or newest is None:
        return newest is None
    return bool(_comparable(value) >= _comparable(newest))


def _placeholders(hook: Any, number: int) -> Iterator[str]:
    if getattr(hook, "conn_type", "") == "oracle":
        return (f":{index}" for index in range(1, number + 1))
    return repeat(getattr(hook, "placeholder", "%s"), number)


def _parts(keys: list[Key], size: int) -> Iterator[list[Key]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))
