# SPDX-License-Identifier: Apache-2.0
"""Hold typed images of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.arrays import BoolArray


@dataclass(slots=True)
class TypedRows:
    """Hold typed images.

    :param rows: columns of a schema, or of its key.
    :param row_indexes: indexes of the rows, ascending; those that failed are not among them.
    :param absent: by column's name, of each row whether its image lacks the column; only where some image does.
    :param passes: which rows the target has by its filter, None for all.
    """

    rows: pa.Table
    row_indexes: np.ndarray
    absent: dict[str, np.ndarray]
    passes: BoolArray | None = None

    def without(self, refused: Mapping[str, BoolArray]) -> TypedRows:
        """Return them without those that are to be left out, by what for."""
        if not refused:
            return self
        good: BoolArray = ~np.logical_or.reduce(list(refused.values()))
        return self.only(good)

    def only(self, good: BoolArray) -> TypedRows:
        """Return some of them."""
        if good.all():
            return self
        absent = {name: mask[good] for name, mask in self.absent.items()}
        passes = None if self.passes is None else self.passes[good]
        return TypedRows(self.rows.filter(pa.array(good)), self.row_indexes[good], absent, passes)

    def in_target(self) -> TypedRows:
        """Return those that the target has."""
        return self if self.passes is None else self.only(self.passes)


def together(groups: Sequence[TypedRows]) -> TypedRows:
    """Put groups into the order of their row indexes."""
    row_indexes = np.concatenate([group.row_indexes for group in groups])
    ranks = np.argsort(row_indexes, kind="stable")
    rows = pa.concat_tables([group.rows for group in groups]).take(pa.array(ranks))
    absent = {}
    for name in dict.fromkeys(name for group in groups for name in group.absent):
        masks = [group.absent.get(name, np.zeros(len(group.row_indexes), bool)) for group in groups]
        absent[name] = np.concatenate(masks)[ranks]
    passes = [group.passes for group in groups if group.passes is not None]
    return TypedRows(rows, row_indexes[ranks], absent, np.concatenate(passes)[ranks] if passes else None)
