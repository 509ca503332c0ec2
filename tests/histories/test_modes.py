# SPDX-License-Identifier: Apache-2.0
"""The modes of tables: what changes do to each, as the page shows, and that they agree with each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.documents import Rebuild
from spark_jobs.driver.run_batch import sync
from tests.histories.cases import case_of
from tests.histories.log import Log
from tests.histories.moded_table import BEGIN, OWN_COLUMNS, gone, put, snapshot, synced, truncated
from tests.histories.run import Case, Replay, inline
from tests.histories.scripted import Script

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "modes.md"
MODES = tuple(OWN_COLUMNS)  # in the order of the page


class InOneMode(Replay):
    """A history whose tables have one mode."""

    mode = "mirror"

    def _rules(self) -> dict[str, Any]:
        rules = super()._rules()
        every = {"*.*": {**rules.pop("*.*", {}), "mode": self.mode}}
        return every | {name: {**rule, "mode": self.mode} for name, rule in rules.items()}

    def rows_of(self, table: str) -> pa.Table | None:
        database, _, name = table.partition(".")
        return self._rows((database, name))


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
    compared = 0
    for seed in range(3):
        case = case_of(name, seed, sizes=(8, 12))
        case = replace(case, style=replace(case.style, minimal=False))
        mirror = replayed(case, "mirror", log, lake)
        tables = {
            f"{s.database}.{s.table}": mirror.rows_of(f"{s.database}.{s.table}")
            for s in mirror.states.values()
            if s.state == "ok"
        }
        for mode, condition in (("soft_delete", ~pc.field("_cdc_deleted")), ("history", pc.field("_cdc_current"))):
            other = replayed(case, mode, log, lake)
            right = {f"{state.database}.{state.table}" for state in other.states.values() if state.state == "ok"}
            for table in right & tables.keys():
                there, actual = tables[table], other.rows_of(table)
                if there is None or actual is None:
                    continue
                compared += there.num_rows
                assert multiset(actual.filter(condition), there.column_names) == multiset(there, there.column_names)
    assert compared > 0


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
