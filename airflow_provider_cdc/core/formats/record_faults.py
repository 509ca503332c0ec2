"""Records at which a format's own code fails: they become errors, the records around them are decoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from airflow_provider_cdc.core.faults import may_be_caught, summary
from airflow_provider_cdc.core.formats.change_columns import ChangeColumns
from airflow_provider_cdc.core.formats.contract import Format, Grouped, Records
from airflow_provider_cdc.core.formats.groups import Groups, piece


def decode_all(wire: Format, records: Records, reopen: Callable[[], Format]) -> pa.RecordBatch:
    """Return the changes of records; where ``decode`` raises, of ever smaller parts of them, down to single records.

    What cannot be decoded alone becomes ``error`` changes with the code ``record.fault``.

    :param reopen: opens the format again: what an opened one remembers means nothing after a fault.
    :raises MemoryError: it did not suffice, which says nothing about the records.
    """
    try:
        return wire.decode(records)
    except MemoryError:
        raise
    except BaseException as error:
        if not may_be_caught(error):
            raise
        fault = f"{wire.name} cannot decode the record, please report it: {summary(error)}"
    halves = _halves(reopen(), records)
    if halves is None:
        return _faulty(records, fault)
    parts = [decode_all(reopen(), half, reopen) for half in halves]
    return pa.Table.from_batches(parts).unify_dictionaries().combine_chunks().to_batches()[0]


def _halves(wire: Format, records: Records) -> tuple[Records, Records] | None:
    """Cut records near their middle, where no group is open; None where they cannot be cut."""
    middle, heard = len(records) // 2, records.heard
    if isinstance(wire, Grouped):
        groups, found = Groups(records.heard), []
        headers = records.headers or [None] * len(records)
        for number, (value, header) in enumerate(zip(records.values, headers, strict=True), 1):
            part = wire.part_of(value, header)
            if part is not None:
                groups.add(number, part)
            if not groups.open and number < len(records):
                found.append((abs(number - middle), number, dict(groups.heard)))
        if not found:
            return None
        _, middle, heard = min(found, key=lambda cut: cut[:2])
    if middle == 0:
        return None
    return piece(records, 0, middle), replace(piece(records, middle, len(records)), heard=heard)


def _faulty(records: Records, text: str) -> pa.RecordBatch:
    out = ChangeColumns(records, [])
    for place in range(len(records)):
        out.error(place, "record.fault", text)
    return out.batch()
