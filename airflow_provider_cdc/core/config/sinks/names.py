# SPDX-License-Identifier: Apache-2.0
"""Name the choices that the sections of all sinks have."""

from __future__ import annotations

from airflow_provider_cdc.core.config.checks import Checks

WRITES = ("merge-on-read", "copy-on-write")
"""Whether a merge deletes rows by their positions, or writes their files again."""

NAMES = ("exact", "safe")
"""Whether tables are named as the source spells them, or as every catalog takes it."""


def check_names(checks: Checks, names: object) -> None:
    """Check ``sink.names``, which may be left out."""
    if names is not None:
        checks.choice("names", names, NAMES)
