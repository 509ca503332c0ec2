# SPDX-License-Identifier: Apache-2.0
"""Name the files of a topic: ``<topic>/partition=<n>/<topic>+<n>+<offset of the first record><suffix>``.

These are the names that the sinks of Kafka Connect give to files and objects by default. Nothing else states which
offsets a file has, so a name that says something else is refused and never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from airflow_provider_cdc.core.errors import SourceError

TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Names that a topic can have."""

PACKED = ("", ".gz", ".xz")
"""Suffixes of files that are plain, and of packed ones."""

_PARTITION = re.compile(r"partition=(0|[1-9]\d{0,9})", re.ASCII)
_START = re.compile(r"(\d{1,20})(\..*)?", re.ASCII | re.DOTALL)
# what the sinks write next to the values with store.kafka.keys and store.kafka.headers
_COMPANION = re.compile(r"\.(?:keys|headers)\.")
_LAYOUT = "<topic>/partition=<n>/<topic>+<n>+<first offset>"
_INT32, _INT64 = 1 << 31, 1 << 63


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a partition.

    :param path: below the root.
    :param start: offset of its first record.
    :param size: bytes, when it was listed.
    """

    path: str
    start: int
    size: int

    @property
    def packing(self) -> str:
        """Return the suffix that says how the file is packed, empty where it is not."""
        return next((suffix for suffix in PACKED if suffix and self.path.endswith(suffix)), "")


def is_hidden(name: str) -> bool:
    """Return whether a name is of no concern: tools and file systems write such ones while they work."""
    return name.startswith((".", "_"))


def folder_of(topic: str, partition: int) -> str:
    """Return the folder of a partition, below the root."""
    return f"{topic}/partition={partition}"


def path_of(topic: str, partition: int, start: int, suffix: str) -> str:
    """Return the path of a partition's file that begins with an offset, below the root."""
    return f"{folder_of(topic, partition)}/{topic}+{partition}+{start:010d}{suffix}"


def partitions_in(topic: str, folders: Iterable[str], files: Iterable[str]) -> list[int]:
    """Return the partitions of a topic.

    :param folders: names of the folders in the topic's own; ``files`` those of the files.
    :raises SourceError: ``files.layout``, something is neither a partition nor hidden.
    """
    partitions = []
    for name in folders:
        if is_hidden(name):
            continue
        match = _PARTITION.fullmatch(name)
        if match is None or int(match[1]) >= _INT32:
            raise _misplaced(f"{topic}/{name}", "the folder is not called partition=<n>")
        partitions.append(int(match[1]))
    for name in files:
        if not is_hidden(name):
            raise _misplaced(f"{topic}/{name}", "the file is in no partition")
    return sorted(partitions)


def files_in(
    topic: str, partition: int, folders: Iterable[str], files: Iterable[tuple[str, int]], suffixes: Collection[str]
) -> list[LogFile]:
    """Return the files of a partition by their first offsets.

    :param folders: names of the folders in the partition's own.
    :param files: names and sizes of its files.
    :param suffixes: that files have, packed or not.
    :raises SourceError: ``files.layout``, a name says nothing, or something else; ``files.offsets``, two files begin
        with one offset.
    """
    home = folder_of(topic, partition)
    for name in folders:
        if not is_hidden(name):
            raise _misplaced(f"{home}/{name}", "a partition has no folders")
    by_start: dict[int, LogFile] = {}
    for name, size in sorted(files):
        mine = name.startswith(f"{topic}+")
        if (is_hidden(name) and not mine) or (mine and _COMPANION.search(name)):
            continue
        start = _start_of(topic, partition, name, suffixes)
        if start in by_start:
            raise SourceError(
                "files.offsets",
                "two files begin with one offset",
                where={"path": f"{home}/{name}", "other": by_start[start].path, "offset": start},
                hint="remove the one that is a copy",
            )
        by_start[start] = LogFile(f"{home}/{name}", start, size)
    return [by_start[start] for start in sorted(by_start)]


def _start_of(topic: str, partition: int, name: str, suffixes: Collection[str]) -> int:
    """Return the first offset that a file's name states."""
    begin = f"{topic}+{partition}+"
    match = _START.fullmatch(name.removeprefix(begin)) if name.startswith(begin) else None
    if match is None or int(match[1]) >= _INT64:
        raise _misplaced(f"{folder_of(topic, partition)}/{name}", f"the file is not called {begin}<first offset>")
    if match[2] not in {f"{suffix}{packed}" for suffix in suffixes for packed in PACKED}:
        known = ", ".join(sorted(suffixes))
        text = f"the file's suffix is none of {known}, maybe with .gz or .xz behind it"
        raise _misplaced(f"{folder_of(topic, partition)}/{name}", text)
    return int(match[1])


def _misplaced(path: str, text: str) -> SourceError:
    where: dict[str, Any] = {"path": path}
    hint = f"files of a topic are called {_LAYOUT}: move what is something else out of the topic's folder, set the "
    hint += "sink's partitioner to the DefaultPartitioner, or correct source.folder and source.lines"
    return SourceError("files.layout", text, where=where, hint=hint)
