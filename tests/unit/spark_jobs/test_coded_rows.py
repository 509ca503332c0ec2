# SPDX-License-Identifier: Apache-2.0
"""Rows without their dictionaries are joined as Arrow joins rows with them, and get only the words that they have."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from spark_jobs.lake.coded_rows import CodedRows, is_word, with_own_words

WORDS = [None, "", "a", "b", "größe", "x" * 300, *map(str, range(50))]


def source(chance: random.Random, rows: int) -> pa.Table:
    chunks = []
    for _ in range(chance.randint(1, 3)):
        words = chance.sample(WORDS, chance.randint(1, len(WORDS)))
        chunks.append(
            pa.table(
                {
                    "number": pa.array([chance.randrange(1000) for _ in range(rows)], pa.int64()),
                    "word": pa.array([chance.choice(words) for _ in range(rows)], pa.string()).dictionary_encode(),
                    "none": pa.array([None] * rows, pa.string()).dictionary_encode(),
                }
            )
        )
    return pa.concat_tables(chunks).unify_dictionaries()


@pytest.mark.parametrize("seed", range(30))
def test_slices_of_several_sources_are_joined_in_their_order(seed: int) -> None:
    chance = random.Random(seed)
    sources = [source(chance, chance.randint(0, 40)) for _ in range(chance.randint(1, 4))]
    coded = [CodedRows(rows) for rows in sources]
    expected, slices = [], []
    for _ in range(chance.randint(1, 12)):
        number = chance.randrange(len(sources))
        start = chance.randint(0, len(coded[number]))
        length = chance.randint(0, len(coded[number]) - start)
        slices.append(coded[number].slice(start, length))
        expected += sources[number].slice(start, length).to_pylist()
    joined = CodedRows.joined(slices)
    assert joined.to_pylist() == expected
    assert joined.schema == sources[0].schema
    words = joined.column("word").chunk(0).dictionary.to_pylist()
    assert sorted(words) == sorted({row["word"] for row in expected} - {None})


def test_an_array_is_left_with_the_words_of_its_rows() -> None:
    array = pa.array(["a", "b", None, "c", "b"]).dictionary_encode().slice(1, 3)
    own = with_own_words(array)
    assert (own.to_pylist(), own.dictionary.to_pylist()) == (["b", None, "c"], ["b", "c"])
    assert with_own_words(own) is own


def test_a_row_has_one_of_the_words_or_none() -> None:
    array = pa.array(["a", None, "b", "a", "c"]).dictionary_encode()
    assert is_word(array, "a", "c", "never").tolist() == [True, False, False, True, True]
    assert is_word(array.slice(1, 2), "b").tolist() == [False, True]
    assert is_word(array.slice(0, 0), "a").tolist() == []
    assert is_word(pa.nulls(2, pa.string()).dictionary_encode(), "a").tolist() == [False, False]
