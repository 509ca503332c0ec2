# SPDX-License-Identifier: Apache-2.0
"""Tables of every kind, written in each way."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.spark_writer import SparkWriter
from tests.sinks.tables import (
    KINDS,
    OTHER_WAYS,
    WAYS,
    Tables,
    commit_shared,
    here,
    in_parts,
    tables_of,
    whole_in_pieces,
)


@pytest.fixture(params=KINDS)
def kind_of_tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    """Return tables that tasks write."""
    return tables_of(request.param, tmp_path)


@pytest.fixture(
    params=[*WAYS, *(pytest.param(way, marks=pytest.mark.every(3)) for way in OTHER_WAYS)],
    ids=[f"{kind} by {way}" for kind, way in (*WAYS, *OTHER_WAYS)],
)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    """Return tables that are written in each way."""
    kind, way = request.param
    tables = tables_of(kind, tmp_path)
    if way.startswith("spark"):
        storage = Storage(str(tmp_path / "stage"))
        committer = tables.sink.committer(request.getfixturevalue("session"), storage, here)
        assert isinstance(committer, SparkWriter)
        tables.spark = committer.commit_staged
    if way.startswith("tasks"):
        tables.spark = partial(commit_shared, tables, tmp_path)
    tables.change = whole_in_pieces if "pieces" in way else in_parts if "parts" in way else tables.change
    return tables
