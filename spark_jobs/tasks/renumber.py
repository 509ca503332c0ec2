# SPDX-License-Identifier: Apache-2.0
"""Give the changes of a landed batch the generations that its own records showed to have begun."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA
from airflow_provider_cdc.core.model.position import in_generation
from spark_jobs.lake.begins import Begin, Begins
from spark_jobs.lake.change_log import LogWriter
from spark_jobs.lake.layout import log_folder
from spark_jobs.lake.manifest import LandReport, Manifest, RowGroup
from spark_jobs.lake.row_groups import read_groups, with_columns
from spark_jobs.lake.scratch import lake_of
from spark_jobs.lake.storage import Storage
from spark_jobs.lake.stretches import Stretches

_MARKS = ("topic", "partition", "offset", "index", "kind", "op", "position", "source_time", "transaction_id")
Run = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def renumbered(
    landed: Manifest,
    begins: Sequence[Begin],
    new: Sequence[Begin],
    storage: Storage,
    run: Run,
    task: Callable[[list[RowGroup]], LandReport],
) -> Manifest:
    """Return what a batch landed, with the positions that its changes have once generations begin.

    Writes the files of the change log again, next to the existing ones: until a manifest names them they do not count.

    :param begins: of all generations, those found in this batch too.
    :param new: those found in this batch just now.
    :param run: how tasks are handed out; ``task`` writes the row groups of one file again.
    """
    files: dict[str, list[RowGroup]] = {}
    for group in landed.groups:
        files.setdefault(group.file, []).append(group)
    reports: list[LandReport] = run(task, list(files.values()))
    # a task reports the position of a statement and its content side by side
    positions = [{"position": Begins(begins).position_of(statement)} for statement in landed.statements]
    result = replace(
        landed,
        groups=[group for report in reports for group in report.groups],
        descriptions=[one for report in reports for one in report.descriptions],
        begins=[*landed.begins, *map(list, new)],
        statements=[{**one, **position} for one, position in zip(landed.statements, positions, strict=True)],
        schema_changes=[{**one, **position} for one, position in zip(landed.schema_changes, positions, strict=True)],
    )
    moved = {begin.partition_key for begin in new}
    unmoved = [one for one in landed.stretches if f"{one['topic']}/{one['partition']}" not in moved]
    result.stretches = [*unmoved, *_stretches(result, moved, storage)]
    return result


def write_again(
    job: JobDocument, secrets: dict[str, dict[str, str]], begins: Sequence[Begin], groups: Sequence[RowGroup]
) -> LandReport:
    """Write the row groups of one file of the change log again, with their generations."""
    from airflow_provider_cdc.core.formats.registry import open_format

    storage = lake_of(job, secrets)
    wire = open_format(job.format, job.format_options)
    writer = LogWriter(
        storage,
        log_folder(job.pipeline, job.seq),
        describe=job.schema_topic is None,
        snapshots=wire.snapshot_rows == "shared",
    )
    numbers = Begins(begins)
    name = groups[0].file
    with storage.open_file(name) as stream, pq.ParquetFile(stream) as file:
        number, every = -1, CHANGE_SCHEMA.empty_table()
        for group in groups:
            if group.row_group != number:  # small tables share one
                number, every = group.row_group, file.read_row_group(group.row_group, use_threads=False)
                every = with_columns(every, CHANGE_SCHEMA.names).select(CHANGE_SCHEMA.names)
            rows = every.slice(group.start, group.rows).cast(CHANGE_SCHEMA)
            for batch in rows.combine_chunks().to_batches():
                if group.database:
                    writer.add(numbers.fill(batch))
                else:
                    writer.add_errors(batch)
    return LandReport(writer.close(), descriptions=writer.descriptions)


def restated(changes: Iterable[Mapping[str, Any]], new: Sequence[Begin]) -> list[dict[str, Any]]:
    """Return statements of snapshots that earlier batches read, as of the generation that the snapshots' rows are of.

    Statements come before the rows and on another topic, so an earlier batch may hold them, where nothing showed yet
    that the log had begun again.
    """
    result = []
    for change in changes:
        if change.get("snapshot") is not None and change["position"]:
            begin = next((one for one in new if one.follows(change["position"], change["time"])), None)
            if begin is not None:
                result.append({**change, "position": in_generation(change["position"], begin.generation)})
    return result


def _stretches(landed: Manifest, partition_keys: set[str], storage: Storage) -> list[dict[str, Any]]:
    """Return the stretches of some partitions again."""
    schema = pa.schema([CHANGE_SCHEMA.field(name) for name in _MARKS])
    groups = [group for group in landed.groups if group.database]
    rows = read_groups(storage, groups, _MARKS).cast(schema) if groups else schema.empty_table()
    streamed = [{**one, "kind": "row"} for one in landed.statements if not one["describes"]]
    rows = pa.concat_tables([rows, pa.Table.from_pylist(streamed, schema)])
    stretches = Stretches()
    for partition_key in sorted(partition_keys):
        topic, _, partition = partition_key.rpartition("/")
        mine = rows.filter((pc.field("topic") == topic) & (pc.field("partition") == int(partition)))
        mine = mine.sort_by([("offset", "ascending"), ("index", "ascending")]).unify_dictionaries().combine_chunks()
        for batch in mine.to_batches():
            stretches.add(batch)
    return stretches.documents()
