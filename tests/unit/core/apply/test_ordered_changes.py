# SPDX-License-Identifier: Apache-2.0
"""Images of changes that are stored elsewhere: how they are chosen and read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply import ordered_changes
from airflow_provider_cdc.core.apply.ordered_changes import KEY, STORED_ROW, Changes, has


class Pieces:
    """Stored images of one piece."""

    def __init__(self, images: list[str | None]) -> None:
        self._images = pa.array(images, pa.string())
        self.lengths = np.array([len(images)])
        self.nbytes = self._images.nbytes

    def __getitem__(self, piece: int) -> pa.Array:
        return self._images


def changes_of(ops: list[str]) -> Changes:
    """Return changes whose positions fall, with stored images of 100 bytes: before of deletes, after of others."""
    count = len(ops)
    before = [f"{row:0100d}" if op == "delete" else None for row, op in enumerate(ops)]
    after = [None if op == "delete" else f"{row:0100d}" for row, op in enumerate(ops)]
    columns = {
        "topic": ["t"] * count,
        "partition": [0] * count,
        "offset": list(range(count)),
        "index": [0] * count,
        "op": ops,
        "position": [f"{count - row:08d}" for row in range(count)],
        STORED_ROW: list(range(count)),
        has("before"): [image is not None for image in before],
        has("after"): [image is not None for image in after],
    }
    return Changes(pa.table(columns), {"before": Pieces(before), "after": Pieces(after)})


@pytest.mark.parametrize("deletes", [0, 1, 99, 100])
def test_images_with_the_key_are_those_before_deletes_and_after_others(deletes: int) -> None:
    changes = changes_of(["delete"] * deletes + ["insert"] * (100 - deletes))
    image = changes.image(KEY)
    assert image.there.all()
    assert image.at(np.arange(100)).to_pylist() == [f"{row:0100d}" for row in reversed(range(100))]


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("falling", [False, True])
def test_images_in_memory_are_chosen_for_any_rows_in_any_order(pieces: int, falling: bool) -> None:
    count = 30
    ops = ["delete" if row % 4 == 0 else "update" for row in range(count)]
    size = count // pieces
    columns = {
        "topic": ["t"] * count,
        "partition": [0] * count,
        "offset": list(range(count)),
        "index": [0] * count,
        "op": ops,
        "position": [f"{count - row if falling else row:08d}" for row in range(count)],
        "before": [f"before {row}" for row in range(count)],  # updates have one, too
        "after": [None if op == "delete" else f"after {row}" for row, op in enumerate(ops)],
    }
    whole = pa.table(columns)
    changes = Changes(pa.concat_tables([whole.slice(start, size) for start in range(0, count, size)]))
    expected = [f"{'before' if op == 'delete' else 'after'} {row}" for row, op in enumerate(ops)]
    if falling:
        expected.reverse()
    for rows in (np.arange(count), np.arange(5, 20), np.array([0, 4, 7, 8, 29]), np.array([1, 2, 3]), np.arange(0)):
        assert changes.image(KEY).at(rows).to_pylist() == [expected[row] for row in rows]


@pytest.mark.parametrize("op", ["delete", "insert"])
def test_images_with_the_key_are_read_in_portions_of_bounded_size(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_changes, "PORTION_BYTES", 2_000)
    portions = list(changes_of([op] * 100).image(KEY).portions(np.arange(100)))
    assert max(map(len, portions)) <= 20
    assert sorted(np.concatenate(portions).tolist()) == list(range(100))
