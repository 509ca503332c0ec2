"""Where a change of OMS stands in its source's log (specs oceanbase-oms, section 8)."""

from __future__ import annotations

Place = tuple[int | None, int | None, int | None]
NOWHERE: Place = (None, None, None)
# Seconds since the epoch have ten digits; the counter has up to five and need not be padded
_SECONDS, _COUNTERS = 10, tuple(10**digits for digits in range(6))
NO_SEQUENCE = frozenset({None, "", 0, "0", "null"})


class NoPosition(ValueError):
    """A change without the sequence that its task is said to write."""


def change_place(sequence: int | str | None) -> Place:
    """Return the place of a change by its sequence: ten digits of seconds, then a counter.

    :raises NoPosition: it has none.
    :raises ValueError: it is made otherwise: milliseconds, or a number that only counts, would give a wrong order.
    """
    if sequence in NO_SEQUENCE:
        raise NoPosition(
            "a change without a sequence: set source.options.sequenceEnabled to false if the task has it so"
        )
    if isinstance(sequence, str):
        sequence = int(sequence) if sequence.isascii() and sequence.isdigit() and len(sequence) < 20 else -1
    digits = len(str(sequence)) - _SECONDS
    if 0 <= digits < len(_COUNTERS) and sequence is not None and sequence > 0:
        seconds, counter = divmod(sequence, _COUNTERS[digits])
        return seconds, counter, 0
    raise ValueError("a sequence that is not ten digits of seconds and up to five of a counter")


def snapshot_place(written_ms: int | None) -> Place:
    """Return the place of a row of the full load: before every change, in the order in which the rows were written.

    :param written_ms: Kafka's time of the record, milliseconds since the epoch.
    """
    return 0, max(written_ms or 0, 0), 0
