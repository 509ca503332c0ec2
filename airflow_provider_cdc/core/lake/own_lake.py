# SPDX-License-Identifier: Apache-2.0
"""Recognise a pipeline's own lake: a copy of it, or another one at its root, is refused."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.lake.roots import is_same_root
from airflow_provider_cdc.core.plain_data import Document

_HINT = (
    "to go on in this lake: airflow-cdc adopt PIPELINE.yaml; to leave it alone: correct lake.root or sink.root, or "
    "give the pipeline another name and an empty root. Nothing was written"
)


@dataclass(frozen=True, slots=True)
class LakeIdentity(Document):
    """State which lake a pipeline has: made with its first batch, kept in the lake and in the ledger.

    :param root: at which it was made or adopted, in the canonical spelling.
    :param resolved: the same without symlinks, as the machine saw it.
    :param tables: root of its tables at that time.
    :param tables_resolved: the same without symlinks.
    """

    id: str
    pipeline: str
    root: str
    resolved: str
    tables: str
    tables_resolved: str


def demand_same_lake(there: LakeIdentity, known: LakeIdentity | None, root: str, tables: str, pipeline: str) -> None:
    """Refuse a lake that was made at another root, or that is not the one that the ledger remembers.

    :param there: what the lake at the root says of itself.
    :param known: the lake that the ledger remembers, None for none.
    :param tables: root of the tables.
    :raises SinkError: ``lake.moved``, ``lake.other``.
    """
    if there.pipeline != pipeline:  # in a store whose names have no case
        raise other_lake(root, pipeline)
    if not is_at(there, root, tables):
        raise moved(there, root, pipeline)
    if known is not None and known.id != there.id:
        raise other_lake(root, pipeline)


def is_at(lake: LakeIdentity, root: str, tables: str) -> bool:
    """Return whether a lake and its tables are where they were when it was made or adopted."""
    known = (root, (lake.root, lake.resolved)), (tables, (lake.tables, lake.tables_resolved))
    return all(any(is_same_root(each, present) for each in spellings) for present, spellings in known)


def moved(lake: LakeIdentity, root: str, pipeline: str) -> SinkError:
    """Return the error of a lake that was made at another root."""
    tables = "" if is_same_root(lake.root, lake.tables) else f", its tables at {lake.tables}"
    text = f"the lake was made at {lake.root}{tables}: it was copied or moved, or is mounted elsewhere"
    return SinkError("lake.moved", text, where={"root": root, "pipeline": pipeline}, hint=_HINT)


def other_lake(root: str, pipeline: str) -> SinkError:
    """Return the error of a lake that the ledger does not remember."""
    text = "the lake at the root is not the one that the ledger remembers"
    return SinkError("lake.other", text, where={"root": root, "pipeline": pipeline}, hint=_HINT)
