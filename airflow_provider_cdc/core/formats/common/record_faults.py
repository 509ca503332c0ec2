# SPDX-License-Identifier: Apache-2.0
"""Turn records at which a format's own code fails into errors, and decode the records around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from airflow_provider_cdc.core.faults import may_be_caught, summary
from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.log_names import names_in, with_names
from airflow_provider_cdc.core.formats.common.record_groups import SliceGroups, piece
from airflow_provider_cdc.core.formats.contract import Format, Grouped, Records


def decode_all(fmt: Format, records: Records, reopen: Callable[[], Format]) -> pa.RecordBatch:
    """Return the changes of records; where ``decode`` raises, of ever smaller parts of them, down to single records.

    What cannot be decoded alone becomes ``error`` changes with the code ``record.fault``.

    :param reopen: opens the format again: what an opened one remembers means nothing after a fault.
    :raises MemoryError: it did not suffice, which says nothing about the records.
    """
    try:
        return fmt.decode(records)
    except MemoryError:
        raise
    except BaseException as error:
        if not may_be_caught(error):
            raise
        fault = f"{fmt.name} cannot decode the record, please report it: {summary(error)}"
    halves = _halves(reopen(), records)
    if halves is None:
        return _faulty(records, fault)
    first, second = (decode_all(reopen(), half, reopen) for half in halves)
    names = {**{name: index + len(halves[0]) for name, index in names_in(second).items()}, **names_in(first)}
    parts = [part.replace_schema_metadata() for part in (first, second)]
    return with_names(pa.Table.from_batches(parts).unify_dictionaries().combine_chunks().to_batches()[0], names)


def _halves(fmt: Format, records: Records) -> tuple[Records, Records] | None:
    """Cut records near their middle, where no group is open; None where they cannot be cut."""
    middle, heard = len(records) // 2, records.heard
    if isinstance(fmt, Grouped):
        groups, cuts = SliceGroups(records.heard), []
        headers = records.headers or [None] * len(records)
        for number, (value, header) in enumerate(zip(records.values, headers, strict=True), 1):
            part = fmt.part_of(value, header)
            if part is not None:
                groups.add(number, part)
            if not groups.open and number < len(records):
                cuts.append((abs(number - middle), number, dict(groups.heard)))
        if not cuts:
            return None
        _, middle, heard = min(cuts, key=lambda cut: cut[:2])
    if middle == 0:
        return None
    return piece(records, 0, middle), replace(piece(records, middle, len(records)), heard=heard)


def _faulty(records: Records, text: str) -> pa.RecordBatch:
    out = ChangeBuilder(records, [])
    for index in range(len(records)):
        out.error(index, "record.fault", text)
    return out.batch()
