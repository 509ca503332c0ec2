# SPDX-License-Identifier: Apache-2.0
"""Read the sender and the running number of a record of Tencent DTS from its headers (docs/wire/tencent-dts.md 4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.formats.contract import Headers

_NUMBER, _SHARD = "ps", "ShardId"
_DIGITS = 18  # more may not fit a 64-bit number


class Senders(NamedTuple):
    """Senders and running numbers of some records.

    :param known: whether the headers state them.
    :param names: distinct senders; ``sender`` has a number of them for each record.
    :param number: running numbers, -1 where there is none or a longer one than :data:`_DIGITS`.
    """

    known: Any
    names: Sequence[str]
    sender: Any
    number: Any


def sender_of(headers: Headers) -> tuple[str, int | None] | str:
    """Return the sender of a record and its running number, or why they are unknown."""
    sender, number = "", None
    for name, header in headers or ():
        if header is None:
            continue
        if name == _SHARD:
            sender = header.decode("latin-1")
        elif name == _NUMBER:
            if not header.isdigit() or len(header) > 20:
                return "header ps is not a number"
            number = int(header)
    return sender, number


def senders_of(headers: Sequence[Headers], count: int) -> Senders:
    """Return what :func:`sender_of` gives for each of so many records."""
    return _alike(headers, count) or _one_by_one(headers or [None] * count)


def _alike(headers: Sequence[Headers], count: int) -> Senders | None:
    """Return the senders of records whose headers all have the same names in the same order, else None."""
    present = [pairs for pairs in headers if pairs]
    if not present or len(present) < count or len(set(map(len, present))) > 1:
        return None
    width = len(present[0])
    pairs = list(chain.from_iterable(present))
    names, values = list(map(itemgetter(0), pairs)), list(map(itemgetter(1), pairs))
    order = names[:width]
    if names != order * count or order.count(_NUMBER) != 1 or order.count(_SHARD) > 1:
        return None
    number = _numbers(values[order.index(_NUMBER) :: width])
    if number is None:
        return None
    shards: list[bytes] = [b""]
    sender: Any = np.zeros(count, np.int64)
    if _SHARD in order:
        shard_ids = pa.array(values[order.index(_SHARD) :: width], pa.binary()).fill_null(b"").dictionary_encode()
        shards, sender = shard_ids.dictionary.to_pylist(), shard_ids.indices.to_numpy()
    return Senders(np.ones(count, bool), [shard.decode("latin-1") for shard in shards], sender, number)


def _numbers(texts: Sequence[bytes | None]) -> Any:
    """Return running numbers, None if one of them is not there, too long or no number."""
    digits_or_null = pa.array(texts, pa.binary())
    if digits_or_null.null_count or pc.max(pc.binary_length(digits_or_null)).as_py() > _DIGITS:
        return None
    try:
        digits = digits_or_null.cast(pa.string())
        return digits.cast(pa.int64()).to_numpy() if pc.all(pc.ascii_is_decimal(digits)).as_py() else None
    except pa.ArrowInvalid:
        return None


def _one_by_one(headers: Sequence[Headers]) -> Senders:
    known: list[bool] = []
    names: dict[str, int] = {}
    sender: list[int] = []
    numbers: list[int] = []
    for result in map(sender_of, headers):
        known.append(isinstance(result, tuple))
        name, number = result if isinstance(result, tuple) else ("", None)
        sender.append(names.setdefault(name, len(names)))
        numbers.append(-1 if number is None or number >= 10**_DIGITS else number)
    return Senders(np.array(known, bool), list(names), np.array(sender, np.int64), np.array(numbers, np.int64))
