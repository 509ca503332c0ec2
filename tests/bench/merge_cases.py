# SPDX-License-Identifier: Apache-2.0
"""Measure merges of near and random keys, of many small tables, of changed columns, and Spark's own MERGE."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from spark_jobs.sinks.contract import Action
from tests.bench.measure import cpu_of
from tests.bench.merged_table import Bench, Figure, commit_of, content
from tests.sinks.actions import columns_of

SMALL_ROWS = 1_000


def near_and_spread(kind: str, rows: int, changes: int, chance: np.random.Generator, folder: Path) -> list[Figure]:
    """Measure merges of neighbouring keys, of random ones, of other neighbours, and of some in the first one's file."""
    bench = Bench(kind, rows, max(1, rows // 50_000 if rows <= 1_000_000 else rows // 500_000), folder)
    near, spread = rows // 2 + np.arange(changes), chance.choice(rows, changes, replace=False)
    tenth, there = changes // 10, np.arange(rows + 4 * changes) < rows
    figures = []
    for case, keys in (
        ("near", near),
        ("spread", spread),
        ("near, after spread", near - rows // 5),
        ("near, next to the first", near + changes),
    ):
        changed, gone, known = keys[tenth:], keys[:tenth], bench.keys
        figures.append(bench.merge(f"{changes} {case}", changed, gone))
        there[gone] = False
        there[changed] = there[known : bench.keys] = True
    actual = sum(piece.num_rows for piece in bench.sink.open(bench.location).pieces())
    assert actual == there.sum(), (kind, actual, there.sum())
    return figures


def small_tables(kind: str, tables: int, changes: int, folder: Path) -> Figure:
    """Measure one merge into each of many tables."""
    benches = [Bench(kind, SMALL_ROWS, 1, folder, f"t{number}") for number in range(tables)]
    tenth, keys = changes // 10, np.arange(changes)
    figures = [bench.merge("", keys[tenth:], keys[:tenth]) for bench in benches]
    case = f"{tables} tables, {changes} changes each"
    cpu, wall = sum(one.cpu_seconds for one in figures), sum(one.seconds for one in figures)
    written, files = sum(one.written for one in figures), sum(one.files for one in figures)
    return Figure(kind, case, round(cpu, 3), round(wall, 3), written, files)


def changed_columns(kind: str, rows: int, folder: Path) -> list[Figure]:
    """Measure ADD, RENAME and DROP of a column of a large table, without rows, as a batch carries them out."""
    bench = Bench(kind, rows, max(1, rows // 500_000), folder)
    old = columns_of(content(np.arange(1), 0).schema, "id")
    added = _with(old, [*old.ids, 100], old.columns.append(pa.field("more", pa.string())))
    index = added.columns.names.index("t1")
    renamed = _with(added, added.ids, added.columns.set(index, added.columns.field(index).with_name("other")))
    index = renamed.columns.names.index("n3")
    ids = [one for number, one in enumerate(renamed.ids) if number != index]
    dropped = _with(renamed, ids, renamed.columns.remove(index))
    steps = [("ADD", old, added), ("RENAME", added, renamed), ("DROP", renamed, dropped)]
    return [_change(bench, f"{verb} on {rows} rows", was, now) for verb, was, now in steps]


def _with(columns: TargetSchema, ids: Sequence[int], schema: pa.Schema) -> TargetSchema:
    return replace(columns, ids=tuple(ids), columns=schema)


def _change(bench: Bench, case: str, old: TargetSchema, new: TargetSchema) -> Figure:
    writer, target = bench.sink.task_writer(), bench.sink.open(bench.location)
    none, commit = new.columns.empty_table(), commit_of(bench)
    if writer.evolves(target, old, new, merges=False):
        action = Action("merge", commit, none, none.select(["id"]), ["id"], columns=new)
    else:
        action = Action("overwrite", commit, none, columns=new, remaining=_mapped(target.pieces(), old, new))
    return bench.measured(case, lambda: writer.commit(target, action))


def _mapped(pieces: Iterator[pa.Table], old: TargetSchema, new: TargetSchema) -> Iterator[pa.Table]:
    names = dict(zip(old.ids, old.columns.names, strict=True))
    for piece in pieces:
        arrays = [
            piece.column(names[one]) if one in names else pa.nulls(piece.num_rows, field.type)
            for one, field in zip(new.ids, new.columns, strict=True)
        ]
        yield pa.Table.from_arrays(arrays, schema=new.columns)


def by_spark(session: Any, jvm: int, rows: int, changes: int, chance: np.random.Generator, folder: Path) -> Figure:
    """Measure MERGE INTO by Spark of spread keys, on the table that the task writer made."""
    bench = Bench("delta", rows, max(1, rows // 50_000 if rows <= 1_000_000 else rows // 500_000), folder)
    spread, tenth = chance.choice(rows, changes, replace=False), changes // 10
    changed = content(np.concatenate([spread[tenth:], np.arange(rows, rows + tenth)]), 1)
    gone = content(spread[:tenth], 1)
    source = pa.concat_tables([changed, gone])
    source = source.append_column("gone", pa.array([False] * changed.num_rows + [True] * gone.num_rows))
    staged = folder / "changes.parquet"
    pa.parquet.write_table(source, staged)
    names = changed.column_names
    sets = ", ".join(f"t.{name} = s.{name}" for name in names)
    values = ", ".join(f"s.{name}" for name in names)
    session.read.parquet(str(staged)).createOrReplaceTempView("changes")
    known = bench.files()
    cpu, begun = cpu_of([jvm]), time.monotonic()
    session.sql(
        f"MERGE INTO delta.`{bench.location}` t USING changes s ON t.id = s.id WHEN MATCHED AND s.gone THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED AND NOT s.gone THEN INSERT ({', '.join(names)}) VALUES ({values})"
    )
    seconds = time.monotonic() - begun
    fresh = {path: size for path, size in bench.files().items() if path not in known}
    used = round(cpu_of([jvm]) - cpu, 3)
    return Figure("Spark's MERGE, delta", f"{changes} spread", used, round(seconds, 3), sum(fresh.values()), len(fresh))
