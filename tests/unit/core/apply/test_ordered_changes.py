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


@pytest.mark.parametrize("op", ["delete", "insert"])
def test_images_with_the_key_are_read_in_portions_of_bounded_size(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_changes, "PORTION_BYTES", 2_000)
    portions = list(changes_of([op] * 100).image(KEY).portions(np.arange(100)))
    assert max(map(len, portions)) <= 20
    assert sorted(np.concatenate(portions).tolist()) == list(range(100))
