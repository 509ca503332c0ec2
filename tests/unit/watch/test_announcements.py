# SPDX-License-Identifier: Apache-2.0
"""A look is logged where it says something new."""

from __future__ import annotations

import logging

from airflow_provider_cdc.watch.announcements import REPEAT_AFTER, Announcements
from airflow_provider_cdc.watch.condition import Answer


class Lines:
    def __init__(self) -> None:
        self.written: list[tuple[int, str]] = []

    def log(self, level: int, text: str, *arguments: object) -> None:
        self.written.append((level, text % arguments))


def waiting(*holds: str, message: str = "waits") -> Answer:
    return Answer(False, message, holds=holds)


def test_only_another_holding_set_is_news() -> None:
    lines = Lines()
    announcements = Announcements(lines, clock=lambda: 0.0)
    announcements.note(waiting("t/0", "t/1", message="first"))
    announcements.note(waiting("t/0", "t/1", message="a little further"))
    announcements.note(waiting("t/1", message="one less"))
    announcements.note(Answer(True, "done"))
    assert lines.written == [(logging.INFO, "first"), (logging.INFO, "one less"), (logging.INFO, "done")]


def test_the_same_is_repeated_now_and_then_at_debug_level() -> None:
    lines, now = Lines(), [0.0]
    announcements = Announcements(lines, clock=lambda: now[0])
    for second in range(int(3 * REPEAT_AFTER)):
        now[0] = float(second)
        announcements.note(waiting("t/0"))
    assert [level for level, _ in lines.written] == [logging.INFO, logging.DEBUG, logging.DEBUG]


def test_an_error_is_a_warning_once_and_names_are_escaped() -> None:
    lines = Lines()
    announcements = Announcements(lines, clock=lambda: 0.0)
    announcements.fail("kafka.unavailable", "no answer \x1b[2J")
    announcements.fail("kafka.unavailable", "no answer")
    announcements.note(waiting("t/0"))
    announcements.fail("kafka.unavailable", "no answer")
    assert [level for level, _ in lines.written] == [logging.WARNING, logging.INFO, logging.WARNING]
    assert "\x1b" not in lines.written[0][1]
