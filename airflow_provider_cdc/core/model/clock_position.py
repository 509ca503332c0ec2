# SPDX-License-Identifier: Apache-2.0
"""Define positions for formats whose records carry none: by the tool's clock, then by partition and offset.

A position is ``c.<tool time>.<source time>.<partition>.<offset>.<index>.<tool batch>``, each number padded with zeros.
Comparing the texts orders the changes of one partition exactly, and those of several as well as the tool's clock can.
:func:`unordered` returns whether it cannot order two changes.
"""

from __future__ import annotations

import hashlib

PREFIX = "c"
TOOL_DIGITS = 14  # milliseconds since the epoch
SOURCE_DIGITS = 11  # seconds since the epoch
TOPIC_DIGITS, PARTITION_DIGITS = 12, 6
OFFSET_DIGITS, INDEX_DIGITS = 19, 10
BATCH_DIGITS = 9
WIDTHS = (TOOL_DIGITS, SOURCE_DIGITS, TOPIC_DIGITS + PARTITION_DIGITS, OFFSET_DIGITS, INDEX_DIGITS, BATCH_DIGITS)

# slices of the text for each number, each after a dot
TOOL = slice(2, 2 + TOOL_DIGITS)
SOURCE = slice(TOOL.stop + 1, TOOL.stop + 1 + SOURCE_DIGITS)
TOPIC = slice(TOOL.stop + SOURCE_DIGITS + 2, TOOL.stop + SOURCE_DIGITS + 2 + TOPIC_DIGITS)
PARTITION = slice(TOPIC.start, TOPIC.stop + PARTITION_DIGITS)
BATCH = slice(PARTITION.stop + OFFSET_DIGITS + INDEX_DIGITS + 3, PARTITION.stop + OFFSET_DIGITS + INDEX_DIGITS + 12)

# A tool counts its batches from the beginning when it restarts. It builds the records of one batch within this time:
# Canal was seen to take 50 ms, and it builds the next batch only after the broker has the one before.
BATCH_MS = 60_000

# An equal change within this time may be another one of the same second, or one that the tool sends again before it
# goes on. Changes of one second of the source are sent closer to each other, unless the tool pauses in that second.
REPEAT_MS = 10_000


def is_clock_position(position: str) -> bool:
    """Return whether a position has this form."""
    return position.startswith(f"{PREFIX}.")


def partition_number(topic: str, partition: int) -> int:
    """Return a number for a topic-partition: the same in every batch, ascending within a topic."""
    digest = int.from_bytes(hashlib.blake2b(topic.encode(), digest_size=8).digest(), "big")
    number: int = digest % 10**TOPIC_DIGITS * 10**PARTITION_DIGITS + partition
    return number


def at_tool_time(milliseconds: int) -> str:
    """Return a text that is not above any position of a tool's time, in milliseconds since the epoch."""
    return f"{PREFIX}.{milliseconds:0{TOOL_DIGITS}d}"


def unordered(one: str, other: str) -> bool:
    """Return whether the order of two changes is unknown, whichever of the positions is lower.

    It is between changes of one millisecond on several partitions, and between changes of one batch of the tool on
    several topics: Canal builds the records of a batch's topics side by side, each when its turn comes.
    """
    if not _comparable(one, other) or one[PARTITION] == other[PARTITION]:
        return False
    return one[TOOL] == other[TOOL] or (one[TOPIC] != other[TOPIC] and _one_batch(one, other))


def one_instant(one: str, other: str) -> bool:
    """Return whether changes from one position to another may be unordered with a change at one of the two.

    It serves for sets of changes of which only the lowest and the highest position are known.
    """
    return _comparable(one, other) and (one[TOOL] == other[TOOL] or _one_batch(one, other))


def is_stale(position: str, tool_time: int | None) -> bool:
    """Return whether a tool built a record before others that precede it on its partition, so it was sent before.

    :param tool_time: when the tool built it, in milliseconds since the epoch, None if the record does not state it.
    """
    return tool_time is not None and is_clock_position(position) and tool_time < int(position[TOOL])


def reaches(end: str, position: str) -> bool:
    """Return whether changes up to ``end`` may include some that belong after a position."""
    return end >= position or one_instant(end, position)


def sent_apart(one: str, other: str) -> bool:
    """Return whether two changes are so far apart in the tool's time that they are not of one second."""
    return _comparable(one, other) and abs(int(one[TOOL]) - int(other[TOOL])) > REPEAT_MS


def same_millisecond(position: str) -> str:
    """Return a text that is not above any position of the same millisecond; other positions unchanged."""
    return position[: TOOL.stop] if is_clock_position(position) else position


def earliest_unordered(position: str) -> str:
    """Return a text that is not above the position of any change that a change is unordered with."""
    if not is_clock_position(position):
        return position
    tool = int(position[TOOL])
    return at_tool_time(max(0, tool - BATCH_MS if int(position[BATCH]) else tool))


def latest_unordered(position: str) -> str:
    """Return a text above the position of every change that a change is unordered with."""
    if not is_clock_position(position):
        return position
    tool = int(position[TOOL])
    return at_tool_time(tool + (BATCH_MS if int(position[BATCH]) else 1))


def _comparable(one: str, other: str) -> bool:
    return is_clock_position(one) and is_clock_position(other)


def _one_batch(one: str, other: str) -> bool:
    same = one[BATCH] == other[BATCH] and int(one[BATCH]) > 0
    return same and abs(int(one[TOOL]) - int(other[TOOL])) < BATCH_MS
