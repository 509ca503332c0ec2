# SPDX-License-Identifier: Apache-2.0
"""Received progress and lag against a model of source, tool and batches, over random orders of arrival.

The model knows when each change was committed, sent and applied. An answer may be late, but never early.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass

import pytest

from airflow_provider_cdc.core.plan.lag import Lag, Verdict, lag, unread_windows
from airflow_provider_cdc.core.plan.progress import NEAR_MS, SLACK_MS, Mark, PartitionFacts, received
from tests.sample import amount

TAIL = 20
START = 1_000_000_000
SPAN = 600_000
JITTER = SLACK_MS // 4
"""How far the time that a record states may be from its commit: well within the slack."""


@dataclass
class Change:
    """A change of the source: the time of its commit, the time it states, its partition, and when it was sent."""

    committed: int
    stated: int
    partition: int
    sent: int


class World:
    """One life of a source and its tool.

    :param changes: in the order in which the tool sent them.
    :param beats: times at which the tool sent a heartbeat.
    :param batches: times at which a batch read all that was there.
    """

    def __init__(self, partitions: int, changes: list[Change], beats: list[int], batches: list[int]) -> None:
        self.changes = changes
        self.beats = [Mark(number, beat, beat, heartbeat=True) for number, beat in enumerate(beats)]
        self.batches = batches
        logs = [[c for c in changes if c.partition == partition] for partition in range(partitions)]
        self.marks = [[Mark(n, c.stated, c.sent) for n, c in enumerate(log)] for log in logs]
        self.sent = [[c.sent for c in log] for log in logs]

    def ends(self, at: int) -> list[int]:
        return [bisect_right(sent, at) for sent in self.sent]

    def facts(self, at: int) -> list[PartitionFacts]:
        """Return what a reader sees of the partitions at a time."""
        return [
            PartitionFacts("t", number, 0, end, tuple(self.marks[number][max(0, end - TAIL) : end]))
            for number, end in enumerate(self.ends(at))
        ]

    def heartbeats(self, at: int) -> list[PartitionFacts]:
        """Return what a reader sees of the heartbeat topic at a time."""
        sent = [beat for beat in self.beats if beat.source_time_ms <= at]
        return [PartitionFacts("beats", 0, 0, len(sent), tuple(sent[-TAIL:]))]

    def last_batch(self, at: int) -> int:
        return max((batch for batch in self.batches if batch <= at), default=0)

    def lag(self, at: int, *, heartbeats: bool) -> Lag:
        """Return the lag that a reader sees at a time."""
        last = self.last_batch(at)
        applied = {"t": dict(enumerate(self.ends(last)))} if last else {}
        facts = self.facts(at)
        windows = unread_windows(facts, applied)
        firsts = {tp: self.marks[tp[1]][low:high] for tp, (low, high) in windows.items()}
        return lag(at, facts, self.heartbeats(at) if heartbeats else [], applied, firsts)

    def oldest_unapplied(self, at: int) -> int:
        """Return the commit time of the oldest change that is not applied at a time; the time itself if all are."""
        last = self.last_batch(at)
        return min((c.committed for c in self.changes if c.committed <= at and c.sent > last), default=at)

    def quiet(self, later_than: int) -> int:
        """Let the tool send a heartbeat, and a batch read, after everything; return when."""
        at = max([later_than, START + 2 * SPAN, *(change.sent for change in self.changes)]) + 2 * SLACK_MS
        self.beats.append(Mark(len(self.beats), at, at, heartbeat=True))
        self.batches.append(at)
        return at


def make_world(seed: int) -> World:
    """Return a life in which the tool may stop, fall behind and catch up."""
    dice = random.Random(seed)
    partitions, clock, changes = dice.randint(1, 4), START, []
    for committed in sorted(START + dice.randrange(SPAN) for _ in range(dice.randint(0, 25))):
        stop = dice.randrange(240_000) if dice.random() < 0.15 else dice.randrange(500)
        clock = max(clock, committed) + stop
        stated = committed + dice.randint(-JITTER, JITTER)
        changes.append(Change(committed, stated, dice.randrange(partitions), clock))
    batches = sorted(START + dice.randrange(2 * SPAN) for _ in range(dice.randint(0, 5)))
    return World(partitions, changes, _beats(dice, changes), batches)


def _beats(dice: random.Random, changes: list[Change]) -> list[int]:
    """Return heartbeats as tools send them: when nothing is left to send, or between two changes."""
    beats = []
    for number, sent in enumerate([START, *(change.sent for change in changes)]):
        following = changes[number].committed if number < len(changes) else sent + SPAN
        if following > sent:  # nothing is left to send until the next commit
            beats += [sent + dice.randrange(following - sent) for _ in range(dice.randrange(3))]
        elif number and dice.random() < 0.5:  # behind, just after a change
            beats.append(min(sent + dice.randrange(NEAR_MS), changes[number].sent))
    return sorted(beats)


def looks(world: World, dice: random.Random) -> list[int]:
    """Return times of looks, most of them just after something happened."""
    events = [*(c.sent for c in world.changes), *(beat.source_time_ms for beat in world.beats), *world.batches]
    return [dice.choice([*events, START + dice.randrange(2 * SPAN)]) + dice.randrange(500) for _ in range(3)]


ORDERS = [range(start, start + 1000) for start in range(0, amount(2_000, 5_000), 1000)]


@pytest.mark.parametrize("seeds", ORDERS, ids=lambda seeds: f"{seeds.start}")
def test_received_is_never_early_and_soon_true(seeds: range) -> None:
    reached = 0
    for seed in seeds:
        world, dice = make_world(seed), random.Random(seed)
        commits = [change.committed for change in world.changes]
        until = dice.choice([START + dice.randrange(SPAN), *commits]) + dice.randrange(JITTER)
        for at in looks(world, dice):
            answer = received(until, world.facts(at), world.heartbeats(at))
            missing = any(change.committed < until and change.sent > at for change in world.changes)
            assert not (answer.reached and missing), f"seed {seed}, {at}: early"
            reached += answer.reached
        # Everything is sent and the tool has said so: the next look knows.
        quiet = world.quiet(until)
        assert received(until, world.facts(quiet), world.heartbeats(quiet)).reached, f"seed {seed}: late"
    assert reached > len(seeds) / 2


@pytest.mark.parametrize("seeds", ORDERS, ids=lambda seeds: f"{seeds.start}")
def test_a_lag_is_never_early_below_or_above_and_soon_known(seeds: range) -> None:
    verdicts = dict.fromkeys(Verdict, 0)
    for seed in seeds:
        world, dice = make_world(seed), random.Random(seed)
        heartbeats = dice.random() < 0.7
        bound = dice.choice([SLACK_MS, 60_000, 300_000])
        for at in looks(world, dice):
            verdict = world.lag(at, heartbeats=heartbeats).compare(bound / 1000)
            verdicts[verdict] += 1
            age = at - world.oldest_unapplied(at)
            if verdict == Verdict.BELOW:
                assert age <= bound + SLACK_MS, f"seed {seed}, {at}: below too early"
            if verdict == Verdict.ABOVE:
                assert age > bound - SLACK_MS, f"seed {seed}, {at}: above too early"
        assert world.lag(world.quiet(0), heartbeats=True).compare(0) == Verdict.BELOW, f"seed {seed}: late"
    assert all(count > len(seeds) / 20 for count in verdicts.values()), verdicts
