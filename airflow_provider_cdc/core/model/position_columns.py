# SPDX-License-Identifier: Apache-2.0
"""Read the parts of positions a whole column at once.

The layouts are those of :mod:`core.model.position` and :mod:`core.model.clock_position`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model import clock_position
from airflow_provider_cdc.core.model.position import GENERATION_DIGITS, ROW_DIGITS


def event_of(positions: Any) -> Any:
    """Return positions in the source's log without the row: rows of one event have equal texts."""
    return pc.utf8_slice_codeunits(positions, 0, -1 - ROW_DIGITS)


def generation_text_of(positions: Any) -> Any:
    """Return the text of the log's generation in positions in the source's log."""
    return pc.utf8_slice_codeunits(positions, 0, GENERATION_DIGITS)


def are_before_log(positions: Any) -> Any:
    """Return which positions :func:`core.model.position.is_before_log` is true of."""
    return pc.match_substring_regex(positions, r"^[0-9]+\.0+\.")


def without_generation(positions: Any) -> Any:
    """Return positions in the source's log behind their generation: equal in every generation of the log."""
    return pc.utf8_slice_codeunits(positions, GENERATION_DIGITS)


def without_first_number(positions: Any) -> Any:
    """Return positions in the source's log without the number behind their generation."""
    return pc.replace_substring_regex(positions, r"^([0-9]+)\.[0-9]+", r"\1")


def moment_of(positions: Any) -> Any:
    """Return clock positions up to the tool's time: changes of one millisecond have equal texts."""
    return pc.utf8_slice_codeunits(positions, 0, clock_position.TOOL.stop)


def tool_time_of(positions: Any) -> Any:
    """Return the tool's time of clock positions, in milliseconds since the epoch."""
    return _part(positions, clock_position.TOOL).cast(pa.int64())


def partition_of(positions: Any) -> Any:
    """Return the text of topic and partition in clock positions."""
    return _part(positions, clock_position.PARTITION)


def _part(positions: Any, part: slice) -> Any:
    return pc.utf8_slice_codeunits(positions, part.start, part.stop)
