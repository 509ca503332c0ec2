# SPDX-License-Identifier: Apache-2.0
"""Run a single stage of a batch in one process, for the bench.

`python -m tests.bench.parts land JOB ROOT`, `... decode JOB COUNT` and `... plain JOB COUNT`, the last with a plain
decoder that makes a dict of every row.

Both take the job document of a batch that ran, so that they do exactly what its tasks did.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from spark_jobs.workers.task_transport import shut_out_pandas


def main() -> None:
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    land = verbs.add_parser("land")
    land.add_argument("job", type=Path)
    land.add_argument("root")
    for verb in ("decode", "plain"):
        decode = verbs.add_parser(verb)
        decode.add_argument("job", type=Path)
        decode.add_argument("records", type=int)
    options = parser.parse_args()
    shut_out_pandas()  # as the engines do
    document = json.loads(options.job.read_text(encoding="utf-8"))
    if options.verb == "land":
        print(json.dumps(_land(document, options.root)))
    else:
        print(json.dumps(_decode(document, options.records, plain=options.verb == "plain")))


def _land(document: dict, root: str) -> dict:
    from airflow_provider_cdc.core.documents import JobDocument
    from airflow_provider_cdc.core.plan.chunks import group_chunks
    from spark_jobs.tasks.land import land_chunks

    job = JobDocument.from_document({**document, "sink_root": root})
    begin = time.process_time()
    groups = group_chunks(job.chunks, job.parallelism, job.policy.chunk_records)
    rows = sum(land_chunks(job, group, {}).records for group in groups)
    return {"records": rows, "cpu": time.process_time() - begin}


def _decode(document: dict, records: int, plain: bool) -> dict:
    """Decode records that were read before, three times; returns the least CPU time for one."""
    import gc

    from airflow_provider_cdc.core.documents import JobDocument
    from airflow_provider_cdc.core.formats.common.record_groups import whole_groups
    from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply
    from airflow_provider_cdc.core.formats.contract import Grouped, Records, needs_headers
    from airflow_provider_cdc.core.formats.registry import open_format
    from airflow_provider_cdc.core.schema_registry.client import ask
    from spark_jobs.readers.task_reader import read_chunks
    from spark_jobs.workers.malloc import keep_memory
    from tests.bench.envelopes import plain_decoder

    job = JobDocument.from_document(document)
    wire = open_format(job.format, job.format_options)
    answers: dict[int, Any] = {}  # of the schema registry
    schemas = SchemaSupply(lambda ids: answers.update(ask(job.registry, ids)) or answers)
    batches: list[Records] = []
    left = records
    for chunk in sorted(job.chunks, key=lambda chunk: chunk.start - chunk.end):
        source = (
            read_chunks([chunk], job.kafka, grouped=isinstance(wire, Grouped), headers=needs_headers(wire))
            if left > 0
            else iter(())
        )
        for batch in whole_groups(source, wire) if isinstance(wire, Grouped) else schemas.ahead_of(source, wire):
            batches.append(batch)
            left -= len(batch)
            if left <= 0:
                break
    gc.disable()
    keep_memory()  # as the land task does
    times, rows = [], sum(map(len, batches))
    for _ in range(3):
        wires = {batch.topic: schemas.taught(open_format(job.format, job.format_options)) for batch in batches}
        each = plain_decoder(job.format, job.format_options, answers)
        begin = time.process_time()
        if plain:
            sum(len(each(value)) for batch in batches for value in batch.values if value)
        else:
            sum(wires[batch.topic].decode(batch).num_rows for batch in batches)
        times.append(time.process_time() - begin)
    return {"records": rows, "cpu": min(times), "microseconds": round(min(times) / rows * 1e6, 2)}


if __name__ == "__main__":
    main()
