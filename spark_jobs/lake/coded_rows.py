# SPDX-License-Identifier: Apache-2.0
"""Rows whose dictionary columns hold numbers: slices of them are joined without comparing all words of each dictionary.

Arrow unifies the dictionaries of each slice that it joins. A slice of one small table has the words of all tables that
were decoded with it, such as the descriptions of their columns, so joining them cost the square of the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import BoolArray, IntArray


class CodedRows:
    """Rows with the number of a word wherever they have a dictionary.

    :param rows: with one dictionary for all chunks of a column (``unify_dictionaries``).
    """

    def __init__(self, rows: pa.Table) -> None:
        self._schema = rows.schema
        self._words: dict[str, pa.Array] = {}
        for number, field in enumerate(rows.schema):
            if pa.types.is_dictionary(field.type):
                chunks = rows.column(number).chunks
                self._words[field.name] = chunks[0].dictionary if chunks else pa.array([], pa.string())
                codes = pa.chunked_array([chunk.indices for chunk in chunks], pa.int32())
                rows = rows.set_column(number, field.name, codes)
        self._rows = rows

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def slice(self, start: int, length: int) -> CodedSlice:
        """Return some of the rows."""
        return CodedSlice(self, self._rows.slice(start, length))

    @staticmethod
    def joined(slices: Sequence[CodedSlice]) -> pa.Table:
        """Return the rows of slices one behind the other, with the words that they have, each once."""
        sources = list({id(one.source): one.source for one in slices}.values())
        numbers = {id(source): number for number, source in enumerate(sources)}
        source_of = np.repeat([numbers[id(one.source)] for one in slices], [len(one.rows) for one in slices])
        rows = pa.concat_tables([one.rows for one in slices])
        schema = sources[0]._schema
        columns = [
            _decoded(rows.column(field.name), [source._words[field.name] for source in sources], source_of)
            if pa.types.is_dictionary(field.type)
            else rows.column(field.name)
            for field in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)


@dataclass(slots=True)
class CodedSlice:
    """Some of the rows of a source."""

    source: CodedRows
    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)


def _decoded(codes: pa.ChunkedArray, words: Sequence[pa.Array], source_of: IntArray) -> pa.DictionaryArray:
    """Return a dictionary column.

    :param codes: numbers of words, each by its source.
    :param words: of each source.
    :param source_of: source of each row.
    """
    valid = codes.is_valid().to_numpy() if codes.null_count else None
    numbers = (codes.fill_null(0) if codes.null_count else codes).to_numpy().astype(np.int64)
    if len(words) > 1:
        numbers += np.cumsum([0, *map(len, words)], dtype=np.int64)[source_of]
    counts = np.bincount(numbers if valid is None else numbers[valid], minlength=1)
    used = np.flatnonzero(counts)
    every = words[0] if len(words) == 1 else pa.concat_arrays(words)
    distinct = every.take(pa.array(used)).dictionary_encode()
    mapped = np.zeros(len(counts), np.int32)
    mapped[used] = distinct.indices.to_numpy()
    numbers = mapped[np.minimum(numbers, len(counts) - 1)]
    indices = pa.array(numbers, pa.int32(), mask=None if valid is None else ~valid)
    return pa.DictionaryArray.from_arrays(indices, distinct.dictionary)


def with_own_words(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return an array whose dictionary has no more words than its rows do."""
    used = array.indices.unique().drop_null()
    if len(used) == len(array.dictionary):
        return array
    return pa.DictionaryArray.from_arrays(pc.index_in(array.indices, used), array.dictionary.take(used))


def is_word(array: pa.DictionaryArray, *words: str) -> BoolArray:
    """Return where an array has one of some words: comparing their numbers is far cheaper than comparing texts."""
    codes = array.indices.fill_null(-1) if array.null_count else array.indices
    there = np.array([word in words for word in array.dictionary.to_pylist()] + [False])  # the last is that of null
    mask: BoolArray = there[codes.to_numpy()]
    return mask
