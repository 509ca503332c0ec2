# SPDX-License-Identifier: Apache-2.0
"""Comments of table and columns: a commit writes those that the source states; of others, what others wrote stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.noop import NoopCatalog

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.model.table_comments import TableComments
from airflow_provider_cdc.sinks.delta import reader
from spark_jobs.sinks.contract import Verb
from spark_jobs.sinks.iceberg.comments import holdable
from spark_jobs.sinks.iceberg.table import IcebergTable
from tests.sinks.actions import APP, columns_of, rows
from tests.sinks.kinds import OPTIONS
from tests.sinks.laid_out import LaidOutTable

HOSTILE = "'; DROP TABLE t; -- \" ` ${x} {{ y }} \x00\x01\x1b[31m\n\t\\ 5 ü 😀 " + "x" * 4000


@pytest.fixture(params=[kind for kind in OPTIONS if kind != "parquet folder"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _of(table: LaidOutTable) -> tuple[str, dict[str, str]]:
    """Return what other readers of the format see."""
    stored = table.open()
    if isinstance(stored, IcebergTable):
        loaded = stored.catalog.load_table(stored.identifier)
        said = {field.name: field.doc for field in loaded.schema().fields if field.doc}
        return loaded.properties.get("comment", ""), said
    described = reader().open(table.location, {})
    return described.comment(), {one.name: one.comment for one in described.columns() if one.comment}


def _do(
    table: LaidOutTable,
    verb: Verb,
    some: pa.Table,
    comment: str | None,
    said: Mapping[str, str],
    layout: TableLayout | None = None,
    columns: TargetSchema | None = None,
) -> None:
    columns = replace(columns or columns_of(some.schema, "id"), comments=TableComments(comment, said))
    table.do(verb, some, layout or TableLayout(), columns=columns)


@pytest.mark.sampled
@pytest.mark.parametrize("verb", ["append", "merge", "overwrite"])
def test_comments_come_change_and_go_with_the_next_commit(kind: str, verb: Verb, tmp_path: Path) -> None:
    table = LaidOutTable(kind, tmp_path)
    _do(table, "create", rows((1, "a")), "customers", {"id": "number", "v": ""})
    assert _of(table) == ("customers", {"id": "number"})
    before = table.open()
    _do(table, verb, rows((2, "b")), HOSTILE, {"id": "", "v": HOSTILE})
    assert _of(table) == (HOSTILE, {"v": HOSTILE})
    after = table.open()
    assert (after.version, after.applied(APP)) == (before.version + 1, 2)
    files = set(tmp_path.rglob("*.parquet"))
    _do(table, verb, rows((3, "c")), HOSTILE, {"id": "", "v": HOSTILE})
    assert _of(table) == (HOSTILE, {"v": HOSTILE})
    assert files <= set(tmp_path.rglob("*.parquet")) or kind.startswith("iceberg rest")
    _do(table, verb, rows((4, "d")), "", {"id": "", "v": ""})
    assert _of(table) == ("", {})
    assert table.rows()[-1] == {"id": 4, "v": "d"}
    table.maintain(TableLayout(), file_bytes=1 << 20)
    assert table.rows()[-1] == {"id": 4, "v": "d"}


def test_what_others_wrote_stays_where_the_source_says_nothing(kind: str, tmp_path: Path) -> None:
    table = LaidOutTable(kind, tmp_path)
    _do(table, "create", rows((1, "a")), None, {})
    stored = table.open()
    if isinstance(stored, IcebergTable):
        loaded = stored.catalog.load_table(stored.identifier)
        loaded.update_schema().update_column("v", doc="theirs").commit()
        loaded.transaction().set_properties({"comment": "theirs"}).commit_transaction()
    else:
        alter = DeltaTable(table.location).alter
        alter.set_column_metadata("v", {"comment": "theirs"})
        alter.set_table_description("theirs")
    verbs: tuple[Verb, ...] = ("append", "merge", "overwrite")
    for number, verb in enumerate(verbs, 2):
        _do(table, verb, rows((number, "b")), None, {"id": "ours"})
        assert _of(table) == ("theirs", {"id": "ours", "v": "theirs"})
    table.maintain(TableLayout())
    assert _of(table) == ("theirs", {"id": "ours", "v": "theirs"})


def test_a_column_has_its_comment_under_another_name_and_a_new_one_has_its_own(kind: str, tmp_path: Path) -> None:
    table = LaidOutTable(kind, tmp_path)
    _do(table, "create", rows((1, "a")), "t", {"v": "value"})
    wider = pa.table({"id": pa.array([2], pa.int64()), "n": ["x"], "w": ["b"]})
    columns = TargetSchema((1, 3, 2), wider.schema, (1,))
    _do(table, "overwrite", wider, "t", {"w": "value", "n": "new"}, columns=columns)
    assert _of(table) == ("t", {"n": "new", "w": "value"})


def test_the_comment_that_a_rule_states_counts(tmp_path: Path) -> None:
    table, rule = LaidOutTable("iceberg", tmp_path), TableLayout({"comment": "of the rule"})
    _do(table, "create", rows((1, "a")), "of the source", {}, rule)
    assert _of(table)[0] == "of the rule"
    _do(table, "append", rows((2, "b")), "of the source", {})
    assert _of(table)[0] == "of the source"


def test_glue_gets_comments_that_it_takes(tmp_path: Path) -> None:
    glue = NoopCatalog("glue", type="glue")
    columns = replace(columns_of(rows().schema, "id"), comments=TableComments("t", {"v": HOSTILE}))
    (said,) = holdable(columns, glue).comments.columns.values()
    assert len(said) == 255
    assert said.startswith("'; DROP TABLE t; -- \" ` ${x} {{ y }}   ")
    assert not set(said) & {"\n", "\x00", "\x01", "\x1b"}
