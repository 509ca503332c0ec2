# SPDX-License-Identifier: Apache-2.0
"""Recorded failovers of Debezium 3.5: a new source log stops the pipeline, and goes on once an operator approves it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import DataError
from spark_jobs.driver.approval import NewGenerationError
from tests.captures.in_memory import SEEDS, Ends, checkpoints, pipeline, records, rising, some_checkpoints, wrong_tables
from tests.histories.log import Log
from tests.histories.scripted import Script

FAILOVER, RESET = "public-failover-my8", "public-reset-my8"
# the captures' own accounts: up to here the first server's log is read
OLD_FILES = {FAILOVER: "mysql-bin.000007", RESET: "mysql-bin.000008"}


def sources(name: str) -> dict[tuple[str, int], list[tuple[int, str]]]:
    """Return per partition the offset and binlog file of each record that has one."""
    result: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for record in records(name):
        message = None if record.value is None else json.loads(record.value)["payload"]
        if message and message.get("source"):
            result.setdefault((record.topic, record.partition), []).append((record.offset, message["source"]["file"]))
    return result


def new_log_below(name: str, ends: Ends) -> set[tuple[str, int]]:
    """Return the partitions that have records of the new log below these ends."""
    return {
        where
        for where, begins in sources(name).items()
        for offset, file in begins
        if offset < ends.get(where, 0) and file != OLD_FILES[name]
    }


@pytest.mark.parametrize("name", [FAILOVER, RESET])
def test_the_batch_with_the_new_log_is_refused_and_nothing_of_it_is_applied(
    name: str, log: Log, tmp_path: Path
) -> None:
    script = pipeline(name, log, tmp_path)
    (first, first_ends), (second, second_ends), (_, third_ends), *_ = checkpoints(name)
    for truth, ends in ((first, first_ends), (second, second_ends)):
        script.sync(ends)
        assert wrong_tables(script, truth) == []
    for _ in range(2):
        with pytest.raises(DataError) as caught:
            script.sync(third_ends)
        assert caught.value.code == "source.new_generation"
        assert wrong_tables(script, second) == []
    where = caught.value.where
    files = dict(sources(name)[where["topic"], where["partition"]])
    assert files[where["offset"]] == "mysql-bin.000001"


@pytest.mark.sampled
@pytest.mark.parametrize("cuts", [1, 3, 12])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [FAILOVER, RESET])
def test_the_new_log_is_recognised_in_any_cut(name: str, seed: int, cuts: int, log: Log, tmp_path: Path) -> None:
    script = pipeline(name, log, tmp_path)
    chance = random.Random(f"{seed} {cuts}")
    whole = {where: len(partition) for where, partition in log.partitions.items()}
    for number in range(1, cuts + 1):
        ends = {where: chance.randint(0, min(end, end * number // cuts + 3)) for where, end in whole.items()}
        ends = whole if number == cuts else rising(ends, script.ends)
        try:
            script.sync(ends)
        except DataError as error:
            assert error.code == "source.new_generation"
            assert new_log_below(name, ends)
            return
    pytest.fail("nothing was recognised")


def sync_approving(script: Script, ends: Ends) -> list[str]:
    """Carry out a batch; approve each generation that it asks for. Return the first records of those."""
    approved: list[str] = []
    while True:
        try:
            result = script.sync(ends, new_generation=approved[-1] if approved else "")
        except NewGenerationError as error:
            assert error.begins[0].name not in approved, "asks for what was approved"
            approved.append(error.begins[0].name)
            continue
        assert result.new_generations == approved
        return approved


@pytest.mark.parametrize("name", [FAILOVER, RESET])
def test_after_the_approval_each_recorded_point_is_equal(name: str, log: Log, tmp_path: Path) -> None:
    script = pipeline(name, log, tmp_path)
    approved = []
    for truth, ends in some_checkpoints(name):
        approved += sync_approving(script, ends)
        assert wrong_tables(script, truth) == []
    assert len(approved) == 1


@pytest.mark.sampled
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("cuts", [1, 3, 12])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [FAILOVER, RESET])
def test_after_the_approval_any_cut_ends_equal(
    name: str, seed: int, cuts: int, ragged: bool, log: Log, tmp_path: Path
) -> None:
    """Or it is refused: a batch read partitions of the new log only, while others were still in the old one."""
    script = pipeline(name, log, tmp_path)
    chance = random.Random(f"{seed} {cuts}")
    whole = {where: len(partition) for where, partition in log.partitions.items()}
    approved = []
    for number in range(1, cuts + 1):
        ends = {where: end * number // cuts for where, end in whole.items()}
        if ragged and number < cuts:
            ends = rising({where: chance.randint(0, end) for where, end in whole.items()}, script.ends)
        try:
            approved += sync_approving(script, ends)
        except DataError as error:
            assert error.code == "source.generation_unclear"
            assert ragged
            read_before = set(error.where["read_before"].split())
            assert read_before <= {f"{topic}/{partition}" for topic, partition in new_log_below(name, script.ends)}
            return
    *_, (final, _) = checkpoints(name)
    assert wrong_tables(script, final) == []
    assert len(approved) == 1
