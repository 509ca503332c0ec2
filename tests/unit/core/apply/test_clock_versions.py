# SPDX-License-Identifier: Apache-2.0
"""The schema version of rows that were sent again from before a change of columns."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.apply.clock_versions import version_of_repeat
from tests.unit.core.apply.changes import timeline_of

SWAP = "ALTER TABLE t RENAME COLUMN k TO v, RENAME COLUMN v TO k"


@pytest.mark.parametrize(("key", "version"), [(("k",), 0), (("v",), 1), (None, 1), (("k", "v"), 1), ((), 1)], ids=str)
def test_without_types_that_are_certain_the_key_that_rows_state_shows_it(
    key: tuple[str, ...] | None, version: int
) -> None:
    timeline = timeline_of("CREATE TABLE t (k DATE PRIMARY KEY, v BLOB)", SWAP)
    assert version_of_repeat(timeline, [0, 1], None, key) == version
