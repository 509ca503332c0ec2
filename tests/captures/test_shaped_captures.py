# SPDX-License-Identifier: Apache-2.0
"""Captures into tables with random rules, of each mode: the same rules in plain Python over the database's content."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.demo import truth as mysql_truth
from tests.captures import postgres_pipelines, postgres_truth
from tests.captures.in_memory import DATA, pipeline, records, rising, written_otherwise
from tests.captures.shaped_truth import SALT, of_source, random_rule, renamed_columns, shaped
from tests.histories.log import Log
from tests.histories.scripted import Script
from tests.locations import table_location
from tests.sample import ALL
from tests.sinks.kinds import options_of, sink_of

MARIADB, MYSQL, POSTGRESQL = "public-shop-mdb11", "public-incremental-my8", "public-postgres-15"
# rows left these two without row events: a foreign key's cascade and DROP PARTITION
NOT_DERIVABLE = {
    MYSQL: {"shop.child", "shop.part"},
    POSTGRESQL: {*postgres_pipelines.LOST[POSTGRESQL], *postgres_pipelines.UNLOGGED},
}
REFUSED = ("mode.needs_key", "column_absent", "shape.column_unknown")
MODES = ("mirror", "soft_delete", "append", "history")
EVERY = [
    (name, kind, mode, cuts)
    for name in (MARIADB, MYSQL, POSTGRESQL)
    for kind in ("delta", "iceberg")
    for mode in MODES
    for cuts in (1, 3, 12)
]
SAMPLE = [(MARIADB, "delta", "history", 3), (POSTGRESQL, "iceberg", "soft_delete", 3)]


@pytest.mark.parametrize(("name", "kind", "mode", "cuts"), EVERY if ALL else SAMPLE)
def test_tables_are_what_the_rules_make_of_the_source(
    name: str, kind: str, mode: str, cuts: int, log: Log, tmp_path: Path
) -> None:
    chance = random.Random(f"{name} {kind} {mode} {cuts}")
    truth = DATA / name / "source_final.jsonl.xz"
    tables = {_full(table): table for table in _source(name).load(truth)}
    script = _pipeline(name, log, tmp_path, kind)
    spared = renamed_columns(records(name))
    rules = {full: random_rule(table, spared, mode, chance) for full, table in tables.items()}
    script.tables = {"*.*": {"mode": mode}, **{full: {**script.tables.get(full, {}), **rules[full]} for full in rules}}
    for number in range(1, cuts + 1):
        whole = {where: len(all_) for where, all_ in log.partitions.items()}
        ends = {where: chance.randint(0, min(end, end * number // cuts + 3)) for where, end in whole.items()}
        script.sync(whole if number == cuts else rising(ends, script.ends))
    outcomes = {
        full: _outcome(name, script, kind, table, rules[full])
        for full, table in tables.items()
        if full not in NOT_DERIVABLE.get(name, ())
    }
    wrong = {full: outcome for full, outcome in outcomes.items() if outcome not in ("equal", "parked")}
    assert not wrong, rules
    assert sum(outcome == "equal" for outcome in outcomes.values()) > len(outcomes) / 4


def _source(name: str) -> Any:
    return postgres_truth if name == POSTGRESQL else mysql_truth


def _full(table: Any) -> str:
    return f"{table.schema if isinstance(table, postgres_truth.SourceTable) else table.database}.{table.table}"


def _pipeline(name: str, log: Log, root: Path, kind: str) -> Script:
    """Return a pipeline over a capture whose tables are of a kind."""
    if name == POSTGRESQL:
        script = postgres_pipelines.pipeline(name, log, root)
    else:
        prefix = "shpda" if name == MARIADB else ""
        options = {"explicit_defaults_for_timestamp": "true"} if name == MARIADB else {}
        script = pipeline(name, log, root, prefix=prefix, options=options)
    script.secrets = {"mask": {"salt": SALT}}
    if kind != "delta":
        script.sink_type, script.sink_options = kind, options_of(kind, root)
    return script


def _outcome(name: str, script: Script, kind: str, table: Any, rule: dict[str, Any]) -> str:
    """Return ``equal``, ``parked``, or what is wrong."""
    database, _, short = _full(table).partition(".")
    states = [one for one in script.states.values() if (one.database, one.table) == (database, short)]
    states = [one for one in states if one.state != "dropped"]
    if not states:
        return "equal" if not table.rows else "absent"
    (state,) = states
    if state.state != "ok":
        known = (*REFUSED, *(postgres_truth.REASONS if name == POSTGRESQL else ()))
        return "parked" if any(reason in str(state.reason) for reason in known) else str(state.reason)
    if rule["mode"] == "append" and not table.key:
        return "equal"  # nothing shows which rows of a feed are left
    stored = sink_of(kind, script.root).open(table_location(str(script.root), database, short)).rows()
    left = of_source(stored, rule["mode"], table.key)
    problems = _source(name).differing(shaped(table, rule), left)
    return "; ".join(text for text in problems if not written_otherwise(text))[:400] or "equal"
