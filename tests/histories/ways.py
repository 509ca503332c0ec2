# SPDX-License-Identifier: Apache-2.0
"""Let every table be resolved in one of the ways that there are."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_cdc.core.apply import ordered_changes
from tests.histories.buckets import split_every_table
from tests.histories.together import resolve_all_together

WAYS = ("alone", "buckets", "pieces", "together")


def resolved(way: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Let tables be resolved in a way; return the policy that it needs.

    :param way: one of :data:`WAYS`.
    """
    if way == "buckets":
        split_every_table(monkeypatch)
        return {"bucket_rows": 2}
    if way == "pieces":
        monkeypatch.setattr(ordered_changes, "PORTION_BYTES", 200)
        return {"apply_bytes": 1}
    if way == "together":
        resolve_all_together(monkeypatch)
    return {}
