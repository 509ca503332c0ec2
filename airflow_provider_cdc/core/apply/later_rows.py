# SPDX-License-Identifier: Apache-2.0
"""Leave rows to be typed when they are written, a portion of their stored images at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from airflow_provider_cdc.core.apply.merge_plan import ImagesLack, LaterRows
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.arrays import IntArray


def typed_later(typer: RowTyper, row_indexes: IntArray, last: int, *, partial: bool) -> LaterRows:
    """Leave rows to be typed a portion of their stored images at a time; those that a filter leaves out are not there.

    :param partial: whether updates may lack columns.
    """

    def pieces() -> Iterator[pa.Table]:
        for portion in typer.changes.images["after"].portions(row_indexes):
            typed = typer.typed(portion, "after", last, partial=partial)
            if typed.absent:
                raise ImagesLack
            yield typed.in_target().rows

    return LaterRows(len(row_indexes), pieces)
