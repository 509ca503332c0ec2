# SPDX-License-Identifier: Apache-2.0
"""Collect cycles seldom: a task makes millions of objects and nearly no cycles."""

from __future__ import annotations

import gc

# new objects before the youngest are looked through (Python: 700), and how often before older ones are
_THRESHOLDS = 50_000, 20, 20


def collect_seldom() -> None:
    """Let the collector of this process start after more new objects.

    Documents of thousands of tables live until a batch ends, and rows that are typed for a moment are tuples; each
    collection walks over them.
    """
    gc.set_threshold(*_THRESHOLDS)
