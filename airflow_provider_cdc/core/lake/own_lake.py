# SPDX-License-Identifier: Apache-2.0
"""Recognise a pipeline's own lake: a copy of it, or another one at its root, is refused."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.lake.roots import is_same_root
from airflow_provider_cdc.core.plain_data import Document

_HINT = (
    "to go on in this lake: airflow-cdc adopt PIPELINE.yaml; to leave it alone: correct sink.root, or give the "
    "pipeline another name and an empty root. Nothing was written"
)


@dataclass(frozen=True, slots=True)
class LakeIdentity(Document):
    """State which lake a pipeline has: made with its first batch, kept in the lake and in the ledger.

    :param root: at which it was made or adopted, in the canonical spelling.
    :param resolved: the same without symlinks, as the machine saw it.
    """

    id: str
    pipeline: str
    root: str
    resolved: str


def demand_same_lake(there: LakeIdentity, known: LakeIdentity | None, root: str, pipeline: str) -> None:
    """Refuse a lake that was made at another root, or that is not the one that the ledger remembers.

    :param there: what the lake at the root says of itself.
    :param known: the lake that the ledger remembers, None for none.
    :raises SinkError: ``lake.moved``, ``lake.other``.
    """
    if there.pipeline != pipeline:  # in a store whose names have no case
        raise other_lake(root, pipeline)
    if not any(is_same_root(each, root) for each in (there.root, there.resolved)):
        raise moved(there.root, root, pipeline)
    if known is not None and known.id != there.id:
        raise other_lake(root, pipeline)


def moved(made_at: str, root: str, pipeline: str) -> SinkError:
    """Return the error of a lake that was made at another root."""
    text = f"the lake was made at {made_at}: it was copied or moved, or is mounted elsewhere"
    return SinkError("lake.moved", text, where={"root": root, "pipeline": pipeline}, hint=_HINT)


def other_lake(root: str, pipeline: str) -> SinkError:
    """Return the error of a lake that the ledger does not remember."""
    text = "the lake at the root is not the one that the ledger remembers"
    return SinkError("lake.other", text, where={"root": root, "pipeline": pipeline}, hint=_HINT)
