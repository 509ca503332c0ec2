# SPDX-License-Identifier: Apache-2.0
"""Let every table be split by key that can be, as only tables with millions of changes are otherwise."""

from __future__ import annotations

from functools import partial

import pytest

from airflow_provider_cdc.core.config import RunPolicy
from spark_jobs.driver import key_buckets
from spark_jobs.tasks import apply


def split_every_table(patch: pytest.MonkeyPatch) -> None:
    """Let a task split three changes and resolve two."""
    patch.setattr("tests.histories.run.RunPolicy", partial(RunPolicy, bucket_rows=2))
    patch.setattr(key_buckets, "_PART_ROWS", 3)
    patch.setattr(apply, "_SPLIT_GROUPS", 1)
