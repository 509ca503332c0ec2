# SPDX-License-Identifier: Apache-2.0
"""Say how much memory a task has."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

# where Linux states the limit of the container, of both versions of cgroups
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@cache
def task_memory() -> int:
    """Return the bytes of memory of a task: the container's or the machine's, shared by a task on each core."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in _LIMITS:
        with suppress(OSError, ValueError):  # no limit is a word
            limits.append(int(file.read_text(encoding="ascii")))
    return min(limits) // len(os.sched_getaffinity(0))
