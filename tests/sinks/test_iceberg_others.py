# SPDX-License-Identifier: Apache-2.0
"""Change tables of a catalog between two batches as others do, and see whether it counts as their change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.table import Table
from pyiceberg.types import IntegerType

from airflow_provider_cdc.core.errors import SinkError, UnavailableError
from spark_jobs.sinks.commits import Owner
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.iceberg.sink import IcebergSink, open_sink
from spark_jobs.sinks.iceberg.table import IcebergTable
from spark_jobs.sinks.ownership import demand_target
from tests.sinks.actions import APP, columns_of, commit, rows
from tests.sinks.kinds import options_of

OURS = Owner("cdc/tests/")
COLUMNS = columns_of(rows().schema, "id")


class Ours:
    """A table of ours in a catalog, and what somebody else does to it."""

    def __init__(self, folder: Path) -> None:
        self.sink: IcebergSink = open_sink(options_of("iceberg", folder))
        self.location, self.seq = str(folder / "db" / "t"), 0
        self.do("create", rows((1, "a"), (2, "b")))
        self.do("append", rows((3, "c")))

    def do(self, verb: str, some: pa.Table, *gone: int, target: IcebergTable | None = None) -> None:
        self.seq += 1
        deletes = pa.table({"id": pa.array(gone, pa.int64())})
        action = Action(verb, commit(self.seq), some, deletes, ["id"], columns=COLUMNS)  # type: ignore[arg-type]
        self.sink.task_writer().commit(target or self.open(), action)

    def open(self) -> IcebergTable:
        return self.sink.open(self.location)

    @property
    def table(self) -> Table:
        return self.open().table

    def guard(self, expected: int) -> None:
        """Look as a batch does before it changes the table."""
        target = self.open()
        done = target.applied(APP) is not None
        demand_target(target, APP, has_own_commit=done, expected=expected, rebuilds=False, where={})


@pytest.fixture
def ours(tmp_path: Path) -> Ours:
    return Ours(tmp_path)


def _append(table: Table) -> None:
    table.append(pa.table({"id": pa.array([9], pa.int64()), "v": ["theirs"]}))


def _delete(table: Table) -> None:
    table.delete("id = 1")


def _add_column(table: Table) -> None:
    table.update_schema().add_column("theirs", IntegerType()).commit()


def _rename_column(table: Table) -> None:
    table.update_schema().rename_column("v", "w").commit()


def _roll_back(table: Table) -> None:
    first = next(iter(table.history())).snapshot_id
    table.manage_snapshots().rollback_to_snapshot(first).commit()


@pytest.mark.parametrize("deed", [_append, _delete, _add_column, _rename_column, _roll_back])
def test_a_change_of_rows_or_columns_by_others_is_refused(ours: Ours, deed: Callable[[Table], None]) -> None:
    expected = ours.open().version
    assert expected is not None
    deed(ours.table)
    with pytest.raises(SinkError, match=r"sink\.changed_by_other"):
        ours.guard(expected)


def _set_properties(table: Table) -> None:
    table.transaction().set_properties({"owner": "me"}).commit_transaction()


def _tag_and_branch(table: Table) -> None:
    newest = table.current_snapshot()
    assert newest is not None
    table.manage_snapshots().create_tag(newest.snapshot_id, "audit").create_branch(newest.snapshot_id, "dev").commit()
    table.refresh()
    table.append(pa.table({"id": pa.array([9], pa.int64()), "v": ["on a branch"]}), branch="dev")


def _expire(table: Table) -> None:
    old = [one.snapshot_id for one in table.snapshots()[:-1]]
    table.maintenance.expire_snapshots().by_ids(old).commit()


@pytest.mark.parametrize("deed", [_set_properties, _tag_and_branch, _expire])
def test_what_leaves_rows_and_columns_alone_is_nobodys_change(ours: Ours, deed: Callable[[Table], None]) -> None:
    expected = ours.open().version
    assert expected is not None
    deed(ours.table)
    ours.guard(expected)
    assert ours.open().last_maintained(expected) == ours.open().version
    ours.do("merge", rows((1, "A")), 2)
    table = ours.open()
    assert sorted(row["v"] for row in table.rows().to_pylist()) == ["A", "c"]
    assert (table.applied(APP), table.foreign_commit(expected, OURS)) == (3, None)


def test_a_table_that_was_dropped_and_made_again_by_others_is_not_ours(ours: Ours) -> None:
    before, catalog = ours.open(), ours.open().catalog
    catalog.drop_table(before.identifier)
    assert not ours.open().exists
    with pytest.raises(UnavailableError, match=r"sink\.commit_conflict"):
        ours.do("append", rows((4, "d")), target=before)
    table = catalog.create_table(before.identifier, before.table.schema())
    _append(table)
    with pytest.raises(SinkError, match=r"sink\.not_ours"):
        ours.do("append", rows((4, "d")))


def test_a_commit_without_rows_moves_the_mark_alone(ours: Ours) -> None:
    files = [file.path for file in ours.open().files()]
    ours.do("merge", rows())
    table = ours.open()
    assert ([file.path for file in table.files()], table.applied(APP), table.version) == (files, 3, 3)


def test_a_table_with_deletes_by_value_is_refused_until_it_is_compacted(
    ours: Ours, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours.do("append", rows(*((key, "x") for key in range(10, 30))))
    ours.do("merge", rows((10, "X")))
    assert any(file.deletes for file in ours.open().files())
    monkeypatch.setattr(DataFile, "content", property(lambda file: DataFileContent.EQUALITY_DELETES))
    with pytest.raises(SinkError, match="compact the table"):
        ours.open().files()


def test_a_table_in_another_format_version_or_with_partitions_is_refused(ours: Ours, tmp_path: Path) -> None:
    catalog = ours.open().catalog
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    catalog.create_table(("db", "v1"), schema, properties={"format-version": "1"})
    with pytest.raises(SinkError, match="format version 1"):
        ours.sink.open(str(tmp_path / "db" / "v1"))
    made = catalog.create_table(("db", "parts"), schema)
    made.update_spec().add_identity("v").commit()
    with pytest.raises(SinkError, match="partitions"):
        ours.sink.open(str(tmp_path / "db" / "parts"))


@pytest.mark.parametrize("name", ["Orders", "my table", "a.b", "order-items", "заказы", "a'b\"c", "1a", "t" * 200])
def test_names_come_back_as_they_are(name: str, ours: Ours, tmp_path: Path) -> None:
    from tests.locations import table_place

    location = f"{tmp_path}/{table_place('shop', name)}"
    action = Action("create", commit(1), rows((1, "a")), columns=COLUMNS)
    ours.sink.task_writer().commit(ours.sink.open(location), action)
    stored = ours.sink.open(location)
    assert (stored.identifier, stored.rows().num_rows) == (("shop", name), 1)
