"""``detect``: which wire format recorded records are in."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from airflow_provider_cdc.commands.printing import (
    CONFIGURATION,
    DATA,
    DONE,
    complain,
    guarded,
    print_json,
    print_table,
)
from airflow_provider_cdc.commands.record_files import lines, opened, record_of, take

if TYPE_CHECKING:
    from airflow_provider_cdc.core.formats.contract import Records
    from airflow_provider_cdc.core.formats.detection import Candidate, Detection

_LINES = 100_000  # a longer file tells no more
_PER_PARTITION = 200


def detect(given: Namespace) -> int:
    """Tell the format of a file's records."""

    def work() -> int:
        from airflow_provider_cdc.core.formats import detection

        try:
            with opened(given.file) as stream:
                partitions, broken = first_records(lines(stream))
        except BrokenPipeError:
            raise
        except OSError as error:
            complain(f"cannot read {given.file}: {error.strerror or error}")
            return CONFIGURATION
        if broken:
            complain(f"{broken} lines of {given.file} are no records")
        found = detection.detect(partitions)
        if given.json:
            print_json(_document(found))
        else:
            _print(found)
        return DATA if found.format is None else DONE

    return guarded(work, as_json=given.json)


def first_records(given: Iterable[bytes | None]) -> tuple[list[Records], int]:
    """Return the first records of each partition, and how many lines are none."""
    records: dict[tuple[str, int], Records] = {}
    broken = 0
    for line in islice(given, _LINES):
        entry = record_of(line)
        if isinstance(entry, str):
            broken += 1
            continue
        known = records.get((entry["topic"], entry["partition"]))
        if known is None or len(known) < _PER_PARTITION:
            take(records, entry)
    return list(records.values()), broken


def _document(found: Detection) -> dict[str, object]:
    return {
        "format": found.format,
        "candidates": [
            {"format": one.format, "share": one.share, "evidence": one.evidence} for one in found.candidates
        ],
        "records": found.records,
    }


def _print(found: Detection) -> None:
    said = "undecided" if found.format is None else found.format
    print(f"{said} ({found.records} records looked at)")
    if found.candidates:
        print()
        print_table(("format", "read", "evidence"), [_row(one) for one in found.candidates])


def _row(one: Candidate) -> tuple[str, str | None, str]:
    return one.format, None if one.share is None else f"{one.share:.0%}", one.evidence
