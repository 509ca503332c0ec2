# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables whose catalog is a database of several machines, and whose files are in an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.config import IcebergSink
from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from airflow_provider_cdc.core.errors import UnavailableError
from airflow_provider_cdc.sinks.iceberg import reader
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.iceberg.sink import open_sink
from tests.services.postgres import Postgres
from tests.services.rest_catalog import RestCatalog
from tests.services.s3 import S3
from tests.sinks.actions import APP, columns_of, commit, rows

Where = Callable[[], tuple[dict[str, str], str]]


@pytest.fixture
def in_postgres(postgres: Postgres, tmp_path: Path) -> tuple[dict[str, str], str]:
    """Return options of a catalog in PostgreSQL, and the location of a table on this machine."""
    uri = postgres.url.replace("postgresql://", "postgresql+psycopg://")
    options = {"iceberg.type": "sql", "iceberg.uri": uri, "namespace": f"n{abs(hash(tmp_path))}"}
    return options, str(tmp_path / "db" / "t")


@pytest.fixture
def on_s3(s3: S3, tmp_path: Path) -> tuple[dict[str, str], str]:
    """Return options of a catalog in a file, and the location of a table on S3."""
    root = s3.create_bucket(f"iceberg-{abs(hash(tmp_path))}")
    return {**s3.storage_options, **IcebergSink(str(tmp_path)).options()}, f"{root}/wh/db/t"


@pytest.fixture
def by_rest(s3: S3, tmp_path: Path) -> Iterator[tuple[dict[str, str], str]]:
    """Return options of a REST catalog that reads and writes S3 itself, and the location of a table there."""
    root = s3.create_bucket(f"rest-{abs(hash(tmp_path))}")
    catalog = RestCatalog(s3)
    yield {**s3.storage_options, **catalog.options(), "namespace": f"n{abs(hash(tmp_path))}"}, f"{root}/wh/db/t"
    catalog.stop()


@pytest.fixture
def by_glue(s3: S3, tmp_path: Path) -> tuple[dict[str, str], str]:
    """Return options of Glue, as moto's server has it, and the location of a table on S3."""
    name = f"glue{abs(hash(tmp_path))}"
    glue = {
        "type": "glue",
        "glue.endpoint": s3.endpoint,
        "glue.region": s3.region,
        "glue.access-key-id": s3.access_key,
        "glue.secret-access-key": s3.secret_key,
    }
    options = {f"iceberg.{key}": value for key, value in glue.items()}
    return {**s3.storage_options, **options}, f"{s3.create_bucket(name)}/wh/{name}/t"


@pytest.mark.every(2)
@pytest.mark.parametrize("where", ["in_postgres", "on_s3", "by_rest", "by_glue"])
def test_a_table_is_made_merged_changed_and_maintained(where: str, request: pytest.FixtureRequest) -> None:
    options, location = request.getfixturevalue(where)
    sink = open_sink(options)
    old = columns_of(rows().schema, "id")
    writer = sink.task_writer()
    writer.commit(sink.open(location), Action("create", commit(1), rows(*((n, "a") for n in range(100))), columns=old))
    before = sink.open(location)
    gone = pa.table({"id": pa.array([7], pa.int64())})
    writer.commit(before, Action("merge", commit(2), rows((1, "A"), (200, "n")), gone, ["id"], columns=old))
    with pytest.raises(UnavailableError, match=r"sink\.commit_conflict"):
        writer.commit(before, Action("merge", commit(2), rows((1, "B")), gone, ["id"], columns=old))
    renamed = pa.table({"w": ["B"], "key": pa.array([2], pa.int64())})
    new = columns_of(renamed.schema)
    new = type(new)((2, 1), renamed.schema, (1,))  # the same columns in another order, under other names
    assert writer.evolves(sink.open(location), old, new, merges=True)
    none = pa.table({"key": pa.array([], pa.int64())})
    writer.commit(sink.open(location), Action("merge", commit(3), renamed, none, ["key"], columns=new))
    table = sink.open(location)
    values = {row["key"]: row["w"] for row in table.rows().to_pylist()}
    assert (len(values), values[1], values[2], values[200], 7 in values) == (100, "A", "B", "n", False)
    assert (table.schema.names, table.applied(APP), len(table.files())) == (["w", "key"], 3, 3)
    report = TableMaintenance("db", "t")
    sink.maintain(table, report, Maintenance(1 << 20, keep_hours=0), "key")
    table = sink.open(location)
    assert {row["key"]: row["w"] for row in table.rows().to_pylist()} == values
    assert (len(table.files()), table.applied(APP), report.compacted) == (1, 3, 3)
    assert report.vacuumed > 0
    stored = reader().open(location, options)
    assert (stored.count(), stored.has_all_files()) == (100, True)
