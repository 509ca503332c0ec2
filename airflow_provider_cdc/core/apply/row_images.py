# SPDX-License-Identifier: Apache-2.0
"""Say which columns the row images of some changes have: what a tool leaves out is in none of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.ordered_changes import Changes
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.errors import DataError


class SchemaMissing(DataError):
    """A row's own description does not fit the schema known for its position: a DDL is still missing."""


LEFT_OUT = (
    "if the tool leaves them out (column.exclude.list, canal.instance.filter.field, column-selectors, the columns of a "
    "task), state tables.<name>.exclude_columns"
)


def columns_of_no_row(known: Sequence[str], rows: Iterable[Collection[str]]) -> list[str]:
    """Return the columns that no row has; none where a row has one that is not known.

    :param rows: columns of the rows, once for each description.
    """
    have = {name for names in rows for name in names}
    return [name for name in known if name not in have] if have <= set(known) else []


def are_whole(changes: Changes, marks: Sequence[str], some: BoolArray) -> bool | None:
    """Return whether images before changes have more than the key; None without such images.

    :param marks: how the columns that are not of the key stand in an image.
    :param some: of which changes.
    """
    rows = np.flatnonzero(some & changes.images["before"].there & changes.are("update", "delete"))
    return _have(changes, "before", rows, marks) if len(rows) and marks else None


def is_in_any(changes: Changes, mark: str) -> bool:
    """Return whether an image has a column.

    :param mark: how it stands in an image.
    """
    images = changes.images
    return any(_have(changes, name, np.flatnonzero(images[name].there), [mark]) for name in images)


def _have(changes: Changes, name: str, rows: IntArray, marks: Sequence[str]) -> bool:
    images = changes.images[name]
    for portion in images.portions(rows):
        texts = images.at(portion)
        if any(pc.any(pc.match_substring(texts, mark)).as_py() for mark in marks):
            return True
    return False
