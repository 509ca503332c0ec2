# SPDX-License-Identifier: Apache-2.0
"""Run ``detect``: name the wire format of recorded records."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from airflow_provider_cdc.batch.stated_schemas import stated_schemas
from airflow_provider_cdc.commands.output import (
    CONFIGURATION,
    DATA,
    DONE,
    complain,
    print_json,
    print_table,
)
from airflow_provider_cdc.core.file_log.record_lines import lines, opened, record_of, take

if TYPE_CHECKING:
    from airflow_provider_cdc.core.formats.contract import Records
    from airflow_provider_cdc.core.formats.detection import Candidate, Detection

_LINES = 100_000  # more lines do not change the result
_PER_PARTITION = 200


def detect(args: Namespace) -> int:
    """Print the format of a file's records."""
    from airflow_provider_cdc.core.formats import detection

    schemas = stated_schemas(args.schemas) if args.schemas else None
    try:
        with opened(args.file) as stream:
            partitions, broken = first_records(lines(stream))
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(f"cannot read {args.file}: {error.strerror or error}")
        return CONFIGURATION
    if broken:
        complain(f"{broken} lines of {args.file} are not records")
    detected = detection.detect(partitions, schemas)
    if args.json:
        print_json(_document(detected))
    else:
        _print(detected)
    return DATA if detected.format is None else DONE


def first_records(recorded: Iterable[bytes | None]) -> tuple[list[Records], int]:
    """Return the first records of each partition, and the number of lines that are not records."""
    records: dict[tuple[str, int], Records] = {}
    broken = 0
    for line in islice(recorded, _LINES):
        entry = record_of(line)
        if isinstance(entry, str):
            broken += 1
            continue
        known = records.get((entry["topic"], entry["partition"]))
        if known is None or len(known) < _PER_PARTITION:
            take(records, entry)
    return list(records.values()), broken


def _document(detected: Detection) -> dict[str, object]:
    return {
        "format": detected.format,
        "options": dict(detected.options),
        "candidates": [
            {"format": one.format, "share": one.share, "evidence": one.evidence} for one in detected.candidates
        ],
        "records": detected.records,
        "near_misses": list(detected.near_misses),
    }


def _print(detected: Detection) -> None:
    name = "undecided" if detected.format is None else detected.format
    print(f"{name} ({detected.records} records looked at)")
    for option, value in detected.options:
        print(f"  state source.options.{option}: {value}")
    for sentence in detected.near_misses:
        print(f"  they look like {sentence}")
    if detected.candidates:
        print()
        print_table(("format", "read", "evidence"), [_row(candidate) for candidate in detected.candidates])


def _row(candidate: Candidate) -> tuple[str, str | None, str]:
    return candidate.format, None if candidate.share is None else f"{candidate.share:.0%}", candidate.evidence
