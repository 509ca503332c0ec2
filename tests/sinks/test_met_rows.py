# SPDX-License-Identifier: Apache-2.0
"""Check what a merge says of the stored rows that it replaces and removes, whoever made it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.errors import SinkError
from spark_jobs.sinks.contract import Action
from tests.sinks.actions import APP, columns_of, commit, rows
from tests.sinks.tables import Tables


@dataclass
class _Met:
    """Takes the rows that a merge lets go."""

    whole: bool
    refuses: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    ended: int = 0

    def meet(self, rows: pa.Table) -> None:
        self.rows += rows.to_pylist()

    def demand_agreement(self) -> None:
        self.ended += 1
        if self.refuses:
            raise SinkError("apply.contradicted", "it is", where={}, hint="none")


@pytest.mark.parametrize("whole", [True, False])
def test_a_merge_shows_each_stored_row_that_goes_once(tables: Tables, whole: bool) -> None:
    if tables.spark is not None:
        pytest.skip("a merge beyond one task does not say which rows it found")
    tables.create(rows(*((n, f"v{n}") for n in range(10))))
    tables.do(
        Action(
            "merge", commit(2), rows((3, "C"), (20, "d")), pa.table({"id": pa.array([2, 9, 99], pa.int64())}), ["id"]
        )
    )
    met, gone = _Met(whole), pa.table({"id": pa.array([2, 3, 5], pa.int64())})
    tables.do(Action("merge", commit(3), rows((7, "G"), (30, "e")), gone, ["id"], met=met))
    assert sorted(row["id"] for row in met.rows) == [3, 5, 7]
    assert met.ended == 1
    shown = {row["id"]: row["v"] for row in met.rows if "v" in row}
    assert not whole or shown == {3: "C", 5: "v5", 7: "v7"}
    assert not shown or shown == {3: "C", 5: "v5", 7: "v7"}


def test_rows_that_contradict_prevent_the_commit(kind_of_tables: Tables) -> None:
    tables, met = kind_of_tables, _Met(whole=False, refuses=True)
    tables.create(rows((1, "a")))
    action = Action("merge", commit(2), rows((1, "b")), pa.table({"id": pa.array([], pa.int64())}), ["id"], met=met)
    action.columns = columns_of(action.rows.schema, "id")
    with pytest.raises(SinkError, match=r"apply\.contradicted"):
        tables.sink.task_writer().commit(tables.open(), action)
    assert (tables.rows(), tables.open().applied(APP)) == ([{"id": 1, "v": "a"}], 1)
