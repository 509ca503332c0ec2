# SPDX-License-Identifier: Apache-2.0
"""The modes of tables: what changes do to each, as the page shows, and that they agree with each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.documents import Rebuild
from airflow_provider_cdc.core.model.schema import TableSchema
from spark_jobs.driver.run_batch import sync
from tests.captures.shaped_truth import of_source
from tests.histories.cases import case_of
from tests.histories.log import Log
from tests.histories.moded_table import BEGIN, OWN_COLUMNS, gone, put, snapshot, synced, truncated
from tests.histories.run import Case, Replay, inline
from tests.histories.scripted import Script
from tests.histories.source import Name

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "modes.md"
MODES = tuple(OWN_COLUMNS)  # in the order of the page


class InOneMode(Replay):
    """A history whose tables have one mode."""

    mode = "mirror"

    def _rules(self) -> dict[str, Any]:
        rules = super()._rules()
        of_mode = {"mode": self.mode, **({"before": True} if self.mode == "append" else {})}
        every = {"*.*": {**rules.pop("*.*", {}), **of_mode}}
        return every | {name: {**rule, **of_mode} for name, rule in rules.items()}

    def tables(self) -> dict[Name, tuple[pa.Table, tuple[str, ...]]]:
        """Return rows and key of the tables that are as they should be."""
        listed = {}
        for state in self.states.values():
            rows = self._rows((state.database, state.table))
            if state.state == "ok" and state.schema and rows is not None:
                schema = TableSchema.from_document(state.schema)
                key = tuple(column.name for column in schema.columns if column.id in schema.key)
                listed[state.database, state.table] = rows, key
        return listed


def replayed(case: Case, mode: str, log: Log, lake: Path) -> InOneMode:
    """Return a history that was replayed; of other modes than a mirror nothing was compared."""
    attempt = InOneMode(case, log, lake)
    attempt.mode = mode
    problems = attempt.run()
    assert mode != "mirror" or not problems
    return attempt


def _at(clock: str) -> int:
    """Return a time as the place in the log that records have then, in milliseconds."""
    hours, minutes = clock.split(":")
    return (60 * int(hours) + int(minutes)) * 60_000


CHANGES = {
    "INSERT (1, a) at 8:00": [put(_at("8:00"), 1, "a")],
    "INSERT (2, b) at 9:00": [put(_at("9:00"), 2, "b")],
    "UPDATE 1 to c at 9:30": [put(_at("9:30"), 1, "c", "a")],
    "the UPDATE comes again": [put(_at("9:30"), 1, "c", "a")],
    "DELETE 1 at 10:00": [gone(_at("10:00"), 1, "c")],
    "INSERT (1, d) at 10:30": [put(_at("10:30"), 1, "d")],
    "UPDATE of key 2 to 3 at 11:00": [gone(_at("11:00"), 2, "b"), put(_at("11:00"), 3, "b")],
    "TRUNCATE at 11:30": [truncated(_at("11:30"))],
    "INSERT (1, e) at 12:00": [put(_at("12:00"), 1, "e")],
    "a full snapshot of (4, f) at 13:00": snapshot(_at("13:00"), {4: "f"}),
}


def _shown(row: dict[str, Any]) -> str:
    """Return a row as the page shows it."""
    clock = {name: f"{value.hour}:{value:%M}" for name, value in row.items() if isinstance(value, datetime)}
    values = ["NULL" if row[name] is None else str(row[name]) for name in ("id", "v")]
    values += [f"deleted {clock['_cdc_deleted_at']}"] if row.get("_cdc_deleted") else []
    values += [row["_cdc_op"]] if "_cdc_op" in row else []
    if "_cdc_valid_from" in row:
        values.append(f"{clock['_cdc_valid_from']} to {clock.get('_cdc_valid_to', 'now')}")
    return f"({', '.join(values)})"


@pytest.mark.parametrize("mode", MODES)
def test_the_changes_of_the_page_have_the_effect_that_it_shows(mode: str, log: Log, lake: Path) -> None:
    lines = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines()]
    of_page = {change: texts[MODES.index(mode)] for change, *texts in lines if change in CHANGES}
    assert list(of_page) == list(CHANGES)
    script = Script(log, lake, tables={"shop.t": {"mode": mode}})
    script.send(BEGIN[0])
    script.sync()
    before: Counter[str] = Counter()
    for change, records in CHANGES.items():
        script.send(*records)
        script.sync()
        table = DeltaTable(str(lake / "shop" / "t")).to_pyarrow_table()
        after = Counter(_shown(row) for row in table.to_pylist())
        shown = after - before if mode in ("append", "history") else after
        assert Counter(of_page[change].replace("), (", ")\n(").split("\n")) == (shown or Counter(["nothing"])), change
        before = after


def multiset(table: pa.Table | None, columns: list[str]) -> Counter[str]:
    return Counter() if table is None else Counter(map(repr, table.select(columns).to_pylist()))


@pytest.mark.parametrize("name", ["debezium-json", "drs-json", "dts-protobuf", "oms-default"])
def test_the_modes_agree_on_the_rows_that_are_there(name: str, log: Log, lake: Path) -> None:
    compared: Counter[str] = Counter()
    for seed, theme in enumerate(("keyed", "ddl", "renames")):
        case = case_of(name, seed, theme, sizes=(8, 12))
        case = replace(case, style=replace(case.style, minimal=False))
        modes = {mode: replayed(case, mode, log, lake).tables() for mode in MODES}
        changed = any("ChangeKey" in statement.sql() for statement in case.statements)
        for mode, table in product(MODES[1:], modes["mirror"]):
            there, key = modes["mirror"][table]
            if table not in modes[mode] or (mode == "append" and (changed or not key)):
                continue
            compared[mode] += there.num_rows
            left = of_source(modes[mode][table][0], mode, key)
            assert multiset(left, there.column_names) == multiset(there, there.column_names), mode
    assert all(compared[mode] for mode in MODES[1:])


@pytest.mark.parametrize("mode", MODES)
def test_a_table_of_each_mode_can_be_compared_with_the_change_log(
    mode: str, log: Log, lake: Path, tmp_path: Path
) -> None:
    records = [*BEGIN, put(40, 1, "x", "a"), gone(50, 1, "x"), put(60, 5, "e"), put(70, 5, "f", "e")]
    script = synced(log, lake, records, 4, {"mode": mode})

    def differences(scratch: str) -> dict[str, int]:
        order = Rebuild(["shop.t"], compared=True)
        job = replace(script._job(script.ends), order=order, scratch=str(tmp_path / scratch))
        (line,) = sync(job, {}, inline, lambda text: None).tables
        return line.contradictions

    assert differences("before") == {}
    DeltaTable(str(script.root / "shop" / "t")).delete("id = 5")
    assert differences("after") == {"row_missing": {"mirror": 1, "soft_delete": 1, "append": 2, "history": 2}[mode]}
