# SPDX-License-Identifier: Apache-2.0
"""Let every table be split by key that can be, as only tables with millions of changes are otherwise."""

from __future__ import annotations

from functools import partial

import pytest

from airflow_provider_cdc.core.config import RunPolicy
from spark_jobs.driver import key_buckets
from spark_jobs.tasks import table_changes


def split_every_table(patch: pytest.MonkeyPatch) -> None:
    """Let a part have three changes, a bucket two, and a task settle four."""
    patch.setattr("tests.histories.run.RunPolicy", partial(RunPolicy, bucket_rows=2))
    patch.setattr(key_buckets, "_PART_ROWS", 3)
    patch.setattr(key_buckets, "_SETTLED_ROWS", 4)
    patch.setattr(table_changes, "_PIECE_BYTES", 1)
