# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is when batches of several pipelines run again and again."""

from __future__ import annotations

from airflow_provider_cdc.serving.server import Turns


def test_each_pipeline_has_a_turn_every_so_many_seconds() -> None:
    turns = Turns(60.0)
    assert [turns.next(["a", "b"], (), 9, now) for now in (5.0, 64.9, 65.0)] == [["a", "b"], [], ["a", "b"]]


def test_turns_that_are_missed_are_left_out() -> None:
    turns = Turns(10.0)
    assert turns.next(["a"], (), 1, 0.0) == ["a"]
    assert turns.next(["a"], ["a"], 1, 35.0) == [], "its batch still runs"
    assert [turns.next(["a"], (), 1, now) for now in (36.0, 39.9, 40.0)] == [["a"], [], ["a"]]


def test_who_waits_longest_is_first_where_few_may_start() -> None:
    turns, files = Turns(10.0), ["a", "b", "c"]
    assert [turns.next(files, (), 1, now) for now in (0.0, 1.0, 10.0, 11.0)] == [["a"], ["b"], ["c"], ["a"]]


def test_a_pipeline_that_comes_later_has_its_turn_at_once() -> None:
    turns = Turns(60.0)
    turns.next(["a"], (), 1, 0.0)
    assert turns.next(["a", "b"], (), 1, 7.0) == ["b"]
    assert turns.next(["a", "b"], (), 2, 60.0) == ["a"]
