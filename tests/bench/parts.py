"""Single stages in one process, for the bench: `python -m tests.bench.parts land JOB ROOT` and `... decode JOB COUNT`.

Both take the job document of a batch that ran, so that they do exactly what its tasks did.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    verbs = parser.add_subparsers(dest="verb", required=True)
    land = verbs.add_parser("land")
    land.add_argument("job", type=Path)
    land.add_argument("root")
    decode = verbs.add_parser("decode")
    decode.add_argument("job", type=Path)
    decode.add_argument("records", type=int)
    given = parser.parse_args()
    document = json.loads(given.job.read_text(encoding="utf-8"))
    print(json.dumps(_land(document, given.root) if given.verb == "land" else _decode(document, given.records)))


def _land(document: dict, root: str) -> dict:
    from airflow_provider_cdc.core.documents import JobDocument
    from spark_jobs.sync import _reading_groups
    from spark_jobs.tasks.land import land_chunks

    job = JobDocument.from_document({**document, "sink_root": root})
    begin = time.process_time()
    rows = sum(land_chunks(job, group, {})["records"] for group in _reading_groups(job.chunks, job.parallelism))
    return {"records": rows, "cpu": time.process_time() - begin}


def _decode(document: dict, records: int) -> dict:
    """Decode records that were read before, three times; returns the least CPU time for one."""
    import gc

    from airflow_provider_cdc.core.documents import JobDocument
    from airflow_provider_cdc.core.formats.registry import open_format
    from spark_jobs.readers.task_reader import read_chunks

    job = JobDocument.from_document(document)
    batches, left = [], records
    for chunk in sorted(job.chunks, key=lambda chunk: chunk.start - chunk.end):
        for batch in read_chunks([chunk], job.kafka) if left > 0 else ():
            batches.append(batch)
            left -= len(batch)
            if left <= 0:
                break
    gc.disable()
    times, rows = [], 0
    for _ in range(3):
        wires = {batch.topic: open_format(job.format, job.format_options) for batch in batches}
        begin = time.process_time()
        rows = sum(wires[batch.topic].decode(batch).num_rows for batch in batches)
        times.append(time.process_time() - begin)
    return {"records": rows, "cpu": min(times), "microseconds": round(min(times) / rows * 1e6, 2)}


if __name__ == "__main__":
    main()
