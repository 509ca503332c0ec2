# SPDX-License-Identifier: Apache-2.0
"""Keep freed memory in the process: fetched again, page by page, it costs up to a fourth of landing."""

from __future__ import annotations

import numpy as np

_LARGEST = 31 << 20  # bytes: pieces of 32 MiB and more glibc always fetches again


def keep_memory() -> None:
    """Let the C library keep pieces as large as a batch of records needs.

    Once a piece was given back, glibc takes as much from its heap and trims that only when twice as much is free
    (mallopt, M_MMAP_THRESHOLD). A piece that nobody writes to costs no memory.
    """
    np.empty(_LARGEST, np.uint8)
