# SPDX-License-Identifier: Apache-2.0
"""Groups of records: whole, torn, repeated or older than the log, and stretches that cut none of them."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from airflow_provider_cdc.core.formats.common.record_groups import SliceGroups, last_cut, whole_groups
from airflow_provider_cdc.core.formats.contract import Headers, Records, SliceInfo


class Wire:
    """Records such as ``a 7 0/2``: sender, running number or ``-``, index and total; ``?`` is not a part of a group."""

    def part_of(self, value: bytes | None, headers: Headers) -> SliceInfo | None:
        return part((value or b"?").decode())


def part(text: str) -> SliceInfo | None:
    if text == "?":
        return None
    sender, number, where = text.split()
    index, total = where.split("/")
    return SliceInfo(sender, None if number == "-" else int(number), int(index), int(total))


def records(*texts: str, first: int = 0, partition: int = 0) -> Records:
    count = len(texts)
    offsets = list(range(first, first + count))
    return Records("t", partition, offsets, [0] * count, [None] * count, [text.encode() for text in texts])


def reported(stretches: list[Records]) -> list[tuple[int, str]]:
    """Return the groups of stretches: offset of a group's last record, and what it is or which records it has."""
    result = []
    for stretch in stretches:
        groups = SliceGroups(stretch.heard)
        ended = []
        for record, value in enumerate(stretch.values):
            this = part((value or b"").decode())
            if this is None:
                result.append((stretch.offsets[record], "alone"))
                continue
            arrival = groups.add(record, this)
            if arrival.repeated:
                result.append((stretch.offsets[record], "repeated"))
            if arrival.missing:
                result.append((stretch.offsets[record], f"{arrival.missing} missing"))
            ended += arrival.ended
        for group in [*ended, *groups.rest()]:
            offsets = [stretch.offsets[record] for record in group.records]
            result.append((offsets[-1], f"{group.state} {offsets}"))
    return sorted(result)


def decoded(*texts: str) -> list[tuple[int, str]]:
    return reported([records(*texts)])


def test_a_group_is_whole_with_its_last_record() -> None:
    assert decoded("a - 0/1", "a - 0/3", "a - 1/3", "a - 2/3") == [(0, "whole [0]"), (3, "whole [1, 2, 3]")]


def test_groups_of_several_senders_may_interleave() -> None:
    actual = decoded("a - 0/2", "b - 0/2", "?", "b - 1/2", "a - 1/2")
    assert actual == [(2, "alone"), (3, "whole [1, 3]"), (4, "whole [0, 4]")]


def test_the_rest_of_a_group_that_began_before_the_log_is_early() -> None:
    assert decoded("a - 1/3", "a - 2/3", "a - 0/1") == [(1, "early [0, 1]"), (2, "whole [2]")]


@pytest.mark.parametrize(
    ("texts", "torn"),
    [
        (("a - 0/3", "a - 2/3"), [(1, "torn [0, 1]")]),
        (("a - 0/3", "a - 2/4", "a - 3/4"), [(0, "torn [0]"), (2, "torn [1, 2]")]),
        (("a - 0/2", "a - 0/1"), [(0, "torn [0]"), (1, "whole [1]")]),
        (("a - 0/1", "a - 1/2"), [(0, "whole [0]"), (1, "torn [1]")]),
        (("a - 0/2",), [(0, "torn [0]")]),
        (("a - 0/4", "a - 2/4", "a - 3/4", "a - 0/1"), [(2, "torn [0, 1, 2]"), (3, "whole [3]")]),
    ],
)
def test_a_group_that_lacks_a_record_is_torn_once(texts: tuple[str, ...], torn: list[tuple[int, str]]) -> None:
    assert decoded(*texts) == torn


def test_a_number_that_is_not_above_the_last_is_a_repeat_and_disturbs_nothing() -> None:
    actual = decoded("a 5 0/2", "a 6 1/2", "a 5 0/2", "a 6 1/2", "a 7 0/1")
    assert actual == [(1, "whole [0, 1]"), (2, "repeated"), (3, "repeated"), (4, "whole [4]")]


def test_a_slice_sent_again_in_its_group_is_dropped() -> None:
    assert decoded("a 5 0/2", "a 5 0/2", "a 6 1/2") == [(1, "repeated"), (2, "whole [0, 2]")]


def test_numbers_left_out_are_reported_with_the_record_after_them() -> None:
    assert decoded("a 5 0/1", "a 9 0/1") == [(0, "whole [0]"), (1, "3 missing"), (1, "whole [1]")]


def test_numbers_count_for_each_sender_on_their_own() -> None:
    assert decoded("a 5 0/1", "b 90 0/1", "a 6 0/1", "b 91 0/1") == [(i, f"whole [{i}]") for i in range(4)]


def test_the_number_one_begins_a_new_sequence() -> None:
    assert decoded("a 5 0/1", "a 1 0/1", "a 2 0/1") == [(i, f"whole [{i}]") for i in range(3)]


def test_records_without_a_number_do_not_count() -> None:
    assert decoded("a 5 0/1", "a - 0/1", "a 6 0/1") == [(i, f"whole [{i}]") for i in range(3)]


# ---- stretches


def stretched(texts: list[str], cuts: list[int], start: int = 0) -> list[Records]:
    blocks = [records(*texts[low:high], first=low) for low, high in pairwise([0, *cuts, len(texts)])]
    return list(whole_groups(blocks, Wire(), {("t", 0): start}))


