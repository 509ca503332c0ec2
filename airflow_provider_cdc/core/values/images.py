# SPDX-License-Identifier: Apache-2.0
"""Convert row images (JSON objects) to typed Arrow columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from airflow_provider_cdc.core.values.alter.default_values import constant
from airflow_provider_cdc.core.values.blocks import Block
from airflow_provider_cdc.core.values.fields import Field, Reason
from airflow_provider_cdc.core.values.image_structs import texts_of

__all__ = ["Failure", "Field", "Reason", "Typed", "constant", "type_images"]

_BLOCK = 16_384  # rows; their objects stay in the processor's cache
_BLOCK_BYTES = 32 << 20  # of images: a block holds each of them three times while it is read


@dataclass(frozen=True, slots=True)
class Failure:
    """Describe a value, or with column ``""`` a whole image, that could not be converted.

    :param row: index into the images.
    :param column: member name.
    :param reason: a :class:`Reason`.
    """

    row: int
    column: str
    reason: str


@dataclass
class Typed:
    """Hold the columns of a batch of images.

    :param columns: one per field, NULL where the member is absent, null or failed.
    :param absent: per field a boolean per row, None if the member is in every image.
    :param failures: rows that belong in quarantine.
    :param lossy: counts of values with an allowed loss, by kind.
    """

    columns: list[pa.Array]
    absent: list[pa.Array | None]
    failures: list[Failure] = field(default_factory=list)
    lossy: dict[str, int] = field(default_factory=dict)


class ImageTexts(Protocol):
    """Supply JSON object texts without nulls: an Arrow array, or an object that makes its slices on demand."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Approximate size of all images in bytes."""

    def slice(self, offset: int, length: int, /) -> pa.Array:
        """Return the images of a range of rows."""


def type_images(images: ImageTexts, fields: Sequence[Field]) -> Typed:
    """Convert images; their content never raises, failures are listed."""
    rows = min(_BLOCK, max(1, _BLOCK_BYTES * len(images) // max(1, images.nbytes)))
    blocks = [
        Block(texts_of(images.slice(start, rows)), fields, start).run() for start in range(0, max(len(images), 1), rows)
    ]
    lossy: Counter[str] = Counter()
    for block in blocks:
        lossy.update(block.lossy)
    return Typed(
        [_joined([block.columns[i] for block in blocks]) for i in range(len(fields))],
        [_mask([block.absent[i] for block in blocks], [block.length for block in blocks]) for i in range(len(fields))],
        [Failure(row, column, reason.value) for block in blocks for row, column, reason in block.failures],
        dict(lossy),
    )


def _joined(parts: list[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _mask(parts: list[pa.Array | None], lengths: list[int]) -> pa.Array | None:
    if all(part is None for part in parts):
        return None
    filled = [
        pa.nulls(n, pa.bool_()).fill_null(False) if part is None else part
        for part, n in zip(parts, lengths, strict=True)
    ]
    return _joined(filled)
