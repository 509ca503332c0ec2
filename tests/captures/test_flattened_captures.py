# SPDX-License-Identifier: Apache-2.0
"""Recorded rows of MySQL that ExtractNewRecordState flattened give the database's content, but for what it loses.

The transform leaves out each TRUNCATE, and the row before each UPDATE; a NULL arrives as its column's default.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.captures.in_memory import SEEDS, checkpoints, pipeline, rising, wrong_tables
from tests.histories.log import Log
from tests.histories.scripted import Script

FLAT = "public-shop-flat-my8"
OPTIONS = {
    "explicit_defaults_for_timestamp": "true",
    "decimal.handling.mode": "string",
    "delete.tombstone.handling.mode": "rewrite",
    "add.fields": "op,db,table,source.ts_ms,source.file,source.pos,source.row,source.gtid,source.snapshot,ts_ms",
    "add.headers": "op,source.pos",
}


def flattened(log: Log, root: Path) -> Script:
    return pipeline(FLAT, log, root, prefix="shpyf", options=OPTIONS)


def test_each_recorded_point(log: Log, tmp_path: Path) -> None:
    script = flattened(log, tmp_path)
    for truth, ends in checkpoints(FLAT):
        script.sync(ends)
        print(truth.name, wrong_tables(script, truth))
    for s in script.states.values(): print(s.database, s.table, s.state, s.reason)
    assert 0
