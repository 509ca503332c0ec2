"""OMS's sequence (``storeDataSequence``, ``scn``): seconds since the epoch, then a counter of up to five digits."""

from __future__ import annotations

_SECONDS_DIGITS = 10
_MOST_DIGITS = _SECONDS_DIGITS + 18  # the counter is the second part of a position


def place_of(sequence: str | int | None) -> tuple[int, int] | None:
    """Return a sequence as (seconds, counter), which compares as the source's order; None where there is none.

    The counter need not be padded, so the digits cannot be compared as one number (specs/oceanbase-oms.md, section 8).
    Rows of the full load have none or 0. Fewer digits than a time has, as in the samples, come before any time.

    :raises ValueError: it is no number, or a longer one than any sequence.
    """
    digits = "" if sequence is None else str(sequence)
    if digits in ("", "null", "0"):
        return None
    if not digits.isascii() or not digits.isdigit() or len(digits) > _MOST_DIGITS:
        raise ValueError("a sequence that is no number of seconds and counter")
    if len(digits) < _SECONDS_DIGITS:
        return 0, int(digits)
    return int(digits[:_SECONDS_DIGITS]), int(digits[_SECONDS_DIGITS:] or 0)
