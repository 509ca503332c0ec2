# SPDX-License-Identifier: Apache-2.0
"""Keep freed memory in the process: fetched again, page by page, it costs up to a fourth of a batch."""

from __future__ import annotations

import ctypes
import gc
from functools import cache

import pyarrow as pa

# parameters of glibc's mallopt, and bytes
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_SETTINGS = {_MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 512 << 20, _TOP_PAD: 64 << 20}


@cache
def keep_memory() -> None:
    """Let the C library take pieces of up to 32 MiB from its heap, grow that in large steps, and seldom trim it.

    Larger pieces are fetched and given back one by one: records of megabytes would leave holes in the heap. Without
    glibc nothing changes. A task's end gives memory back (:func:`release_memory`).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for parameter, size in _SETTINGS.items():
        mallopt(parameter, size)


def release_memory(*, large: bool) -> None:
    """Give back what a task held: the worker lives on next to others that need it now.

    :param large: whether the task held much: then also what objects in cycles hold, and the heap's free pages.
    """
    if large:
        gc.collect()
    pa.default_memory_pool().release_unused()
    if large:
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except (OSError, AttributeError):
            return
