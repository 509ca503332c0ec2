# SPDX-License-Identifier: Apache-2.0
"""The same changes into tables with rules, and into tables of each mode, next to a plain mirror."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.bench.contestants import Inline
from tests.bench.data import differences


def _stating(**rule: Any) -> Mapping[str, Any]:
    """Return keys of a pipeline with a rule for all tables."""
    return {"tables": {"*.*": rule}, "mask_connection": "bench_salt"}


class Moded(Inline):
    """A pipeline whose tables have a rule; this one none."""

    name = "mirror"

    def environment(self) -> dict[str, str]:
        salt = json.dumps({"conn_type": "generic", "password": "a pinch"})
        return {**super().environment(), "AIRFLOW_CONN_BENCH_SALT": salt}

    def left(self, rows: pa.Table) -> pa.Table:
        """Return the rows that a mirror has, without columns that have other values."""
        return rows

    def wrong(self, expected: pa.Table, name: str) -> str:
        """Say what is wrong with a table, empty if nothing is."""
        from deltalake import DeltaTable, QueryBuilder

        read = QueryBuilder().register("t", DeltaTable(str(self.table(name)))).execute("SELECT * FROM t").read_all()
        stored = pa.table(read)
        views = [field.type == pa.string_view() for field in stored.schema]  # Arrow has no aggregates of them
        plain = [one.with_type(pa.string()) if view else one for one, view in zip(stored.schema, views, strict=True)]
        left = self.left(stored.cast(pa.schema(plain)))
        columns = [field.name for field in expected.schema if field.name in left.column_names]
        return differences(expected.select(columns), left.select(columns))


class WithRules(Moded):
    """A filter that all rows pass, two masks and a computed column."""

    name = "with rules"
    settings = _stating(
        filter="id >= 0",
        columns={"mask": {"email": "hash", "street": "truncate(3)"}, "add": {"label": "CONCAT(customer, ' ', id)"}},
    )

    def left(self, rows: pa.Table) -> pa.Table:
        return rows.drop_columns(["email", "street"])


class SoftDelete(Moded):
    """Deleted rows stay, flagged."""

    name = "soft_delete"
    settings = _stating(mode="soft_delete")

    def left(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pc.invert(rows["_cdc_deleted"]))


class History(Moded):
    """Each version of a row."""

    name = "history"
    settings = _stating(mode="history")

    def left(self, rows: pa.Table) -> pa.Table:
        return rows.filter(rows["_cdc_current"])


class Append(Moded):
    """Each change; of each key the newest one counts."""

    name = "append"
    settings = _stating(mode="append")

    def left(self, rows: pa.Table) -> pa.Table:
        newest = rows.group_by("id").aggregate([("_cdc_position", "max")])
        newest = newest.rename_columns({"_cdc_position_max": "_cdc_position"})
        rows = rows.join(newest, ["id", "_cdc_position"], join_type="inner")
        return rows.filter(pc.not_equal(rows["_cdc_op"], "delete"))


MODED: tuple[type[Moded], ...] = (Moded, WithRules, Append, SoftDelete, History)


def check(truth: Mapping[str, pa.Table]) -> Callable[[Any], str]:
    """Return what compares the tables of these contestants with what a mirror has."""
    return lambda who: next((text for name, rows in truth.items() if (text := who.wrong(rows, name))), "")
