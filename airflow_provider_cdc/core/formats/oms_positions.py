"""Where a change of OMS stands in its source's log (specs oceanbase-oms, section 8)."""

from __future__ import annotations

from airflow_provider_cdc.core.formats.oms_sequence import place_of

_MOST_DIGITS = 15  # ten of seconds, "no more than five" of the counter
Place = tuple[int | None, int | None, int | None]
NOWHERE: Place = (None, None, None)


class NoPosition(ValueError):
    """A change without the sequence that its task is said to write."""


def change_place(sequence: int | str | None) -> Place:
    """Return the place of a change by its sequence.

    :raises NoPosition: it has none.
    :raises ValueError: it is not made of seconds and a counter.
    """
    found = place_of(sequence)
    if found is None:
        raise NoPosition(
            "a change without a sequence: set source.options.sequenceEnabled to false if the task has it so"
        )
    seconds, counter = found
    # milliseconds, or a number that only counts, would be put in a wrong order
    if not seconds or len(str(sequence)) > _MOST_DIGITS:
        raise ValueError("a sequence that is not ten digits of seconds and up to five of a counter")
    return seconds, counter, 0


def snapshot_place(written_ms: int | None) -> Place:
    """Return the place of a row of the full load: before every change, in the order in which the rows were written.

    :param written_ms: Kafka's time of the record, milliseconds since the epoch.
    """
    return 0, max(written_ms or 0, 0), 0
