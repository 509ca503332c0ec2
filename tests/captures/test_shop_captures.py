# SPDX-License-Identifier: Apache-2.0
"""The recorded web shop on servers whose connectors are Debezium's own for them gives the database's content."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.captures.in_memory import CUTS, SEEDS, checkpoints, pipeline, rising, some_checkpoints, wrong_tables
from tests.histories.log import Log

PREFIXES = {"public-shop-mdb11": "shpda"}  # MariaDB 11.4 with the MariaDB connector
OPTIONS = {"explicit_defaults_for_timestamp": "true"}


@pytest.mark.parametrize("name", PREFIXES)
def test_each_recorded_point(name: str, log: Log, tmp_path: Path) -> None:
    script = pipeline(name, log, tmp_path, prefix=PREFIXES[name], options=OPTIONS)
    for truth, ends in some_checkpoints(name):
        script.sync(ends)
        assert wrong_tables(script, truth) == []


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PREFIXES)
def test_any_cut_ends_equal(name: str, seed: int, cuts: int, log: Log, tmp_path: Path) -> None:
    script = pipeline(name, log, tmp_path, prefix=PREFIXES[name], options=OPTIONS)
    chance = random.Random(f"{seed} {cuts}")
    whole = {where: len(partition) for where, partition in log.partitions.items()}
    for number in range(1, cuts + 1):
        ends = {where: chance.randint(0, end) for where, end in whole.items()}
        script.sync(whole if number == cuts else rising(ends, script.ends))
    *_, (final, _) = checkpoints(name)
    assert wrong_tables(script, final) == []
