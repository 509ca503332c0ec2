# SPDX-License-Identifier: Apache-2.0
"""Read how many changes of each table transactions have, as their ends say."""

from __future__ import annotations

import msgspec
import pyarrow as pa

Commit = tuple[str, int, dict[str, int]]
"""Id of the transaction as its rows have it, first number of the positions behind it, changes by ``database.table``."""

MOST = 20_000
"""Ends of transactions in a batch, above which none of them is looked at: they go into documents."""


class _Collection(msgspec.Struct):
    data_collection: str
    event_count: int


_read = msgspec.json.Decoder(list[_Collection]).decode


def commits_of(batch: pa.RecordBatch) -> list[Commit]:
    """Return what the ends of transactions say; one that is written in another way says nothing.

    :param batch: changes of kind ``transaction``.
    """
    ids, texts = (batch.column(name).to_pylist() for name in ("transaction_id", "statement"))
    commits = []
    for name, text in zip(ids, texts, strict=True):
        number, _, lsn = (name or "").partition(":")
        if text is None or not lsn.isdecimal():
            continue
        try:
            counts = {item.data_collection: item.event_count for item in _read(text)}
        except msgspec.MsgspecError:
            continue
        if counts:
            commits.append((number, int(lsn), counts))
    return commits


def joined_commits(one: list[Commit] | None, other: list[Commit] | None) -> list[Commit] | None:
    """Return both, None where one is None or they are too many."""
    if one is None or other is None or len(one) + len(other) > MOST:
        return None
    return [*one, *other]