def test_a_block_is_cut_before_the_group_that_it_does_not_hold() -> None:
    texts = ["a - 0/1", "a - 0/3", "a - 1/3", "a - 2/3", "a - 0/1"]
    assert [stretch.offsets for stretch in stretched(texts, [2, 3])] == [[0], [1, 2, 3, 4]]


def test_whole_blocks_are_passed_on_as_they_are() -> None:
    block = records("a - 0/2", "a - 1/2")
    (passed,) = whole_groups([block], Wire())
    assert passed.offsets is block.offsets and passed.values is block.values


def test_partitions_are_held_back_apart() -> None:
    blocks = [
        records("a - 0/2"),
        records("a - 0/2", partition=1),
        records("a - 1/2", first=1),
        records("a - 1/2", partition=1, first=1),
    ]
    assert [(s.partition, s.offsets) for s in whole_groups(blocks, Wire())] == [(0, [0, 1]), (1, [0, 1])]


def test_a_group_left_open_at_the_end_is_handed_out_all_the_same() -> None:
    stretches = stretched(["a - 0/1", "a - 0/2"], [])
    assert [stretch.offsets for stretch in stretches] == [[0], [1]]
    assert reported(stretches) == [(0, "whole [0]"), (1, "torn [1]")]


def test_records_before_the_start_only_show_the_numbers() -> None:
    stretches = stretched(["a 4 0/1", "a 5 0/1", "a 5 0/1", "a 8 0/1"], [1, 3], start=2)
    assert reported(stretches) == [(2, "repeated"), (3, "2 missing"), (3, "whole [3]")]


def test_the_rest_of_a_group_whose_beginning_is_lost_is_torn_if_something_came_before() -> None:
    assert reported(stretched(["a 4 0/1", "a 6 1/2"], [], start=1)) == [(1, "1 missing"), (1, "torn [1]")]
    assert reported(stretched(["a 6 1/2"], [])) == [(0, "early [0]")]


def log(chance: random.Random) -> list[str]:
    """Return a partition of three senders with repeats, losses and torn groups."""
    texts: list[str] = []
    waiting: dict[str, list[str]] = {"a": [], "b": [], "c": []}
    number = dict.fromkeys(waiting, chance.randrange(1, 5))
    sent: list[str] = []
    while len(texts) < 60:
        sender = chance.choice("aaabc")
        if not waiting[sender]:
            total = chance.choice([1, 1, 1, 2, 3, 5])
            begin = chance.randrange(total) if chance.random() < 0.1 else 0
            waiting[sender] = [f"{index}/{total}" for index in range(begin, total)]
        number[sender] += 1 if chance.random() < 0.95 else 2
        text = f"{sender} {number[sender]} {waiting[sender].pop(0)}"
        if chance.random() < 0.03:
            continue  # lost
        texts.append(text)
        sent.append(text)
        if chance.random() < 0.05:
            texts.append(chance.choice(sent))
        if chance.random() < 0.05:
            texts.append("?")
    return texts


def test_however_a_log_is_cut_into_blocks_the_same_comes_of_it() -> None:
    chance = random.Random(3)
    for _ in range(400):
        texts = log(chance)
        whole = reported([records(*texts)])
        cuts = sorted(chance.sample(range(1, len(texts)), chance.randrange(12)))
        assert reported(stretched(texts, cuts)) == whole


# ---- where a range may end


@pytest.mark.parametrize(
    ("texts", "cut"),
    [
        ("a - 0/1, a - 0/1", 2),
        ("a - 0/1, a - 0/2", 1),
        ("a - 0/3, a - 1/3", 0),
        ("a - 0/3, b - 0/2, a - 1/3, a - 2/3", 0),
        ("a - 0/1, b - 0/2, a - 0/1, b - 1/2, a - 0/2", 4),
        ("a - 0/2, a - 1/2, ?, a - 0/2, ?", 3),
        ("a - 0/2, a - 0/1", 2),
    ],
)
def test_a_range_ends_where_no_group_is_open(texts: str, cut: int) -> None:
    assert last_cut([part(text) for text in texts.split(", ")], from_start=True) == cut


@pytest.mark.parametrize(
    ("texts", "cut"),
    [
        ("a - 1/2", 1),
        ("a - 1/3", None),
        ("a - 0/1, b - 1/3", None),
        ("a - 0/1, b - 1/2", 2),
        ("a - 0/1, b - 1/2, a - 0/2", 2),
        ("a - 0/2, b - 1/2", None),
        ("", None),
    ],
)
def test_a_place_is_no_end_while_a_group_from_before_the_records_seen_is_open(texts: str, cut: int | None) -> None:
    assert last_cut([part(text) for text in texts.split(", ") if text], from_start=False) == cut


def test_a_record_by_itself_follows_where_adding_it_would_find_nothing_else() -> None:
    chance = random.Random(4)
    for _ in range(2_000):
        heard = {sender: chance.choice([None, 0, 1, 2]) for sender in chance.sample("ab", chance.randrange(3))}
        quick, slow = SliceGroups(heard), SliceGroups(heard)
        if chance.random() < 0.3:
            opening = SliceInfo("a", heard.get("a"), 0, 2)
            quick.add(0, opening)
            slow.add(0, opening)
        sender, number = chance.choice("ab"), chance.choice([None, 0, 1, 2, 3, 4])
        if quick.follows(sender, number):
            repeated, missing, ended = slow.add(1, SliceInfo(sender, number, 0, 1))
            assert (repeated, missing, [(group.records, group.state) for group in ended]) == (
                False,
                0,
                [([1], "whole")],
            )
            assert (quick.heard, quick.open) == (slow.heard, slow.open)
