# SPDX-License-Identifier: Apache-2.0
"""Rows of one place that are all alike, and those that a tool sent again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.alike_rows import each_alike

SECOND = 1_000_000


def different(rows: list[tuple[str, str, int | None]]) -> list[int]:
    """Return for each row (position, content, when it was built) which of the different ones it is, by first sight."""
    positions = pa.chunked_array([pa.array([position for position, _, _ in rows])])
    contents = {text: number for number, text in enumerate(sorted({position + text for position, text, _ in rows}))}
    numbers = np.array([contents[position + text] for position, text, _ in rows])
    table = pa.table({"built": pa.array([built for _, _, built in rows], pa.int64())})
    known: dict[int, int] = {}
    return [known.setdefault(number, len(known)) for number in each_alike(numbers, positions, table).tolist()]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([("1", "a", 0), ("1", "a", 70_000), ("1", "b", 80_000)], [0, 1, 2], id="all of one COPY"),
        pytest.param([("1", "a", 0), ("1", "a", 1), ("1", "a", 90 * SECOND), ("1", "a", 91 * SECOND)], [0, 1, 0, 1],
                     id="sent again"),
        pytest.param([("1", "a", 90 * SECOND), ("1", "a", 0), ("1", "a", 90 * SECOND + 1)], [0, 0, 1],
                     id="the tool died in the middle"),
        pytest.param([("1", "a", 0), ("1", "a", 1), ("1", "a", 0), ("1", "a", 1)], [0, 1, 0, 1],
                     id="written twice by the producer"),
        pytest.param([("1", "b", 0), ("1", "a", 1), ("1", "a", 40 * SECOND), ("1", "a", 40 * SECOND + 1)], [0, 1, 1, 2],
                     id="sent again, and not all rows of the first time were read"),
        pytest.param([("1", "a", 0), ("2", "a", 1), ("1", "a", None)], [0, 1, 0], id="other places, not stated"),
    ],
)  # fmt: skip
def test_rows_that_are_alike(rows: list[tuple[str, str, int | None]], expected: list[int]) -> None:
    assert different(rows) == expected
