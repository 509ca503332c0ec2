# SPDX-License-Identifier: Apache-2.0
"""Recorded rows of MySQL that ExtractNewRecordState flattened give the database's content, but for what it loses.

The transform leaves out each TRUNCATE, and the row before each UPDATE; a NULL arrives as its column's default.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.captures.flattened_shop import FLAT, LOST, OPTIONS, reasons
from tests.captures.in_memory import CUTS, SEEDS, checkpoints, pipeline, rising, wrong_tables
from tests.histories.log import Log
from tests.histories.scripted import Script


def flattened(log: Log, root: Path) -> Script:
    return pipeline(FLAT, log, root, prefix="shpyf", options=OPTIONS)


def test_each_recorded_point(log: Log, tmp_path: Path) -> None:
    script, parked = flattened(log, tmp_path), []
    for truth, ends in checkpoints(FLAT):
        script.sync(ends)
        parked.append(set(reasons(script)))
        excused = frozenset(f"shop.{table}" for table in parked[-1])
        assert wrong_tables(script, truth, excused, null_as_default=True) == []
    keyless, both = [{"page_views"}] * 3, [{"web_views", "returns_uk"}] * 2
    assert parked == [set(), *keyless, {"page_views", "returns_uk"}, *both]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_any_cut_ends_alike(seed: int, cuts: int, log: Log, tmp_path: Path) -> None:
    script = flattened(log, tmp_path)
    chance = random.Random(f"{seed} {cuts}")
    whole = {where: len(partition) for where, partition in log.partitions.items()}
    for number in range(1, cuts + 1):
        ends = {where: chance.randint(0, end) for where, end in whole.items()}
        script.sync(whole if number == cuts else rising(ends, script.ends))
    *_, (final, _) = checkpoints(FLAT)
    assert wrong_tables(script, final, LOST, null_as_default=True) == []
    assert reasons(script) == {"web_views": "image_missing", "returns_uk": "apply.key_unproven"}


def test_what_stands_in_headers_counts_alike(log: Log, tmp_path: Path) -> None:
    """The capture's own headers are taken as they are, with the same values of members that its settings name there."""
    options = {**OPTIONS, "add.fields": OPTIONS["add.fields"].replace("op,", "op:kind,").replace("pos,", "pos:at,")}
    for partition in (pipeline(FLAT, log, tmp_path, prefix="shpyf", options=options), log)[1].partitions.values():
        for number, record in enumerate(partition):
            value = record.value.replace(b'"__op":', b'"__kind":').replace(b'"__source_pos":', b'"__at":')
            value = re.sub(rb'"__kind":"."', b'"__kind":null', value)
            partition[number] = replace(record, value=re.sub(rb'"__at":[0-9]+', b'"__at":null', value))
    script = Script(log, tmp_path, schema_topic="shpyf", options=options)
    script.sync()
    *_, (final, _) = checkpoints(FLAT)
    assert wrong_tables(script, final, LOST, null_as_default=True) == []
