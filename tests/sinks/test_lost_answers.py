# SPDX-License-Identifier: Apache-2.0
"""A catalog answers a commit with an error, or its answer is lost: the commit is made once or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy.exc import OperationalError

from airflow_provider_cdc.core.errors import SinkError, UnavailableError
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.iceberg.sink import IcebergSink, open_sink
from tests.services.rest_catalog import LosingProxy, shared_catalog
from tests.sinks.actions import APP, columns_of, commit, rows
from tests.sinks.kinds import options_of

STATUSES = (409, 500, 502, 503, 504)
KEYS = pa.table({"id": pa.array([2], pa.int64())})


@pytest.fixture
def proxy() -> Iterator[LosingProxy]:
    proxy = LosingProxy(shared_catalog())
    yield proxy
    proxy.stop()


@pytest.fixture
def through(proxy: LosingProxy, tmp_path: Path) -> IcebergSink:
    """Return a sink whose catalog is behind the proxy."""
    return open_sink({**options_of("iceberg rest", tmp_path), "iceberg.uri": proxy.uri})


def create(sink: IcebergSink, location: str) -> None:
    action = Action("create", commit(1), rows((1, "a"), (2, "b")), columns=columns_of(rows().schema, "id"))
    sink.task_writer().commit(sink.open(location), action)


def merge(sink: IcebergSink, location: str) -> int:
    action = Action("merge", commit(2), rows((1, "A")), KEYS, ["id"], columns=columns_of(rows().schema, "id"))
    return sink.task_writer().commit(sink.open(location), action)


def test_other_servers_than_the_fixture_get_what_they_ask_for(
    proxy: LosingProxy, through: IcebergSink, tmp_path: Path
) -> None:
    # Nessie 0.99 refuses a schema without its last column's number, which pyiceberg leaves out, and properties twice
    location = str(tmp_path / "db" / "t")
    create(through, location)
    wide = pa.table({"id": pa.array([3], pa.int64()), "v": ["c"], "w": ["new"]})
    writer, old, new = through.task_writer(), columns_of(rows().schema, "id"), columns_of(wide.schema, "id")
    assert writer.evolves(through.open(location), old, new, merges=True)
    writer.commit(through.open(location), Action("merge", commit(2), wide, KEYS, ["id"], columns=new))
    schemas = [one for asked in proxy.asked for one in asked["updates"] if one["action"] == "add-schema"]
    assert [one["last-column-id"] for one in schemas] == [2, 3]
    for asked in proxy.asked:
        assert [one["action"] for one in asked["updates"]].count("set-properties") == 1
    stored = through.open(location).rows().sort_by("id").to_pylist()
    assert stored == [{"id": 1, "v": "a", "w": None}, {"id": 3, "v": "c", "w": "new"}]


def test_a_commit_that_the_catalog_does_not_understand_is_not_tried_again(
    proxy: LosingProxy, through: IcebergSink, tmp_path: Path
) -> None:
    location = str(tmp_path / "db" / "t")
    create(through, location)
    proxy.lose("before", 400)
    with pytest.raises(SinkError, match=r"sink\.refused"):
        merge(through, location)
    assert through.open(location).applied(APP) == 1
    assert merge(through, location) == 2


@pytest.mark.parametrize("status", STATUSES)
def test_a_commit_that_the_catalog_made_counts_whatever_it_answered(
    status: int, proxy: LosingProxy, through: IcebergSink, tmp_path: Path
) -> None:
    location = str(tmp_path / "db" / "t")
    create(through, location)
    proxy.lose("after", status)
    assert merge(through, location) == 2
    table = through.open(location)
    assert (table.version, table.applied(APP), table.rows().to_pylist()) == (2, 2, [{"id": 1, "v": "A"}])


@pytest.mark.parametrize("status", STATUSES)
def test_a_commit_that_the_catalog_did_not_make_is_an_error_and_the_next_try_works(
    status: int, proxy: LosingProxy, through: IcebergSink, tmp_path: Path
) -> None:
    location = str(tmp_path / "db" / "t")
    create(through, location)
    proxy.lose("before", status)
    with pytest.raises(UnavailableError):
        merge(through, location)
    assert through.open(location).rows().num_rows == 2
    assert merge(through, location) == 2
    assert through.open(location).rows().to_pylist() == [{"id": 1, "v": "A"}]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_table_is_made_once_where_the_answer_is_lost(
    when: str, proxy: LosingProxy, through: IcebergSink, tmp_path: Path
) -> None:
    location = str(tmp_path / "db" / "t")
    proxy.lose(when, 503)
    if when == "before":
        with pytest.raises(UnavailableError):
            create(through, location)
        assert not through.open(location).exists
        create(through, location)
    else:
        create(through, location)
    assert through.open(location).rows().num_rows == 2


@pytest.mark.parametrize("made", [False, True])
def test_a_database_that_goes_away_while_it_commits(
    made: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, location = open_sink(options_of("iceberg", tmp_path)), str(tmp_path / "db" / "t")
    create(sink, location)
    real: Callable[..., Any] = SqlCatalog.commit_table

    def fail(*arguments: Any) -> None:
        if made:
            real(*arguments)
        raise OperationalError("UPDATE", {}, Exception("server closed the connection"))

    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "commit_table", fail)
        if made:
            assert merge(sink, location) == 2
        else:
            with pytest.raises(UnavailableError):
                merge(sink, location)
    assert sink.open(location).rows().num_rows == (1 if made else 2)
