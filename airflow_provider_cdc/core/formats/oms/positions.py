# SPDX-License-Identifier: Apache-2.0
"""Make positions of OMS's changes in the source's log (docs/wire/oceanbase-oms.md 8)."""

from __future__ import annotations

from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord

BinlogPosition = tuple[int | None, int | None, int | None]
NOWHERE: BinlogPosition = (None, None, None)
# Digits of a sequence -> unit of its seconds. These have ten; the counter has up to five and need not be padded
_UNITS = {10 + digits: 10**digits for digits in range(6)}
_FIRST = 10**9
NO_SEQUENCE = frozenset({None, "", 0, "0", "null"})


def change_position(sequence: int | str | None) -> BinlogPosition:
    """Return the position of a change by its sequence: ten digits of seconds, then a counter.

    :raises UnsupportedRecord: it has none.
    :raises ValueError: it is made otherwise: milliseconds, or a number that only counts, would give a wrong order.
    """
    if isinstance(sequence, str):
        digits, number = len(sequence), int(sequence) if sequence.isascii() and sequence.isdigit() else 0
    else:
        digits, number = len(str(sequence)), sequence or 0
    unit = _UNITS.get(digits)
    if unit and number >= _FIRST * unit:
        return number // unit, number % unit, 0
    if sequence in NO_SEQUENCE:
        text = "a change without a sequence: set source.options.sequenceEnabled to false if the task has it so"
        raise UnsupportedRecord("record.without_position", text)
    raise ValueError("a sequence that is not ten digits of seconds and up to five of a counter")


def snapshot_position(written_ms: int | None) -> BinlogPosition:
    """Return the position of a row of the full load: before every change, in the order in which the rows were written.

    :param written_ms: Kafka's time of the record, milliseconds since the epoch.
    """
    return 0, max(written_ms or 0, 0), 0
