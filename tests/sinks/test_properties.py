# SPDX-License-Identifier: Apache-2.0
"""Properties of table: written with a commit, kept as the rule states them, and taken back if they are ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.config.table_layout import TableLayout
from spark_jobs.sinks.contract import Verb
from spark_jobs.sinks.iceberg.table import IcebergTable
from tests.sinks.actions import APP, rows
from tests.sinks.kinds import type_of
from tests.sinks.laid_out import LaidOutTable

# of each kind two properties of others' that its readers know
NAMES = {
    "delta": ("delta.logRetentionDuration", "team"),
    "delta merge-on-read": ("delta.logRetentionDuration", "team"),
    "iceberg": ("write.metadata.previous-versions-max", "comment"),
    "iceberg rest": ("write.metadata.previous-versions-max", "comment"),
}
VALUES = {
    "delta": ("interval 60 days", "sales", "interval 90 days"),
    "iceberg": ("30", "sales", "90"),
}


@pytest.fixture(params=NAMES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _of(table: LaidOutTable) -> dict[str, str | None]:
    """Return the properties as another reader of the format sees them."""
    stored = table.open()
    if isinstance(stored, IcebergTable):
        return dict(stored.catalog.load_table(stored.identifier).properties)
    return dict(DeltaTable(table.location).metadata().configuration)


def _do(table: LaidOutTable, verb: Verb, some: pa.Table, properties: Mapping[str, str]) -> None:
    """Commit rows to a table whose rule states properties."""
    table.do(verb, some, TableLayout(properties))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("verb", ["append", "merge", "overwrite"])
def test_a_changed_rule_is_carried_out_with_the_next_commit(kind: str, verb: Verb, tmp_path: Path) -> None:
    table, (known, free), values = LaidOutTable(kind, tmp_path), NAMES[kind], VALUES[type_of(kind)]
    _do(table, "create", rows((1, "a")), {known: values[0]})
    plain = _of(table)
    assert plain[known] == values[0]
    _do(table, verb, rows((2, "b")), {known: values[2], free: values[1]})
    assert {name: _of(table).get(name) for name in (known, free)} == {known: values[2], free: values[1]}
    before = table.open().version
    _do(table, verb, rows((3, "c")), {})
    assert free not in _of(table)
    assert _of(table).get(known) == ("20" if kind.startswith("iceberg") else None)  # as of a new table of ours
    assert "cdc.properties" not in _of(table)
    assert before is not None
    assert table.open().version == before + 1
    assert table.open().applied(APP) == 3
    assert table.rows()[-1] == {"id": 3, "v": "c"}


def test_maintenance_carries_it_out_and_writes_nothing_else(kind: str, tmp_path: Path) -> None:
    table, (known, free), values = LaidOutTable(kind, tmp_path), NAMES[kind], VALUES[type_of(kind)]
    _do(table, "create", rows((1, "a")), {free: "a"})
    before, files = table.open(), set(tmp_path.rglob("*.parquet"))
    for properties in ({known: values[0]}, {known: values[0]}, {}):
        table.maintain(TableLayout(properties))
        assert (_of(table).get(known) == values[0], free in _of(table)) == (bool(properties), False)
    after = table.open()
    assert before.version is not None
    assert (after.foreign_commit(before.version), after.last_maintained(before.version)) == (None, after.version)
    assert (set(tmp_path.rglob("*.parquet")), after.applied(APP)) == (files, 1)
    assert after.rows().equals(before.rows())


def test_what_somebody_else_set_stays(kind: str, tmp_path: Path) -> None:
    """Let others set a property that the rule states later, change one of the rule, and set one of their own."""
    table, (known, free), values = LaidOutTable(kind, tmp_path), NAMES[kind], VALUES[type_of(kind)]
    _do(table, "create", rows((1, "a")), {known: values[0]})

    def set_by_others(properties: dict[str, str]) -> None:
        stored = table.open()
        if isinstance(stored, IcebergTable):
            stored.table.transaction().set_properties(properties).commit_transaction()
        else:
            DeltaTable(table.location).alter.set_table_properties(properties, raise_if_not_exists=False)

    set_by_others({free: "theirs", "x": "y"})
    _do(table, "append", rows((2, "b")), {known: values[0], free: "theirs"})
    set_by_others({known: values[2]})
    _do(table, "append", rows((3, "c")), {})
    expected = {known: values[2], free: "theirs", "x": "y"}
    assert {name: _of(table).get(name) for name in expected} == expected
    _do(table, "append", rows((4, "d")), {known: values[0]})
    assert _of(table)[known] == values[0]
