# SPDX-License-Identifier: Apache-2.0
"""Put small files of a table together, those of neighbouring keys into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deltalake.transaction import AddAction

from spark_jobs.sinks.delta.stored_files import StoredFile
from spark_jobs.sinks.delta.table import DeltaLocation

_SMALL = 0.75  # of the target size: a file that is nearly as large as it should be is left as it is


def compact(target: DeltaLocation, file_bytes: int, first: str | None) -> tuple[int, int]:
    """Write small files again as fewer ones, in one commit; return how many went, and how many came.

    A row group is in memory at a time, however many files there are.

    :param file_bytes: size that a file should have.
    :param first: column in whose order neighbours are found.
    :raises UnavailableError: ``sink.commit_conflict``, one of the files went meanwhile.
    """
    if not target.takes_files:
        return target.compact_by_delta_rs(file_bytes, small=_SMALL)
    added: list[AddAction] = []
    gone: list[StoredFile] = []
    for group in _groups(target.files(first), file_bytes):
        added += target.written_as_one(group, file_bytes)
        gone += group
    if gone:
        target.replace_files(added, [file.removal(changes_rows=False) for file in gone])
    return len(gone), len(added)


def _groups(files: Sequence[StoredFile], file_bytes: int) -> Iterator[list[StoredFile]]:
    """Yield files that become one: neighbours of which each is small, as many as the size has room for."""
    group: list[StoredFile] = []
    for file in files:
        if file.size >= _SMALL * file_bytes:
            continue
        if group and sum(member.size for member in group) + file.size > file_bytes:
            if len(group) > 1:
                yield group
            group = []
        group.append(file)
    if len(group) > 1:
        yield group
