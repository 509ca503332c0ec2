# SPDX-License-Identifier: Apache-2.0
"""Choose small files of a table that maintenance puts together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

SMALL = 0.75  # of the size that a file should have: below it is put together with others
File = TypeVar("File")


def small_groups(
    files: Iterable[File], file_bytes: int, size: Callable[[File], int], folds: Callable[[File], bool]
) -> Iterator[list[File]]:
    """Yield files that become one: neighbours of which each is small, as many as a size has room for.

    :param size: returns the bytes of a file.
    :param folds: returns whether a file is to be written again whatever its size.
    """
    group: list[File] = []
    for file in files:
        if size(file) >= SMALL * file_bytes and not folds(file):
            continue
        if group and sum(map(size, group)) + size(file) > file_bytes:
            if len(group) > 1 or any(map(folds, group)):
                yield group
            group = []
        group.append(file)
    if len(group) > 1 or any(map(folds, group)):
        yield group
